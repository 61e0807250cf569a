"""The main job and the simulator of two commits, in turns within one run.

    python benchmarks/paired_speed.py --before COMMIT [--stretches 20] [--steps 2000000]
        [--now KEY=VALUE ...]

The older tree is checked out beside this one and run by this interpreter. Both step the simulator
in turns, then both train the main job, in turns from one line of metrics to the next
(`run_rates.py`); each stretch of turns gives one ratio. `--now` gives settings to the newer tree
alone, and steps no simulator.
Last result: see benchmarks/paired_speed.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

from run_rates import HERE, Watched, in_turns

FIRST_STEPS = 131_072
"""Steps of a run that are not counted."""
MAIN_JOB = ["env=nclone", "memory=parallel", "tracking=disabled", "evaluation.episodes=32"]
FRAMES = """
import json, sys, time
import numpy as np
from nclone.levels.level import load_level
from nclone.sim import state as st
from nclone.sim.world import World

stored = np.load("tests/data/nclone/golden.npz")
ends = np.cumsum([entry["map"] for entry in json.loads(str(stored["_meta"]))])
maps, random = stored["map"].tobytes(), np.random.default_rng(0)
starts = [0, *ends[:-1]]
levels = [load_level(maps[a:b]) for a, b in list(zip(starts, ends))[:: len(ends) // 8]]
world = World(levels, np.arange(512, dtype=np.int32) % len(levels), threads=1)
actions = random.integers(0, 6, (256, 512)).astype(np.uint8)
for _ in sys.stdin:
    began = time.process_time()
    world.step(actions, frames=1, on_end=st.RESTART)
    print(512 * 256 / (time.process_time() - began), flush=True)
"""


def main() -> None:
    """Measure both trees in turns and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--before", required=True, help="a commit, or a folder with it (compiled already)"
    )
    parser.add_argument("--stretches", type=int, default=20)
    parser.add_argument("--steps", type=int, default=2_000_000)
    parser.add_argument("--now", nargs="+", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    with checked_out(options.before) as before:
        if not options.now:
            simulator((before, HERE), options.stretches)
        main_job((before, HERE), options.stretches, options.steps, options.now)


@contextmanager
def checked_out(what: str) -> Iterator[Path]:
    """A folder as it is, or a commit in a folder that is gone afterwards."""
    if Path(what).is_dir():
        yield Path(what).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", tree, what], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", tree], check=True)


def simulator(trees: tuple[Path, Path], stretches: int) -> None:
    """Frames per processor second, one thread; the first call compiles."""
    old, new = (Stepped(tree) for tree in trees)
    pairs = [(old.rate(), new.rate()) for _ in range(stretches + 1)][1:]
    show("frames per processor second", *zip(*pairs, strict=True))


def main_job(trees: tuple[Path, Path], stretches: int, steps: int, more: list[str]) -> None:
    """The main job, `more` being the newer tree's; it evaluates when all that counts is over."""
    words = [*MAIN_JOB, f"algo.total_steps={steps}"]
    both = zip(("before", "now"), ([], more), trees, strict=True)
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            [Watched(Path(folder) / name, [*words, *own], FIRST_STEPS, steps, tree)]
            for name, own, tree in both
        ]
        rates = in_turns(runs, stretches)
    for what in ("per_second", "per_processor_second"):
        show(f"steps {what}".replace("_", " "), *([getattr(r, what) for r in one] for one in rates))


def show(what: str, before: Sequence[float], now: Sequence[float]) -> None:
    """Both medians, then the median of the ratios, its quartiles and its ends."""
    ratios = [new / old for old, new in zip(before, now, strict=True)]
    low, middle, high = quantiles(ratios, n=4)
    print(f"{what}: {median(before):,.0f} before, {median(now):,.0f} now")
    print(f"    ratio {middle:.3f} (quartiles {low:.3f}, {high:.3f};", end=" ")
    print(f"{min(ratios):.3f} to {max(ratios):.3f} in {len(ratios)} pairs)", flush=True)


class Stepped:
    """A process that steps a tree's simulator whenever it is asked."""

    def __init__(self, tree: Path) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-c", FRAMES], cwd=tree, text=True,
            env={**os.environ, "PYTHONPATH": str(tree)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def rate(self) -> float:
        """Frames per processor second of one more call."""
        assert self.child.stdin
        assert self.child.stdout
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        return float(self.child.stdout.readline())


if __name__ == "__main__":
    main()
