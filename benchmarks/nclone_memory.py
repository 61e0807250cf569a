"""What N++ environments hold: each further one, a thousand in one process, and a long run.

    python benchmarks/nclone_memory.py                 # bytes per environment, a thousand of them
    python benchmarks/nclone_memory.py --leak 1000000  # growth over so many steps

Each number is a process of its own. Its memory is the unique set size (USS, what would be free if
it ended) read from the kernel: of the interpreter with kernels loaded, then with 1 and with N
environments after 64 steps of random play on the 1,600 proved levels of the five easy categories
(resets included). Frames and graphs are derived fields: a step stores what they are drawn from.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

LEVELS = ("simplest", "simplest_few_mines", "simplest_with_mines", "simpler", "simple")
PROFILES = ("state", "graph", "pixels", "full")
STEPS = 64
MIB = 2**20


def uss() -> int:
    import psutil

    return int(psutil.Process().memory_full_info().uss)


def build(obs: str, num_envs: int, levels: tuple[str, ...]) -> Any:
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.choices import Storage
    from frugal_rl.observation.encoding import Encoding
    from nclone.config import NppConfig
    from nclone.spec import Observation
    from nclone.vec_env import NppVecEnv

    config = NppConfig(obs=Observation(obs), levels=levels)
    encoding = Encoding.choose(config.spec(), Storage.lossless)
    return NppVecEnv(config, num_envs, encoding, MemoryProfile(), threads=1)


def play(env: Any, steps: int) -> int:
    """Random actions; returns how many episodes ended."""
    import numpy as np

    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(steps):
        ended += int(env.step(rng.integers(0, 6, env.num_envs)).done.sum())
    return ended


def sizes(obs: str, num_envs: int) -> dict[str, Any]:
    """USS with kernels loaded, and beside `num_envs` environments that have played."""
    from frugal_rl.memory.allocator import pin_allocator

    pin_allocator()
    small = build(obs, 2, ("walk",))
    small.reset(0)
    play(small, 4)
    del small
    bare = uss()
    env = build(obs, num_envs, LEVELS)
    env.reset(0)
    ended = play(env, STEPS)
    return {"bare": bare, "process": uss(), "ended": ended, "parts": env.parts()}


def leak(obs: str, num_envs: int, steps: int) -> dict[str, Any]:
    """USS every tenth of a long run on all levels of the bundled pool."""
    from frugal_rl.memory.allocator import pin_allocator
    from nclone.levels.generators import PLAIN

    pin_allocator()
    env = build(obs, num_envs, tuple(PLAIN))
    env.reset(0)
    for number in env.game.levels.number:  # the bounded table of distances fills once
        env.game.distances.release(env.game.distances.acquire(int(number), 0))
    found, ended = [], 0
    for _ in range(11):
        ended += play(env, max(1, steps // num_envs // 10))
        found.append(uss())
    return {"uss": found, "ended": ended, "levels": len(env.level_names)}


def child(*words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--child", *words], capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def report_sizes(num_envs: int) -> None:
    print(f"{num_envs:,} environments, 1,600 levels, {STEPS} steps each; one process per number")
    print(
        "| observation | kernels loaded | with 1 environment | with all | each further one "
        "| of it arrays | episodes |"
    )
    print("|---|---|---|---|---|---|---|")
    for obs in PROFILES:
        one, many = child("sizes", obs, "1"), child("sizes", obs, str(num_envs))
        each = (many["process"] - one["process"]) / (num_envs - 1)
        shared = ("levels", "path distances", "graphs")
        own = sum(v for name, v in many["parts"].items() if name not in shared) / num_envs
        print(
            f"| {obs} | {many['bare'] / MIB:.0f} MiB | {one['process'] / MIB:.0f} MiB "
            f"| {many['process'] / MIB:.0f} MiB | {each / 1024:.1f} KiB | {own / 1024:.1f} KiB "
            f"| {many['ended']:,} |",
            flush=True,
        )


def report_leak(num_envs: int, steps: int) -> None:
    print(f"{steps:,} steps of {num_envs} environments on all levels of the pool, USS in MiB")
    for obs in PROFILES:
        r = child("leak", obs, str(num_envs), str(steps))
        series = " ".join(f"{value / MIB:.1f}" for value in r["uss"])
        growth = (r["uss"][-1] - r["uss"][1]) / MIB
        print(f"{obs}: {series}; from 20 % on {growth:+.1f} MiB; {r['ended']:,} episodes, "
              f"{r['levels']:,} levels", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Memory of N++ environments.")
    parser.add_argument("--envs", type=int, default=1000)
    parser.add_argument("--leak", type=int, default=0, help="steps of a long run")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        what, obs, *numbers = args.child
        answer = sizes if what == "sizes" else leak
        print(json.dumps(answer(obs, *(int(n) for n in numbers))))
    elif args.leak:
        report_leak(128, args.leak)
    else:
        report_sizes(args.envs)


if __name__ == "__main__":
    main()
