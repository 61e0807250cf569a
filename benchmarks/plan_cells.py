"""Does arithmetic alone predict what runs hold? Cells of odd sizes; none fitted a constant.

    python benchmarks/plan_cells.py --cells 14

Each cell is planned and trained for two rollouts in a process of its own; what is done stays in the
results file, and a second call goes on with the next cells. `--table` prints what is there.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "plan_cells.jsonl"
KINDS = (
    "env=toy",
    "env=nclone",
    "env=fighting",
    "env=mine_cpit",
    "env=mine_daily_small agent=column2d",
    "env=nclone env.obs=pixels agent=nature_cnn",
    "env=fighting env.obs=gray agent=nature_cnn",
    "env=mine_daily_small agent=cnn3d_tiny agent.head=columns",
    "env=nclone agent=attention_small",
    "env=gymnasium env.id=CartPole-v1",
    "env=mine memory=parallel",
    "env=toy agent.actor=[300,200] agent.critic=[300,200]",
)
SIZES = ((23, 61), (9, 130), (37, 29), (6, 201), (51, 43))
"""Environments x steps, none of them a round number."""
PARTS = (1, 3)
"""A minibatch is the whole rollout, or a third of it."""


def cells() -> list[str]:
    """Sixty command lines, the kinds one after the other."""
    parts, found = cycle(PARTS), []
    for number in range(len(SIZES)):
        for place, kind in enumerate(KINDS):
            n, t = SIZES[(number + place) % len(SIZES)]
            batch = n * t // next(parts)
            sizes = f"algo.num_envs={n} algo.n_steps={t} algo.batch_size={batch}"
            found.append(f"{kind} {sizes} algo.total_steps={2 * n * t}")
        next(parts)
    return found


def train(words: Sequence[str]) -> dict[str, float]:
    """The run's summary: what was planned and what was held."""
    few = ["evaluation.episodes=6", "evaluation.num_envs=3", "tracking=disabled"]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(ROOT / "scripts" / "train.py"), *words, *few]
        command += [f"hydra.run.dir={folder}"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}\n{done.stdout[-500:]}{done.stderr[-1500:]}")
        return json.loads((Path(folder) / "report.json").read_text())


def known() -> dict[str, dict]:
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    return {row["cell"]: row for row in map(json.loads, lines)}


def table() -> str:
    """Predicted and measured, cell by cell; the median and the worst."""
    rows, errors = [], []
    for cell, row in known().items():
        error = row["planned"] / row["measured"] - 1
        errors.append(error)
        mib = [f"{row[name] / 2**20:.0f}" for name in ("planned", "measured")]
        rows.append(f"| `{cell}` | {mib[0]} | {mib[1]} | {error:+.1%} |")
    sizes = [abs(e) for e in errors]
    closing = (
        f"{len(errors)} of {len(cells())} cells, busy: median {statistics.median(sizes):.1%}, "
        f"worst {max(sizes):.1%}, lowest {min(errors):+.1%}."
    )
    head = "| cell | planned MiB | measured MiB | error |\n|---|---:|---:|---:|"
    return "\n".join([head, *rows, "", closing])


def main() -> None:
    """Measure some cells that are not known yet, print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cells", type=int, default=12, help="how many to measure now")
    options.add_argument("--table", action="store_true", help="print what is known")
    asked = options.parse_args()
    missing = [cell for cell in cells() if cell not in known()]
    for cell in [] if asked.table else missing[: asked.cells]:
        summary = train(cell.split())
        row = {
            "cell": cell,
            "planned": summary["plan/ram_bytes"],
            "measured": summary["memory/peak_bytes"],
        }
        RESULTS.parent.mkdir(exist_ok=True)
        with RESULTS.open("a") as file:
            file.write(json.dumps(row) + "\n")
    print(table())


if __name__ == "__main__":
    main()
