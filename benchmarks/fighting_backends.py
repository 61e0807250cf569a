"""Environment steps per second of every backend and observation form, side by side in one run.

    python benchmarks/fighting_backends.py [seconds per cell] [environments ...]

Each cell: environment steps/s, emulated frames/s, and processor microseconds per step of all
processes together, which tell backends apart where the machine has other work (steps/s do not).
Below, how many times as many steps/s as `sb3` each backend makes.

`threads`, which `batch` is another name of here, runs all cartridges on a few threads and does the
rest for all at once; `plain threads` steps single environments, as games without a batch do.
`sb3` is Stable-Baselines3's own `SubprocVecEnv` with one process per environment; with more than 8
environments it is timed for `rgb` and `packed` only (each process imports torch).
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import psutil

from fighting.config import DuelConfig
from fighting.spec import View
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


@dataclass(frozen=True)
class Pace:
    """What was found in one cell."""

    steps: float
    """Environment steps per second."""
    cpu: float
    """Processor seconds per environment step, of this process and its children."""

    def __str__(self) -> str:
        return f"{self.steps:,.0f} ({SKIP * self.steps:,.0f}) {1e6 * self.cpu:,.0f} us"


def processor() -> float:
    """Processor seconds of this process and its children, ended ones not counted."""
    workers = psutil.Process().children(recursive=True)
    return time.process_time() + sum(sum(w.cpu_times()[:2]) for w in workers)


def rate(step: Callable[[np.ndarray], object], count: int, seconds: float) -> Pace:
    """Random play after a short start."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        step(rng.integers(0, 16, count))
    done, used, begin = 0, processor(), time.perf_counter()
    while (took := time.perf_counter() - begin) < seconds:
        step(rng.integers(0, 16, count))
        done += count
    return Pace(done / took, (processor() - used) / done)


def ours(name: str, view: View, storage: Storage, count: int, seconds: float) -> Pace:
    """One of our backends."""
    config = DuelConfig(obs=view, stack=1, levels=(3,), threads=1)
    encoding = Encoding.choose(config.spec(), storage)
    backends = {"serial": Serial(), "plain threads": Threads(), "shared_memory": SharedMemory()}
    if name == "threads":
        threads = Threads(threads=os.cpu_count() or 1)
        env = config.make_vec(count, encoding, MEMORY, threads, "train")
    else:
        env = backends[name].build(config, count, encoding, MEMORY)
    env.reset(0)
    try:
        return rate(env.step, count, seconds)
    finally:
        env.close()


def sb3(view: View, count: int, seconds: float) -> Pace:
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


def paces(name: str, count: int, seconds: float) -> Iterator[Pace | None]:
    """A backend in every form."""
    for view, storage in FORMS.values():
        if name != "sb3":
            yield ours(name, view, storage, count, seconds)
        elif count > 8 and view not in (View.rgb, View.gray):
            yield None
        else:
            yield sb3(view, count, seconds)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    counts = [int(n) for n in sys.argv[2:]] or [8, 32]
    load = ", ".join(f"{n:.1f}" for n in psutil.getloadavg())
    print(f"{psutil.cpu_count()} cores, load before (1, 5, 15 minutes): {load}")
    head = f"{'':<16}" + "".join(f"{form:>28}" for form in FORMS)
    for count in counts:
        print(f"\n{count} environments, {SKIP} frames per step: steps/s (frames/s), cpu per step")
        print(head)
        found: dict[str, list[Pace | None]] = {}
        for name in ("sb3", "serial", "threads", "plain threads", "shared_memory"):
            found[name] = list(paces(name, count, seconds))
            cells = [str(pace) if pace else "-" for pace in found[name]]
            print(f"{name:<16}" + "".join(f"{cell:>28}" for cell in cells), flush=True)
        plain = found.pop("sb3")
        for name, own in found.items():
            shares = [
                f"{a.steps / b.steps:.2f} x, cpu 1/{b.cpu / a.cpu:.2f}" if a and b else "-"
                for a, b in zip(own, plain, strict=True)
            ]
            print(f"{name + ' / sb3':<16}" + "".join(f"{share:>28}" for share in shares))


if __name__ == "__main__":
    main()
