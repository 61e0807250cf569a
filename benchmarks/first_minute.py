"""Seconds from a command to the first steps of a run: nothing compiled before, and once more.

    python benchmarks/first_minute.py [--before TREE] ["env=toy" "env=nclone memory=parallel" ...]

Each run has an empty home and an empty folder of compiled kernels the first time, and finds there
what it left the second time; the seconds are those of the clock until the line that tells steps per
second. The peer is a process that only imports torch, hydra and numba, right before each second
run. `--before` measures another checkout in turn, with this one's interpreter.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

RUNS = ("env=toy", "env=nclone memory=parallel", "env=mine_daily_small", "env=fighting")
SMALL = "algo.num_envs=8 algo.n_steps=16 algo.batch_size=64 algo.total_steps=128".split()
QUIET = "evaluation.episodes=0 tracking=disabled".split()
TOLD = b"steps/s"
REPEATS = 3


def seconds_until(command: list[str], tree: Path, own: dict[str, str]) -> tuple[float, float]:
    """Seconds until a command tells its steps per second, and its longest silence on the way."""
    began = last = time.perf_counter()
    silence = 0.0
    with subprocess.Popen(
        command, cwd=tree, env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        said = b""
        while TOLD not in said:
            found = os.read(process.stdout.fileno(), 65536)
            if not found:
                raise SystemExit(said.decode(errors="replace"))
            said += found
            now = time.perf_counter()
            silence, last = max(silence, now - last), now
        process.stdout.read()
    return last - began, silence


def import_seconds(own: dict[str, str]) -> float:
    """Seconds of a process that imports what every run imports."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch, hydra, numba"], env=own, check=True)
    return time.perf_counter() - began


def measure(words: list[str], tree: Path) -> str:
    """A row of the table: the first run, and three more."""
    with tempfile.TemporaryDirectory() as folder:
        places = {"HOME": folder, "NUMBA_CACHE_DIR": f"{folder}/kernels", "PYTHONPATH": str(tree)}
        own = {**os.environ, "XDG_CACHE_HOME": f"{folder}/cache", **places}
        command = [sys.executable, "scripts/train.py", *words, *SMALL, *QUIET]

        def run(number: int) -> tuple[float, float]:
            return seconds_until([*command, f"hydra.run.dir={folder}/{number}"], tree, own)

        cold, silence = run(0)
        pairs = [(import_seconds(own), run(1 + k)[0]) for k in range(REPEATS)]
    again = median(second for _, second in pairs)
    share = median(second / peer for peer, second in pairs)
    return f"{cold:.1f} | {silence:.1f} | {again:.1f} | {share:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", default=RUNS)
    parser.add_argument("--before", type=Path, help="another checkout, measured in turn")
    args = parser.parse_args()
    here = Path(__file__).resolve().parents[1]
    trees = ([("before", args.before.resolve())] if args.before else []) + [("now", here)]
    print("| run | checkout | nothing compiled, s | longest silence, s | again, s | : imports |")
    print("|---|---|---|---|---|---|")
    for words in args.runs:
        for name, tree in trees:
            print(f"| `{words}` | {name} | {measure(words.split(), tree)} |", flush=True)


if __name__ == "__main__":
    main()
