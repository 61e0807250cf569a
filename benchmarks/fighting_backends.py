"""Environment steps per second of every backend and observation form, side by side in one run.

    python benchmarks/fighting_backends.py [seconds per cell] [environments ...] [profile=NAME]

Each cell: environment steps/s, emulated frames/s, and processor microseconds per step of all
processes together, which tell backends apart where the machine has other work (steps/s do not).
Below, how many times as many steps/s as `sb3` each backend makes: the median of three rounds and
their range, `sb3` and `threads` one after the other in each; of the other backends one round.

`threads`, which `batch` is another name of here, runs all cartridges on a few threads and does the
rest for all at once; `plain threads` steps single environments, as games without a batch do.
`sb3` is Stable-Baselines3's own `SubprocVecEnv` with one process per environment; with more than 8
environments it is timed for `rgb` and `packed` only (each process imports torch). With a profile's
name the cartridge is that of `env=fighting_game_boy`, else Duel.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import psutil

from fighting.cartridge.config import GameBoyConfig
from fighting.config import DuelConfig
from fighting.spec import View
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.vec_env.serial import Serial
from frugal_rl.vec_env.shared_memory import SharedMemory
from frugal_rl.vec_env.threads import Threads

NAMES = ("sb3", "threads", "serial", "plain threads", "shared_memory")
ROUNDS = 3
TWICE_WANTED = ("rgb", "packed")
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


def rate(step: Callable[[np.ndarray], object], actions: int, count: int, seconds: float) -> Pace:
    """Random play after a short start."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        step(rng.integers(0, actions, count))
    done, used, begin = 0, processor(), time.perf_counter()
    while (took := time.perf_counter() - begin) < seconds:
        step(rng.integers(0, actions, count))
        done += count
    return Pace(done / took, (processor() - used) / done)


def game(view: View) -> DuelConfig | GameBoyConfig:
    """Duel against its computer at level 3, or the cartridge of the profile that was named."""
    names = [word.partition("=")[2] for word in sys.argv if word.startswith("profile=")]
    if names:
        return GameBoyConfig(profile=names[0], obs=view, stack=1, max_pool=False, threads=1)
    return DuelConfig(obs=view, stack=1, levels=(3,), threads=1)


def ours(name: str, view: View, storage: Storage, count: int, seconds: float) -> Pace:
    """One of our backends."""
    config = game(view)
    encoding = Encoding.choose(config.spec(), storage)
    backends = {"serial": Serial(), "plain threads": Threads(), "shared_memory": SharedMemory()}
    if name == "threads":
        threads = Threads(threads=os.cpu_count() or 1)
        env = config.make_vec(count, encoding, MEMORY, threads, "train")
    else:
        env = backends[name].build(config, count, encoding, MEMORY)
    env.reset(0)
    try:
        return rate(env.step, int(env.action_space.n), count, seconds)
    finally:
        env.close()


def sb3(view: View, count: int, seconds: float) -> Pace:
    """Stable-Baselines3's subprocesses, each with a plain Gymnasium environment."""
    from stable_baselines3.common.vec_env import SubprocVecEnv

    # Loading the modules once, in the server that the workers fork from, shortens their start.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["stable_baselines3.common.env_util", "fighting.config"])

    def make() -> Callable[[], object]:
        return game(view).make

    env = SubprocVecEnv([make() for _ in range(count)], start_method="forkserver")
    env.reset()
    try:
        return rate(env.step, int(env.action_space.n), count, seconds)
    finally:
        env.close()


def paces(name: str, form: str, count: int, seconds: float) -> Pace | None:
    """One cell; None where SB3 would start too many processes for little."""
    view, storage = FORMS[form]
    if name != "sb3":
        return ours(name, view, storage, count, seconds)
    return sb3(view, count, seconds) if count <= 8 or form in TWICE_WANTED else None


def middle(found: list[Pace]) -> Pace:
    """The median of steps per second, and of processor seconds."""
    return Pace(
        float(np.median([p.steps for p in found])), float(np.median([p.cpu for p in found]))
    )


def against(own: list[Pace], plain: list[Pace]) -> str:
    """`2.31 x (2.20-2.40), cpu 1/2.2`: the median of the ratios within a round, and their range."""
    if not own or not plain:
        return "-"
    ratios = sorted(a.steps / b.steps for a, b in zip(own, plain, strict=False))
    cpu = float(np.median([b.cpu / a.cpu for a, b in zip(own, plain, strict=False)]))
    spread = f" ({ratios[0]:.2f}-{ratios[-1]:.2f})" if len(ratios) > 1 else ""
    return f"{float(np.median(ratios)):.2f} x{spread}, cpu 1/{cpu:.2f}"


def measured(count: int, seconds: float) -> dict[tuple[str, str], list[Pace]]:
    """Every backend in every form once; SB3 and `threads`, side by side, in each round."""
    found: dict[tuple[str, str], list[Pace]] = {(n, f): [] for n in NAMES for f in FORMS}
    for number in range(ROUNDS):
        for form in FORMS:
            for name in NAMES if number == 0 else NAMES[:2]:
                pace = paces(name, form, count, seconds)
                found[name, form] += [] if pace is None else [pace]
            print(f"round {number + 1} of {ROUNDS}: {form}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    words = [word for word in sys.argv[1:] if "=" not in word]
    seconds = float(words[0]) if words else 2.0
    counts = [int(n) for n in words[1:]] or [8, 32]
    load = ", ".join(f"{n:.1f}" for n in psutil.getloadavg())
    print(f"{psutil.cpu_count()} cores, load before (1, 5, 15 minutes): {load}")
    head = f"{'':<22}" + "".join(f"{form:>30}" for form in FORMS)
    for count in counts:
        found = measured(count, seconds)
        print(f"\n{count} environments, {SKIP} frames per step: steps/s (frames/s), cpu per step")
        print(head)
        for name in NAMES:
            cells = [str(middle(p)) if (p := found[name, form]) else "-" for form in FORMS]
            print(f"{name:<22}" + "".join(f"{cell:>30}" for cell in cells), flush=True)
        for name in NAMES[1:]:
            shares = [against(found[name, form], found["sb3", form]) for form in FORMS]
            print(f"{name + ' / sb3':<22}" + "".join(f"{share:>30}" for share in shares))


if __name__ == "__main__":
    main()
