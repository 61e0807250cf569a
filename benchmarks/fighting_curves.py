"""Learning curves of fighting_learning.py as a picture.

    python benchmarks/fighting_curves.py OUT.png TITLE=NAME[,NAME...] [TITLE=NAME...]

One panel per group of results/fighting_learning_NAME.csv: fights won against each level over the
processor seconds of a seed, a line per seed, Wilson's 95 % interval around it.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from frugal_rl.run.evaluate import wilson

RESULTS = Path(__file__).parent / "results"
Point = tuple[float, int, int]
"""Processor seconds, episodes, won."""


def read(names: list[str]) -> dict[tuple[int, str], list[Point]]:
    """Points by level and seed."""
    found: dict[tuple[int, str], list[Point]] = defaultdict(list)
    for name in names:
        with (RESULTS / f"fighting_learning_{name}.csv").open() as file:
            for row in csv.DictReader(file):
                key = int(row["level"]), row["player"]
                found[key].append((float(row["cpu_s"]), int(row["episodes"]), int(row["won"])))
    return found


def main() -> None:
    out, groups = sys.argv[1], [word.split("=", 1) for word in sys.argv[2:]]
    figure, panels = plt.subplots(
        1, len(groups), figsize=(5.2 * len(groups), 3.4), squeeze=False, sharey=True
    )
    for panel, (title, names) in zip(panels[0], groups, strict=True):
        found = read(names.split(","))
        for (level, seed), points in sorted(found.items()):
            colour = f"C{level}"
            seconds = [p[0] for p in points]
            label = f"level {level}" if seed == min(s for n, s in found if n == level) else None
            shares = [p[2] / p[1] for p in points]
            panel.plot(seconds, shares, "o-", color=colour, ms=3, lw=1.2, label=label)
            bounds = [wilson(p[2], p[1]) for p in points]
            panel.fill_between(seconds, *zip(*bounds, strict=True), color=colour, alpha=0.1, lw=0)
        panel.set(title=title, xlabel="processor seconds per seed", ylim=(-0.02, 1.02))
        panel.grid(alpha=0.3)
        panel.legend(loc="lower right")
    panels[0][0].set_ylabel("fights won")
    figure.tight_layout()
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main()
