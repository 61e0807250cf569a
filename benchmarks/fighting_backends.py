"""Environment steps per second of every backend and observation form, side by side in one run.

    python benchmarks/fighting_backends.py [seconds per cell] [environments ...]

`sb3` is Stable-Baselines3's own `SubprocVecEnv` with one process per environment; with more than 8
environments it is timed for `rgb` and `packed` only (each process imports torch).
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable

import numpy as np

from fighting.config import DuelConfig
from fighting.spec import View
from fighting.vec_env import DuelVecEnv
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.vec_env.serial import Serial
from frugal_rl.vec_env.shared_memory import SharedMemory
from frugal_rl.vec_env.threads import Threads

SKIP = 4
MEMORY = MemoryProfile()
FORMS = {
    "rgb": (View.rgb, Storage.dense),
    "packed": (View.gray, Storage.lossless),
    "half size": (View.half_size, Storage.dense),
    "ram": (View.ram, Storage.lossless),
}


def rate(step: Callable[[np.ndarray], object], count: int, seconds: float) -> float:
    """Environment steps per second of random play, after a short start."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        step(rng.integers(0, 16, count))
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        step(rng.integers(0, 16, count))
        done += count
    return done / (time.perf_counter() - begin)


def ours(name: str, view: View, storage: Storage, count: int, seconds: float) -> float:
    """One of our backends."""
    config = DuelConfig(obs=view, stack=1, levels=(3,), threads=1 if name != "batch" else 0)
    encoding = Encoding.choose(config.spec(), storage)
    backends = {"serial": Serial(), "threads": Threads(), "shared_memory": SharedMemory()}
    if name == "batch":
        env = DuelVecEnv(config, count, encoding, MEMORY)
    else:
        env = backends[name].build(config, count, encoding, MEMORY)
    env.reset(0)
    try:
        return rate(env.step, count, seconds)
    finally:
        env.close()


def sb3(view: View, count: int, seconds: float) -> float:
    """Stable-Baselines3's subprocesses, each with a plain Gymnasium environment."""
    from stable_baselines3.common.vec_env import SubprocVecEnv

    # Loading the modules once, in the server that the workers fork from, shortens their start.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["stable_baselines3.common.env_util", "fighting.env"])

    def make() -> Callable[[], object]:
        config = DuelConfig(obs=view, stack=1, levels=(3,), threads=1)
        return config.make

    env = SubprocVecEnv([make() for _ in range(count)], start_method="forkserver")
    env.reset()
    try:
        return rate(env.step, count, seconds)
    finally:
        env.close()


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    counts = [int(n) for n in sys.argv[2:]] or [8, 32]
    for count in counts:
        print(f"{count} environments, {SKIP} frames per step: steps/s (frames/s)")
        print(f"{'':<16}" + "".join(f"{form:>22}" for form in FORMS))
        for name in ("sb3", "serial", "threads", "batch", "shared_memory"):
            cells = []
            for view, storage in FORMS.values():
                if name == "sb3" and count > 8 and view not in (View.rgb, View.gray):
                    cells.append("-")
                    continue
                if name == "sb3":
                    found = sb3(view, count, seconds)
                else:
                    found = ours(name, view, storage, count, seconds)
                cells.append(f"{found:>10,.0f} ({SKIP * found:>9,.0f})")
            print(f"{name:<16}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
