"""Learning curves of fighting_cartridges.py as a picture.

    python benchmarks/fighting_cartridges_curves.py OUT.png NAME [NAME...]

One panel per results/fighting_cartridges_NAME.csv: what an episode is paid over the steps, a line
per seed with its standard error, beside random play and the script.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    out, names = sys.argv[1], sys.argv[2:]
    figure, panels = plt.subplots(1, len(names), figsize=(4.4 * len(names), 3.4), squeeze=False)
    for panel, name in zip(panels[0], names, strict=True):
        with (RESULTS / f"fighting_cartridges_{name}.csv").open() as file:
            rows = list(csv.DictReader(file))
        for player in dict.fromkeys(row["player"] for row in rows):
            own = [row for row in rows if row["player"] == player]
            steps, paid, error = (
                [float(row[key]) for row in own] for key in ("steps", "paid", "error")
            )
            if player.startswith("seed"):
                panel.errorbar(steps, paid, error, fmt="o-", ms=3, lw=1.2, label=player)
            else:
                style = ":" if player == "random play" else "--"
                panel.axhline(paid[0], color="0.3", ls=style, lw=1.2, label=player)
        panel.set(title=name.replace("_", " "), xlabel="steps", xlim=(0, None))
        panel.grid(alpha=0.3)
        panel.legend(fontsize=8)
    panels[0][0].set_ylabel("paid per episode")
    figure.tight_layout()
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main()
