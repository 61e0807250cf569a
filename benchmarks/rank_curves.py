"""Do runs on several processes learn what one process learns? Curves of three seeds.

    python benchmarks/rank_curves.py [--of nclone duel] [--ranks 1 2] [--steps 2000000]

The same sizes on each number of processes: they share environments, rollout and minibatches. Each
run prints the success of its evaluations, and is one thread a process.
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


def curve(name: str, seed: int, ranks: int, steps: int, looks: int) -> list[tuple[int, float]]:
    """Steps and evaluated success of one run."""
    many = f"launch=torchrun launch.processes={ranks}" if ranks > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        sizes = [f"algo.total_steps={steps}", f"evaluation.every_steps={steps // looks}"]
        words = [*f"{WORDS[name]} {QUIET} {many}".split(), *sizes, f"seed={seed}"]
        command = [sys.executable, "scripts/train.py", *words, f"hydra.run.dir={folder}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(words)}: {done.stderr[-2000:]}")
        lines = list(read_metrics(Path(folder)))
    return [(line["step"], line["eval/success"]) for line in lines if "eval/success" in line]


def main() -> None:
    """Each environment, each number of processes, each seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", nargs="+", default=list(WORDS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=int, default=2_000_000)
    parser.add_argument("--looks", type=int, default=4)
    given = parser.parse_args()
    for name in given.of:
        last: dict[int, list[float]] = {ranks: [] for ranks in given.ranks}
        for seed in given.seeds:
            for ranks in given.ranks:
                began = time.monotonic()
                seen = curve(name, seed, ranks, given.steps, given.looks)
                told = ", ".join(f"{step:,}: {success:.1%}" for step, success in seen)
                seconds = time.monotonic() - began
                who = f"{name}, seed {seed}, {ranks} processes"
                print(f"{who}: {told} ({seconds:.0f} s)", flush=True)
                last[ranks].append(seen[-1][1])
        for ranks, ends in last.items():
            print(f"{name}, {ranks} processes: {statistics.mean(ends):.1%} in the mean at the end")


if __name__ == "__main__":
    main()
