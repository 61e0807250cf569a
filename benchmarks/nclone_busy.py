"""N++ environment steps beside busy processes: on all threads, on one, and as the pace chooses.

python benchmarks/nclone_busy.py [--loops 8] [--rounds 4] [--seconds 3]

128 worlds, random actions, whole environment steps; the three take turns. `--loops 0` starts no
busy process, for a quiet machine or one that others load.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from frugal_rl.run.compose import compose_run
from frugal_rl.vec_env.interface import VectorEnv
from nclone.sim.pace import Pace

WORLDS = 128


class Fixed(Pace):
    """Always the same number of threads."""

    def end(self) -> None:
        """Nothing is compared."""


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many processes that never rest."""
    words = [sys.executable, "-c", "while True: pass"]
    started = [subprocess.Popen(words) for _ in range(loops)]
    try:
        yield
    finally:
        for process in started:
            process.kill()


def rates(vec_env: VectorEnv, seconds: float) -> tuple[float, float]:
    """Environment steps per second by the clock, and per second of the processor."""
    random = np.random.default_rng(0)
    wall, processor, steps = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - wall < seconds:
        vec_env.step(random.integers(0, 6, WORLDS))
        steps += WORLDS
    return steps / (time.perf_counter() - wall), steps / (time.process_time() - processor)


def main() -> None:
    """Print one line per way."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--loops", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=3.0)
    args = parser.parse_args()
    run = compose_run(["env=nclone", "memory=parallel", "tracking=disabled"])
    vec_env = run.env.make_vec(WORLDS, run.encoding(), run.memory, run.vec, "train")
    vec_env.reset(0)
    cores = os.cpu_count() or 1
    ways = {f"{cores} threads": Fixed(cores), "1 thread": Fixed(1), "pace": Pace(cores)}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    with busy(args.loops):
        for _ in range(args.rounds):
            for name, way in ways.items():
                vec_env.game.world.pace = way
                found[name].append(rates(vec_env, args.seconds))
    print(f"{args.loops} busy processes, {cores} cores, load {os.getloadavg()[0]:.1f}")
    for name, measured in found.items():
        clock, processor = np.median(measured, axis=0)
        print(f"{name:10} {clock:>9,.0f} steps/s by the clock, {processor:>9,.0f} per processor s")


if __name__ == "__main__":
    main()
