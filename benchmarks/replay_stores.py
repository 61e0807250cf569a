"""What a replay of Atari frames takes, beside stable-baselines3's own: bytes, add, draw.

    python benchmarks/replay_stores.py [steps per game]      (extra: pip install 'frugal-rl[atari]')

Random play, 84 x 84, skip 4, four frames stacked, life loss ends an episode (SB3's AtariWrapper).
Ours is made for one million transitions, SB3's for 150,000; all get the same ones in turn. What
ours takes in full is extrapolated: tables as allocated, rows by what the rows so far took each;
SB3's is arithmetic. Times are
medians of processor time, one thread, stores interleaved; every draw is compared value by value.
"""

import sys
import time
from dataclasses import dataclass, field

import ale_py
import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common import buffers as stock
from stable_baselines3.common.atari_wrappers import AtariWrapper

from frugal_rl import ReplayBuffer

GAMES = ("Pong", "Breakout", "MsPacman", "SpaceInvaders", "Seaquest")
CAPACITY = 1_000_000
THEIRS = 150_000
"""One million of SB3's transitions, 56 GB, cannot even be allocated on the machine of the table."""
SPACE = spaces.Box(0, 255, (4, 84, 84), np.uint8)
DRAWS = 60


@dataclass
class Timed:
    """A store and the processor time that it took."""

    name: str
    store: stock.ReplayBuffer
    adds: list[float] = field(default_factory=list)
    draws: dict[int, list[float]] = field(default_factory=lambda: {32: [], 256: []})

    def add(self, *transition) -> None:
        """One transition, timed."""
        begin = time.process_time()
        self.store.add(*transition)
        self.adds.append(time.process_time() - begin)

    def draw(self, size: int, seed: int):
        """A minibatch, timed."""
        np.random.seed(seed)  # noqa: NPY002 - SB3's stream
        begin = time.process_time()
        drawn = self.store.sample(size)
        self.draws[size].append(time.process_time() - begin)
        return drawn


def stores() -> list[Timed]:
    actions = spaces.Discrete(18)
    one = {"handle_timeout_termination": False, "optimize_memory_usage": True}
    return [
        Timed("frugal_rl", ReplayBuffer(CAPACITY, SPACE, actions, "cpu")),
        Timed("SB3", stock.ReplayBuffer(THEIRS, SPACE, actions, "cpu")),
        Timed("SB3, optimised", stock.ReplayBuffer(THEIRS, SPACE, actions, "cpu", **one)),
    ]


def play(game: str, steps: int):
    """Transitions of random play, stacked as SB3's VecFrameStack does."""
    env = AtariWrapper(gym.make(f"ALE/{game}-v5", frameskip=1, repeat_action_probability=0.25))
    env.action_space.seed(0)
    stack = np.zeros((1, 4, 84, 84), np.uint8)
    stack[0, -1] = env.reset(seed=0)[0][..., 0]
    for _ in range(steps):
        action = env.action_space.sample()
        seen, reward, ended, cut, _ = env.step(action)
        after = np.concatenate([stack[:, 1:], seen[None, None, ..., 0]], axis=1)
        info = [{"TimeLimit.truncated": cut and not ended}]
        yield stack, after, np.array([action]), np.array([reward]), np.array([ended or cut]), info
        stack = after
        if ended or cut:
            stack = np.zeros_like(stack)
            stack[0, -1] = env.reset()[0][..., 0]


def in_full(store: ReplayBuffer) -> float:
    """Gigabytes of one million transitions."""
    parts = store.parts()
    tables = sum(n for name, n in parts.items() if name.split("/")[-1] in ("scalars", "codes"))
    column = store.columns["obs"].decided()
    tables += (
        sum(t.nbytes for t in (column.rows.starts, column.rows.links, column.rows.bases))
        + column.rows.anchor_of.nbytes
        + column.rows._users.nbytes
    )
    rows = sum(parts.values()) - tables
    return (tables + rows * CAPACITY / store.size()) / 1e9


def measure(game: str, steps: int) -> None:
    timed = stores()
    for transition in play(game, steps):
        for each in timed:
            each.add(*transition)
    for seed in range(DRAWS):
        for size in (32, 256):
            ours, theirs, _ = (each.draw(size, seed) for each in timed)
            pairs = zip(ours[:5], theirs[:5], strict=True)
            assert all(torch.equal(mine, other) for mine, other in pairs)
    full = [
        in_full(timed[0].store),
        56.456,
        28.232,
    ]  # theirs: frames of 7,056 B eight or four times
    base = timed[1]
    for each, gigabytes in zip(timed, full, strict=True):
        filled = np.mean(each.adds[100:]) / np.mean(base.adds[100:])
        steady = np.median(each.adds[100:])
        ratios = [np.median(each.draws[n]) / np.median(base.draws[n]) for n in (32, 256)]
        print(
            f"| {game} | {each.name} | {gigabytes:.3f} | {filled:.2f} | {steady * 1e6:.0f} | "
            f"{np.median(each.draws[32]) * 1e3:.2f} | {ratios[0]:.2f} | {ratios[1]:.2f} |",
            flush=True,
        )


def main() -> None:
    gym.register_envs(ale_py)
    torch.set_num_threads(1)
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    warm = Timed("warm", ReplayBuffer(200, SPACE, spaces.Discrete(18), "cpu"))
    for transition in play("Pong", 200):
        warm.add(*transition)
    warm.draw(32, 0)
    print(f"{steps:,} steps of each game, capacity {CAPACITY:,}\n")
    print("| game | store | GB in full | add / SB3's (mean) | add, median us | draw 32, ms | "
          "draw 32 / SB3's | draw 256 / SB3's |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for game in GAMES:
        measure(game, steps)


if __name__ == "__main__":
    main()
