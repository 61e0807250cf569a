"""Environment steps per second of the native mine environments.

    python benchmarks/mine_steps.py [DIR/NAME ...] [--seconds 3] [--threads 1]

`rules` is the game alone with random allowed actions; `rows` adds what a rollout stores (encoded
rows of the action log); `dense` builds the 17 float32 channels of every observation as well, and
shows the bytes per second that this writes. Each thread steps a batch of its own.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from mine_rl_npv.config import MineConfig
from mine_rl_npv.rules import steps
from mine_rl_npv.rules.choices import Kind


def rate(make, threads: int, num_envs: int, seconds: float) -> tuple[float, float]:
    """Steps per second of wall time, and of processor time (for busy machines).

    Args:
        make: builds one batch and gives the function that steps it.
        threads: batches side by side.
        num_envs: pits of one batch.
        seconds: how long.
    """
    steppers = [make() for _ in range(threads)]
    for step in steppers:
        step()

    def count(step) -> int:
        done = 0
        while time.perf_counter() - started < seconds:
            step()
            done += num_envs
        return done

    started, used = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        steps = sum(pool.map(count, steppers))
    wall, cpu = time.perf_counter() - started, time.process_time() - used
    return steps / wall, steps / cpu


def rules_alone(config: MineConfig, many: int):
    """Digs random allowed columns in `many` pits."""
    mines = config.mines().chosen("train")
    game = config.game(many)
    game.seed([np.random.default_rng(n) for n in range(many)])
    game.begin(np.arange(many), mines)
    actions = np.zeros(many, np.int64)

    def dig() -> None:
        steps.sample_columns(game.pits, game.arena.value.shape[1], actions)
        game.advance(actions)
        over = np.flatnonzero(game.terminated | game.truncated)
        if len(over):
            game.begin(over, mines)

    return dig


def with_rows(config: MineConfig, encoding: Encoding, count: int):
    """The same in a vector environment, rows included."""
    vec_env = config.make_vec(count, encoding, MemoryProfile(), None, "train")
    vec_env.reset(0)
    drawn = np.zeros(count, np.int64)

    def step() -> None:
        steps.sample_columns(vec_env.game.pits, vec_env.game.arena.value.shape[1], drawn)
        vec_env.step(drawn)

    return step


def measure(name: str, kind: Kind, args: argparse.Namespace, many: int, few: int) -> None:
    config = MineConfig(data=name, kind=kind, max_steps=1000 if kind is Kind.daily else 0)
    short, threads, seconds = Path(name).name, args.threads, args.seconds

    def show(what: str, make, count: int, row_bytes: int = 0) -> None:
        wall, cpu = rate(make, threads, count, seconds)
        tail = (
            f", {wall * row_bytes / 2**30:.1f} GiB/s of {row_bytes:,} B rows" if row_bytes else ""
        )
        print(
            f"{short} {kind.value}: {what} {wall:12,.0f} steps/s, {cpu:12,.0f} per CPU s "
            f"({threads} x {count} pits){tail}",
            flush=True,
        )

    show("rules", lambda: rules_alone(config, many), many)
    lossless, dense = (Encoding.choose(config.spec(), s) for s in (Storage.lossless, Storage.dense))
    show("rows ", lambda: with_rows(config, lossless, many), many)
    show("dense", lambda: with_rows(config, dense, few), few, dense.row_bytes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="*")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    for name in args.instances:
        measure(name, Kind.cpit, args, 256, 16)
    measure("porphyry_full", Kind.daily, args, 64, 4)


if __name__ == "__main__":
    main()
