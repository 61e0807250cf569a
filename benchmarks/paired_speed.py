"""The main job and the simulator of two commits, in turns within one run.

    python benchmarks/paired_speed.py --before COMMIT [--rounds 5] [--steps 1000000]

The older tree is checked out beside this one and run by this interpreter. A round trains the main
job once in each (the order changes from round to round) and steps the simulator once in each.
Last result: see benchmarks/paired_speed.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from run_rates import HERE, Watched, watch

FIRST_STEPS = 131_072
"""Steps of a run that are not counted."""
MAIN_JOB = ["env=nclone", "memory=parallel", "tracking=disabled", "evaluation.episodes=32"]
FRAMES = """
import json, time
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
seconds = []
for _ in range(6):
    began = time.process_time()
    world.step(actions, frames=1, on_end=st.RESTART)
    seconds.append(time.process_time() - began)
print(512 * 256 / min(seconds[1:]))
"""


def main() -> None:
    """Measure both trees in turns and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--before", required=True, help="a commit of this repository")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", before, options.before], check=True)
        try:
            compare(before, options.rounds, options.steps)
        finally:
            subprocess.run([*git, "remove", "--force", before], check=True)


def compare(before: Path, rounds: int, steps: int) -> None:
    """Print each round's rates, then the medians of the ratios."""
    found: dict[str, list[float]] = {}
    for tree in (before, HERE):  # kernels are compiled, nothing is counted
        measured(tree, 2 * FIRST_STEPS)
    for n in range(rounds):
        order = (before, HERE) if n % 2 else (HERE, before)
        rates = {tree: measured(tree, steps) for tree in order}
        for what, new in rates[HERE].items():
            old = rates[before][what]
            found.setdefault(what, []).append(new / old)
            print(f"round {n + 1}, {what}: {old:,.0f} before, {new:,.0f} now", flush=True)
    for what, ratios in found.items():
        print(f"{what}: {median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")


def measured(tree: Path, steps: int) -> dict[str, float]:
    """A tree's rates of training, and its simulator's frames per processor second, one thread."""
    with tempfile.TemporaryDirectory() as folder:
        words = [*MAIN_JOB, f"algo.total_steps={steps}"]
        [rate] = watch([Watched(Path(folder) / "run", words, FIRST_STEPS, steps, tree)])
    done = subprocess.run(
        [sys.executable, "-c", FRAMES], cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    return {
        "steps/s": rate.per_second,
        "steps per processor second": rate.per_processor_second,
        "frames per processor second": float(done.stdout),
    }


if __name__ == "__main__":
    main()
