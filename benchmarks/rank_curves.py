"""Do runs on several processes learn what one process learns? Curves of three seeds.

    python benchmarks/rank_curves.py [--of nclone duel] [--ranks 1 2] [--steps 2000000]
    python benchmarks/rank_curves.py --of nclone --begun 4 --ranks 4 2 1

The same sizes on each number of processes: they share environments, rollout and minibatches. With
`--begun` the first half is trained once by that many, and each number of `--ranks` goes on with
its checkpoint. Each run prints the success of its evaluations, and is one thread a process.
Last result: see benchmarks/ranks.md.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from frugal_rl.report.files import read_metrics

WORDS = {
    "nclone": "env=nclone memory=parallel evaluation.episodes=256",
    "duel": "env=fighting experiment=duel_features env.emulator=native evaluation.episodes=64",
}
QUIET = "tracking=disabled hardware.threads=1 sweep.ledger=''"


Curve = list[tuple[int, float]]


def train(name: str, folder: Path, processes: int, steps: int, *own: str) -> Curve:
    """Steps and evaluated success of one run that ends at so many steps."""
    many = f"launch=torchrun launch.processes={processes}" if processes > 1 else ""
    words = [*f"{WORDS[name]} {QUIET} {many} algo.total_steps={steps}".split(), *own]
    command = [sys.executable, "scripts/train.py", *words, f"hydra.run.dir={folder}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr[-2000:]}")
    lines = list(read_metrics(folder))
    return [(line["step"], line["eval/success"]) for line in lines if "eval/success" in line]


def told(who: str, began: float, seen: Curve) -> None:
    """Print one curve and its seconds."""
    curve = ", ".join(f"{step:,}: {success:.1%}" for step, success in seen)
    print(f"{who}: {curve} ({time.monotonic() - began:.0f} s)", flush=True)


def seed_curves(name: str, seed: int, given: argparse.Namespace, parent: Path) -> list[Curve]:
    """A seed's curves, one for each number of processes."""
    own = [f"evaluation.every_steps={given.steps // given.looks}", f"seed={seed}"]
    if given.begun:
        began, first = time.monotonic(), parent / "begun"
        half = train(name, first, given.begun, given.steps // 2, *own)
        told(f"{name}, seed {seed}, begun on {given.begun}", began, half)
        own.append(f"resume={first}")
    curves = []
    for processes in given.ranks:
        began = time.monotonic()
        curves.append(train(name, parent / str(processes), processes, given.steps, *own))
        told(f"{name}, seed {seed}, processes: {processes}", began, curves[-1])
    return curves


def main() -> None:
    """Each environment, each seed, each number of processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", nargs="+", default=list(WORDS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--begun", type=int, default=0, help="processes of a common first half")
    parser.add_argument("--steps", type=int, default=2_000_000)
    parser.add_argument("--looks", type=int, default=4)
    given = parser.parse_args()
    for name in given.of:
        ends = []
        for seed in given.seeds:
            with tempfile.TemporaryDirectory() as folder:
                curves = seed_curves(name, seed, given, Path(folder))
            ends.append([curve[-1][1] for curve in curves])
        for processes, last in zip(given.ranks, zip(*ends, strict=True), strict=True):
            mean = statistics.mean(last)
            print(f"{name}, processes: {processes}: {mean:.1%} in the mean at the end")


if __name__ == "__main__":
    main()
