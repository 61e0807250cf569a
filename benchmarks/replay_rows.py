"""Ten million rows drawn from a replay that goes on filling: each compared with SB3's own buffer.

    python benchmarks/replay_rows.py [rows]        (10,000,000 by default, about four minutes)

Both get the same transitions and draw with the same random numbers while their rings go round many
times: stacks, vectors, whole numbers and pictures; ends, time limits, resets in mid-stack and
observations that follow from nothing; one and eight environments; returns of one and three steps.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common import buffers as stock

from frugal_rl import ReplayBuffer

BATCH, STEPS, ADDED = 4096, 700, 25
"""Rows of a draw, steps that a ring holds, and steps between two draws."""
Transition = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[dict]]


@dataclass(frozen=True)
class Kind:
    """What is observed, and by how many; frames that are stacked, returns of how many steps."""

    shape: tuple[int, ...]
    dtype: type
    num_envs: int = 1
    stacked: bool = False
    n_steps: int = 1

    def space(self) -> spaces.Box:
        """Of one observation."""
        return spaces.Box(0, 255, self.shape, self.dtype)

    def buffers(self) -> tuple[stock.ReplayBuffer, stock.ReplayBuffer]:
        """Ours and SB3's."""
        given = STEPS * self.num_envs, self.space(), spaces.Discrete(4), "cpu", self.num_envs
        if self.n_steps == 1:
            return ReplayBuffer(*given), stock.ReplayBuffer(*given)
        several = {"n_steps": self.n_steps, "gamma": 0.9}
        return ReplayBuffer(*given, **several), stock.NStepReplayBuffer(*given, **several)


KINDS = (
    Kind((4, 24, 24), np.uint8, stacked=True),
    Kind((4, 24, 24), np.uint8, 8, stacked=True),
    Kind((3, 40), np.float32, 8, stacked=True, n_steps=3),
    Kind((17,), np.float32),
    Kind((6,), np.int16, 8, n_steps=3),
    Kind((20, 20, 3), np.uint8, 8),
)


def played(kind: Kind, dice: np.random.Generator) -> Iterator[Transition]:
    """Transitions without end; some of them break every rule that a replay may hope for."""
    shape, n = (kind.num_envs, *kind.shape), kind.num_envs
    frame = (1, *kind.shape[1:]) if kind.stacked else kind.shape

    def fresh(size: tuple[int, ...]) -> np.ndarray:
        return dice.integers(0, 256 if dice.random() < 0.5 else 2, size).astype(kind.dtype)

    now = fresh(shape)
    while True:
        then = now.copy()
        for env in range(n):
            if kind.stacked:
                then[env] = np.concatenate([now[env, 1:], fresh(frame)])
            elif dice.random() < 0.8:
                changed = dice.random(frame) < 0.1
                then[env][changed] = fresh(frame)[changed]
        done, cut = dice.random(n) < 0.05, dice.random(n) < 0.5
        following = then.copy()
        for env in np.flatnonzero(done):
            then[env] = begun(kind, fresh(frame), padded=dice.random() < 0.5)
        if dice.random() < 0.01:  # follows from nothing
            (then if dice.random() < 0.5 else following)[dice.integers(n)] = fresh(kind.shape)
        infos = [{"TimeLimit.truncated": bool(d and c)} for d, c in zip(done, cut, strict=True)]
        yield now, following, dice.integers(0, 4, n), dice.random(n), done, infos
        now = then


def begun(kind: Kind, first: np.ndarray, padded: bool) -> np.ndarray:
    """An episode's first observation: of a stack, behind frames of zeros or behind itself."""
    if not kind.stacked:
        return first
    stack = np.repeat(first, kind.shape[0], 0)
    if padded:
        stack[:-1] = 0
    return stack


def differing(kind: Kind, rows: int, seed: int) -> int:
    """How many of so many drawn rows are not those that SB3's buffer draws."""
    ours, theirs = kind.buffers()
    play, wrong = played(kind, np.random.default_rng(seed)), 0
    for draw in range(-(-rows // BATCH)):
        for _ in range(ADDED):
            transition = next(play)
            for buffer in (ours, theirs):
                buffer.add(*transition)
        drawn = []
        for buffer in (ours, theirs):
            np.random.seed(draw)  # noqa: NPY002 - SB3's stream
            drawn.append(buffer.sample(min(BATCH, rows - draw * BATCH)))
        equal = [
            torch.eq(a, b).flatten(1).all(1)
            for a, b in zip(*drawn, strict=True)
            if a is not None and b is not None
        ]
        wrong += int((~torch.stack(equal).all(0)).sum())
    return wrong


def main() -> None:
    """All kinds in turn; a row of the table each."""
    torch.set_num_threads(1)
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    each, total, wrong = -(-rows // len(KINDS)), 0, 0
    for seed, kind in enumerate(KINDS):
        here, found = min(each, rows - total), differing(kind, min(each, rows - total), seed)
        total, wrong = total + here, wrong + found
        words = f"{np.dtype(kind.dtype)} {list(kind.shape)}, {kind.num_envs} environments"
        print(f"{words}, returns of {kind.n_steps}: {here:,} rows, {found} differ", flush=True)
    print(f"{total:,} drawn rows, {wrong} differ")


if __name__ == "__main__":
    main()
