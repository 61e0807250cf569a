"""Frames per second of the simulator, bytes per world, compile and cached load time.

Usage: python benchmarks/simulator.py [--repeats 7]

Random actions that are kept with probability 0.9 per frame, automatic reset at a death or a win;
256 frames of actions for 512 worlds in one call; `step(4)` is a call per four frames, as training
does it. What holds on any machine is the factor: frames per second on one thread over the steps
per second of Gymnasium's CartPole-v1, plain Python of a few dozen operations, which runs right
before each measurement; its median with the least and the largest. The machine's own rates of
float32 matrix products and of copying memory stand above the table.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gymnasium
import numpy as np

from nclone.levels.level import Level, load_level
from nclone.sim import state as st
from nclone.sim.world import World

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "data" / "nclone" / "golden.npz"
MAPS = (
    "cave_00",
    "hand_slope_run_0",
    "ent06_0",
    "ent21_0",
    "mix_04",
    "ent17_0",
    "all_02",
)
WORLDS, FRAMES = 512, 256
FIRST_CALL = """
import time
start = time.perf_counter()
import numpy as np
import nclone
from nclone.levels.bundled import bundled_level
imported = time.perf_counter()
world = nclone.World([bundled_level("walk")], np.zeros({worlds}, int), threads={threads})
world.step(np.zeros({worlds}, np.uint8))
print(imported - start, time.perf_counter() - imported)
"""


def load_maps() -> dict[str, Level]:
    """The levels that the figures are about."""
    stored = np.load(GOLDEN)
    meta = json.loads(str(stored["_meta"]))
    ends = np.cumsum([entry["map"] for entry in meta])
    maps = stored["map"].tobytes()
    found = {
        entry["name"]: load_level(maps[end - entry["map"] : end])
        for entry, end in zip(meta, ends, strict=True)
        if entry["name"] in MAPS
    }
    return {name: found[name] for name in MAPS}


def sticky_actions(frames: int, worlds: int) -> np.ndarray:
    """[frames, worlds] random actions, each kept from frame to frame with probability 0.9."""
    random = np.random.default_rng(0)
    actions = random.integers(0, 6, (frames, worlds)).astype(np.uint8)
    for t in range(1, frames):
        keep = random.random(worlds) < 0.9
        actions[t, keep] = actions[t - 1, keep]
    return actions


def cartpole_per_second(steps: int = 4000) -> float:
    """Steps per second of a public environment in plain Python, in this process."""
    env = gymnasium.make("CartPole-v1").unwrapped
    env.reset(seed=0)
    start = time.perf_counter()
    for t in range(steps):
        if env.step(t % 2)[2]:
            env.reset()
    return steps / (time.perf_counter() - start)


def machine_rates() -> tuple[float, float]:
    """Operations per second of float32 matrix products, bytes per second of copying; the best."""
    a, big = np.ones((1024, 1024), np.float32), np.ones(2**25, np.uint8)
    into = np.empty_like(big)
    products, copies = [], []
    for _ in range(5):
        start = time.perf_counter()
        a @ a
        middle = time.perf_counter()
        np.copyto(into, big)
        products.append(2 * 1024**3 / (middle - start))
        copies.append(len(big) / (time.perf_counter() - middle))
    return max(products), max(copies)


def frames_per_second(
    level: Level, worlds: int, threads: int, step: int, repeats: int
) -> tuple[float, list[float]]:
    """Median over `repeats` runs, and the factor to CartPole of each.

    `step` frames per call, 0 for all frames in one call.
    """
    world = World([level], np.zeros(worlds, np.int32), threads=threads)
    frames = FRAMES if worlds > 1 else 16 * FRAMES
    actions = sticky_actions(frames, worlds)
    rates, factors = [], []
    for _ in range(repeats + 1):
        yardstick = cartpole_per_second()
        start = time.perf_counter()
        if step:
            for row in actions[::step]:
                world.step(row, frames=step, on_end=st.RESTART)
        else:
            world.step(actions, frames=1, on_end=st.RESTART)
        rates.append(worlds * frames / (time.perf_counter() - start))
        factors.append(rates[-1] / yardstick)
    return float(np.median(rates[1:])), factors[1:]


def first_call(cache: str, worlds: int, threads: int) -> tuple[float, float]:
    """Seconds of the import and of the first step in a new process with its own kernel cache."""
    code = FIRST_CALL.format(worlds=worlds, threads=threads)
    env = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    imported, stepped = done.stdout.split()
    return float(imported), float(stepped)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    products, copies = machine_rates()
    print(f"sgemm {products / 1e9:.0f} GFLOP/s, copying {copies / 1e9:.1f} GB/s")
    print("Million frames per second, median; 512 worlds unless noted; factor to CartPole-v1\n")
    print(
        f"{'map':18}{'entities':>9}{'bytes':>7}{'1 thread':>10}{'factor':>24}{'2 threads':>11}"
        f"{'step(4)':>9}{'2 thr.':>8}{'1 world':>9}"
    )
    for name, level in load_maps().items():
        one, factors = frames_per_second(level, WORLDS, 1, 0, repeats)
        two, _ = frames_per_second(level, WORLDS, 2, 0, repeats)
        called = [frames_per_second(level, WORLDS, threads, 4, repeats)[0] for threads in (1, 2)]
        alone, _ = frames_per_second(level, 1, 1, 0, repeats)
        size = World([level]).bytes_per_world
        spread = f"{np.median(factors):.0f} ({min(factors):.0f} to {max(factors):.0f})"
        print(
            f"{name:18}{len(level.entities):9}{size:7}{one / 1e6:10.2f}"
            f"{spread:>24}{two / 1e6:11.2f}{called[0] / 1e6:9.2f}"
            f"{called[1] / 1e6:8.2f}{alone / 1e6:9.2f}",
            flush=True,
        )
    print("\nSeconds in a new process: import, then World and first step")
    for label, worlds, threads in (("one thread", 1, 1), ("two threads", 64, 2)):
        with tempfile.TemporaryDirectory() as cache:
            cold = first_call(cache, worlds, threads)
            warm = first_call(cache, worlds, threads)
        print(
            f"{label:12} compiled {cold[0]:5.2f} + {cold[1]:5.2f}, cached {warm[0]:5.2f} + "
            f"{warm[1]:5.2f}"
        )


if __name__ == "__main__":
    main()
