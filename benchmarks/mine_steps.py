"""Environment steps per second of the native mine environments, one thread.

    python benchmarks/mine_steps.py [DIR/NAME ...] [--seconds 3]

`rules` is the game alone with random allowed actions; `rows` adds what a rollout stores (encoded
rows of the action log); `dense` builds the 17 float32 channels of every observation as well, and
shows the bytes per second that this writes.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from mine_rl_npv import rules
from mine_rl_npv.config import MineConfig
from mine_rl_npv.mines import Kind


def rate(step, num_envs: int, seconds: float) -> tuple[float, float]:
    """Steps per second of wall time, and of processor time (for busy machines)."""
    step()
    started, used, steps = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - started < seconds:
        step()
        steps += num_envs
    wall, cpu = time.perf_counter() - started, time.process_time() - used
    return steps / wall, steps / cpu


def measure(name: str, kind: Kind, seconds: float, many: int, few: int) -> None:
    config = MineConfig(data=name, kind=kind, max_steps=1000 if kind is Kind.daily else 0)
    mines = config.mines().chosen("train")
    game = config.game(many)
    game.seed(np.arange(1, many + 1).astype(np.uint64) * np.uint64(7919))
    game.begin(np.arange(many), mines)
    actions = np.zeros(many, np.int64)

    def dig() -> None:
        rules.sample_columns(game.pits, game.arena.value.shape[1], actions)
        game.advance(actions)
        over = np.flatnonzero(game.terminated | game.truncated)
        if len(over):
            game.begin(over, mines)

    wall, cpu = rate(dig, many, seconds)
    print(f"{name} {kind.value}: rules {wall:12,.0f} steps/s, {cpu:12,.0f} per CPU s ({many} pits)")
    for storage, count in ((Storage.lossless, many), (Storage.dense, few)):
        encoding = Encoding.choose(config.spec(), storage)
        vec_env = config.make_vec(count, encoding, MemoryProfile(), None, "train")
        vec_env.reset(0)
        drawn = np.zeros(count, np.int64)

        def step(vec_env=vec_env, drawn=drawn) -> None:
            rules.sample_columns(vec_env.game.pits, vec_env.game.arena.value.shape[1], drawn)
            vec_env.step(drawn)

        wall, cpu = rate(step, count, seconds)
        label = "rows " if storage is Storage.lossless else "dense"
        tail = "" if storage is Storage.lossless else (
            f", {cpu * encoding.row_bytes / 2**30:.1f} GiB/s of {encoding.row_bytes:,} B rows"
        )  # fmt: skip
        speed = f"{wall:12,.0f} steps/s, {cpu:12,.0f} per CPU s"
        print(f"{name} {kind.value}: {label} {speed} ({count} pits){tail}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="*")
    parser.add_argument("--seconds", type=float, default=3.0)
    args = parser.parse_args()
    for name in args.instances:
        measure(name, Kind.cpit, args.seconds, 256, 16)
    measure("porphyry_full", Kind.daily, args.seconds, 64, 4)


if __name__ == "__main__":
    main()
