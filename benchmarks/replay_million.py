"""One million Atari transitions really stored: resident bytes, draw, and every row compared.

    python benchmarks/replay_million.py [game ...]        (extra: pip install 'frugal-rl[atari]')
    python benchmarks/replay_million.py adds [game ...]   adds of 15,000 transitions, beside SB3's

ALE's own vector environment of one game (84 x 84, skip 4, four frames stacked, sticky actions, a
lost life ends an episode), random play. While it plays, a digest of every observation is kept;
when the store is full, every row of it is drawn once, in random order, and compared with what was
played. Then SB3's buffer of as many transitions as fit beside it (its million takes 56 GB) is
filled with rows drawn from ours, and both draw in turn. Adds are timed as the game is played, both
stores in turn. Times are processor time of one thread. A process for each game; a game whose row
stands in replay_million.md is not played again.
"""

import gc
import hashlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ale_py.vector_env import AtariVectorEnv
from gymnasium import spaces
from stable_baselines3.common import buffers as stock

from frugal_rl import ReplayBuffer
from frugal_rl.memory import usage

GAMES = {"Pong": "pong", "Breakout": "breakout", "MsPacman": "ms_pacman",
         "SpaceInvaders": "space_invaders", "Seaquest": "seaquest"}  # fmt: skip
CAPACITY = 1_000_000
SPACE, ACTIONS = spaces.Box(0, 255, (4, 84, 84), np.uint8), spaces.Discrete(18)
THEIR_TRANSITION = 2 * 4 * 84 * 84 + 16
BATCHES = {32: 200, 256: 60}
PAGE = Path(__file__).with_suffix(".md")


@dataclass
class Truth:
    """What was played, by its digests and scalars.

    seen, led  [T] uint64   digests of observations and of what the steps led to
    scalars    [T, 3] float32 action, reward, end
    """

    seen: np.ndarray
    led: np.ndarray
    scalars: np.ndarray

    def keep(self, at: int, transition: tuple[Any, ...]) -> None:
        """Transition number `at`."""
        now, then, action, reward, done, _ = transition
        self.seen[at], self.led[at] = digest(now), digest(then)
        self.scalars[at] = action[0], reward[0], done[0]

    def differing(self, rows: np.ndarray, drawn: Any) -> int:
        """How many of these drawn rows are not what was played."""
        rest = (drawn.actions, drawn.rewards, drawn.dones)
        equal = np.all(torch.cat([x.float() for x in rest], 1).numpy() == self.scalars[rows], 1)
        pairs = ((drawn.observations, self.seen), (drawn.next_observations, self.led))
        for stacks, told in pairs:
            equal &= np.array([digest(s) for s in stacks.numpy()]) == told[rows]
        return int(np.count_nonzero(~equal))


def digest(values: np.ndarray) -> int:
    """64 bits that tell one observation from another."""
    hashed = hashlib.sha1(np.ascontiguousarray(values), usedforsecurity=False).digest()
    return int.from_bytes(hashed[:8], "little")


def play(game: str, steps: int) -> Iterator[tuple[Any, ...]]:
    """Transitions of random play, as an off-policy algorithm adds them."""
    env = AtariVectorEnv(
        GAMES[game], num_envs=1, num_threads=1, episodic_life=True,
        repeat_action_probability=0.25, use_fire_reset=game == "Breakout",
    )  # fmt: skip
    random = np.random.default_rng(0)
    now, ended = env.reset(seed=0)[0].copy(), False
    while steps > 0:
        action = random.integers(0, env.single_action_space.n, 1)
        seen, reward, over, cut, _ = env.step(action)
        then = seen.copy()
        if not ended:  # the step after an end begins the next episode
            limit = [{"TimeLimit.truncated": bool(cut[0] and not over[0])}]
            yield now, then, action, reward.astype(np.float32), over | cut, limit
            steps -= 1
        now, ended = then, bool(over[0] or cut[0])
    env.close()


def seconds(call: Callable[..., Any], *arguments: Any) -> float:
    """Processor time of one call in this thread."""
    begin = time.thread_time_ns()
    call(*arguments)
    return (time.thread_time_ns() - begin) / 1e9


def fill(game: str, store: ReplayBuffer, truth: Truth) -> float:
    """Play until the store is full; mean seconds of an add."""
    spent = 0.0
    for at, transition in enumerate(play(game, len(truth.seen))):
        truth.keep(at, transition)
        spent += seconds(store.add, *transition)
        if at % 100_000 == 0:
            print(f"  {game}: {at:,} stored, {store.nbytes / 1e6:,.0f} MB", flush=True)
    return spent / len(truth.seen)


