"""Seconds from a command to the first steps of a run: nothing compiled before, and once more.

    python benchmarks/first_minute.py [--before TREE] ["env=toy" "env=nclone memory=parallel" ...]

Each run has an empty home and an empty folder of compiled kernels the first time, and finds there
what it left the second time. Seconds are those of the clock, until the environments have stepped
once and until the line that tells steps per second, after a rollout of 16 steps and an update. The
peer is a process that only imports torch, hydra and numba, right before each second run. `--before`
measures another checkout in turn, with this one's interpreter.
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
STEPPED, TOLD = b"<first step>", b"steps/s"
SAYS_SO = f"""
import importlib.abc, importlib.machinery, runpy, sys

class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "frugal_rl.run.guard":
            return None
        sys.meta_path.remove(self)
        found = importlib.machinery.PathFinder.find_spec(name, path)
        load = found.loader.exec_module
        found.loader.exec_module = lambda module: (load(module), watch(module.NumberGuard))
        return found

def watch(guard):
    look = guard._look
    def first(self, step):
        guard._look = look
        print({STEPPED.decode()!r}, flush=True)
        look(self, step)
    guard._look = first

sys.meta_path.insert(0, Watch())
sys.argv = sys.argv[1:]
sys.path[0] = "scripts"
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a script, and says when the trainer's environments have stepped once."""
REPEATS = 3


def seconds_of(command: list[str], tree: Path, own: dict[str, str]) -> tuple[float, float, float]:
    """Seconds until the first step and until steps per second are told; the longest silence."""
    began = last = time.perf_counter()
    silence = stepped = 0.0
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
            if STEPPED in said and not stepped:
                stepped = now - began
        process.stdout.read()
    return stepped, last - began, silence


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
        command = [sys.executable, "-c", SAYS_SO, "scripts/train.py", *words, *SMALL, *QUIET]

        def run(number: int) -> tuple[float, float, float]:
            return seconds_of([*command, f"hydra.run.dir={folder}/{number}"], tree, own)

        *cold, silence = run(0)
        pairs = [(import_seconds(own), run(1 + k)[:2]) for k in range(REPEATS)]
    again = [median(times[k] for _, times in pairs) for k in (0, 1)]
    shares = [median(times[k] / peer for peer, times in pairs) for k in (0, 1)]
    columns = (
        *(f"{cold[k]:.1f} | {again[k]:.1f} | {shares[k]:.2f}" for k in (0, 1)),
        f"{silence:.1f}",
    )
    return " | ".join(columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", default=RUNS)
    parser.add_argument("--before", type=Path, help="another checkout, measured in turn")
    args = parser.parse_args()
    here = Path(__file__).resolve().parents[1]
    trees = ([("before", args.before.resolve())] if args.before else []) + [("now", here)]
    columns = "cold, s | again, s | : imports"
    print(f"| run | checkout | first step {columns} | told {columns} | longest silence, s |")
    print("|---" * 9 + "|")
    for words in args.runs:
        for name, tree in trees:
            print(f"| `{words}` | {name} | {measure(words.split(), tree)} |", flush=True)


if __name__ == "__main__":
    main()
