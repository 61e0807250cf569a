"""Adds and draws of a rollout with and without `compact`, the same recorded rows in turn.

`python benchmarks/gymnasium_adds.py [name ...]`; worlds are those of gymnasium_worlds.py. Each is
played for a while; what it showed is then added to both buffers, 16 steps to one and then to the
other, and each full rollout is drawn twice from both. What an algorithm does between those calls is
left out, so that the ratio says something on a busy machine as well. Stock's buffer takes new
memory for each rollout, as it does in training. gymnasium_adds.md holds what it printed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium_worlds import WORLDS
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer

from frugal_rl.sb3 import CompactRolloutBuffer

STEPS, ENVS, BLOCK, BATCH = 128, 4, 16, 256
PLAYED, ROLLOUTS, FIRST = 3, 18, 5
"""Rollouts that are played, that are filled in all, and the first one that counts: forms are chosen
in those before."""


def record(env: Any, steps: int) -> list[tuple[Any, np.ndarray]]:
    """What random play shows, lying in memory as it came, and which episodes begin there."""
    env.action_space.seed(0)
    shown, began, kept = env.reset(), np.ones(ENVS, bool), []
    for _ in range(steps):
        several = isinstance(shown, dict)
        copy = {k: v.copy("K") for k, v in shown.items()} if several else shown.copy("K")
        kept.append((copy, began))
        shown, _, began, _ = env.step(np.array([env.action_space.sample() for _ in range(ENVS)]))
    return kept


class Filled:
    """One buffer that is filled with recorded rows."""

    def __init__(self, kind: Any, env: Any) -> None:
        self.buffer = kind(STEPS, env.observation_space, env.action_space, "cpu", n_envs=ENVS)
        action = np.array([env.action_space.sample() for _ in range(ENVS)])
        self.others = action.reshape(ENVS, -1), np.zeros(ENVS, np.float32)
        self.numbers = torch.zeros(ENVS, 1), torch.zeros(ENVS)

    def add(self, rows: list[tuple[Any, np.ndarray]]) -> None:
        """Some steps."""
        for shown, began in rows:
            self.buffer.add(shown, *self.others, began, *self.numbers)

    def draw(self) -> None:
        """Two epochs of minibatches."""
        for _ in range(2):
            for _ in self.buffer.get(BATCH):
                pass


def measure(name: str) -> str:
    """A row of the table."""
    env = WORLDS[name](ENVS)
    rows = record(env, PLAYED * STEPS)
    stock = DictRolloutBuffer if isinstance(env.observation_space, spaces.Dict) else RolloutBuffer
    pair = Filled(CompactRolloutBuffer, env), Filled(stock, env)
    adds: list[tuple[float, float]] = []
    draws: list[tuple[float, float]] = []
    for rollout in range(ROLLOUTS):
        for filled in pair:
            filled.buffer.reset()
        for begin in range(0, STEPS, BLOCK):
            first = rollout % PLAYED * STEPS + begin
            adds.append(in_turn(pair, Filled.add, len(adds), rows[first : first + BLOCK]))
        for filled in pair:
            filled.buffer.compute_returns_and_advantage(filled.numbers[0], rows[0][1])
        draws.append(in_turn(pair, Filled.draw, rollout))
    found = [np.array(adds[FIRST * STEPS // BLOCK :]) * 1000 / BLOCK, np.array(draws[FIRST:])]
    words = []
    for times in found:
        ratios = times[:, 0] / times[:, 1]
        low, middle, high = np.percentile(ratios, [25, 50, 75])
        ours, theirs = np.median(times, axis=0)
        words.append(f"{ours:.2f} | {theirs:.2f} | {middle:.2f} ({low:.2f}, {high:.2f})")
    return f"| {name} | {' | '.join(words)} |"


def in_turn(pair: Any, call: Callable[..., None], turn: int, *given: Any) -> tuple[float, float]:
    """Milliseconds of a call on both, by the clock; who begins changes."""
    spent = {}
    for which in (turn % 2, 1 - turn % 2):
        begin = time.perf_counter_ns()
        call(pair[which], *given)
        spent[which] = (time.perf_counter_ns() - begin) / 1e6
    return spent[0], spent[1]


def main() -> None:
    torch.set_num_threads(1)
    print("| world | add, us: ours | SB3 | ratio (quartiles) | draws, ms: ours | SB3 | ratio |")
    print("|---" * 7 + "|")
    for name in sys.argv[1:] or ["Pong, 4 x 84 x 84", "Breakout, 4 x 84 x 84", "CartPole"]:
        print(measure(name), flush=True)


if __name__ == "__main__":
    main()