def compared(store: ReplayBuffer, truth: Truth) -> int:
    """How many of all rows, each drawn once, are not what was played."""
    order = np.random.default_rng(1).permutation(len(truth.seen))
    nothing = np.zeros(256, np.int64)
    batches = [order[i : i + 256] for i in range(0, len(order), 256)]
    return sum(truth.differing(b, store._samples_at(b, nothing[: len(b)])) for b in batches)


def theirs_of(store: ReplayBuffer, rows: int) -> stock.ReplayBuffer:
    """SB3's buffer, filled with the first rows of ours."""
    theirs = stock.ReplayBuffer(rows, SPACE, ACTIONS, "cpu")
    for begin in range(0, rows, 500):
        drawn = store._samples_at(np.arange(begin, begin + 500), np.zeros(500, np.int64))
        for i in range(500):
            theirs.add(*(x[i : i + 1].numpy() for x in drawn[:2]),
                       *(x[i].numpy() for x in (drawn.actions, drawn.rewards, drawn.dones)),
                       [{}])  # fmt: skip
    return theirs


def adds(game: str, steps: int) -> str:
    """Adds of both while a game is played; a row of the table.

    SB3's twice: into pages that the system gives meanwhile, as while its ring fills for the first
    time, and into pages that are there, as from then on.
    """
    stores = (
        ReplayBuffer(CAPACITY, SPACE, ACTIONS, "cpu"),
        stock.ReplayBuffer(steps, SPACE, ACTIONS),
        stock.ReplayBuffer(steps, SPACE, ACTIONS),
    )
    stores[2].observations[...] = stores[2].next_observations[...] = 1
    spent: tuple[list[float], ...] = ([], [], [])
    for at, transition in enumerate(play(game, steps)):
        for turn in range(3):
            which = (at + turn) % 3
            spent[which].append(seconds(stores[which].add, *transition) * 1e6)
    means, medians = (np.array([f(x[100:]) for x in spent]) for f in (np.mean, np.median))
    told = [f"{mean:.0f} / {median:.0f}" for mean, median in zip(means, medians, strict=True)]
    ratios = " | ".join(f"{x[0] / x[i]:.2f}" for i in (1, 2) for x in (means, medians))
    return f"| {game} | {' | '.join(told)} | {ratios} |"


def draws(store: ReplayBuffer, theirs: stock.ReplayBuffer, size: int) -> tuple[float, float]:
    """Median seconds of a draw of ours and of SB3's, in turn."""
    pairs = [(seconds(store.sample, size), seconds(theirs.sample, size))
             for _ in range(BATCHES[size])]  # fmt: skip
    return tuple(np.median(pairs, axis=0))  # type: ignore[return-value]


def measure(game: str, steps: int, their_rows: int) -> str:
    """All of a game; a row of the table."""
    torch.set_num_threads(1)
    warm = ReplayBuffer(300, SPACE, ACTIONS, "cpu")
    for transition in play(game, 300):
        warm.add(*transition)
    warm.sample(256), warm.sample(32)
    truth = Truth(*(np.ones(steps, np.uint64) for _ in range(2)), np.ones((steps, 3), np.float32))
    del warm
    gc.collect()
    before = usage.resident_bytes()
    store = ReplayBuffer(CAPACITY, SPACE, ACTIONS, "cpu")
    added = fill(game, store, truth)
    gc.collect()
    resident = usage.resident_bytes() - before
    wrong = compared(store, truth)
    theirs = theirs_of(store, their_rows)
    timed = {size: draws(store, theirs, size) for size in BATCHES}
    columns = [
        game, f"{steps:,}", f"{store.nbytes / 1e9:.3f}", f"{resident / 1e9:.3f}",
        f"{store.nbytes / steps:.0f}", f"1/{THEIR_TRANSITION * steps / store.nbytes:.0f}",
        f"{wrong}", f"{added * 1e6:.0f}",
        *(f"{a * 1e3:.2f} / {b * 1e3:.2f} = {a / b:.2f}" for a, b in timed.values()),
    ]  # fmt: skip
    return f"| {' | '.join(columns)} |"


def enter(row: str) -> None:
    """Put a row behind the others of the page's first table."""
    table, gap, rest = PAGE.read_text().partition("|\n\n")
    PAGE.write_text(f"{table}|\n{row[:-1]}{gap}{rest}")


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
        return
    if sys.argv[1:2] == ["adds"]:
        for game in sys.argv[2:] or GAMES:
            print(adds(game, 15_000), flush=True)
        return
    for game in sys.argv[1:] or GAMES:
        if f"| {game} |" in PAGE.read_text():
            continue
        sizes = [str(CAPACITY), "150000"]
        command = [sys.executable, __file__, "--one", game, *sizes]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            for text in running.stdout:
                print(text, end="", flush=True)
                if text.startswith("|"):
                    enter(text.strip())


if __name__ == "__main__":
    main()
