"""The searcher as a player: the first win, then shorter ones for as long as the budget lasts.

Where distances lead nowhere (a trap door shuts on the shortest path) it goes on without them.
Searches with other seeds look for wins before the best one's frame; each win is then shortened by
leaving out steps, all candidates of a round played side by side.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nclone.levels.inputs import HOLD_FRAMES, Inputs
from nclone.search.proof import Prover
from nclone.sim.world import World

if TYPE_CHECKING:
    from nclone.levels.level import Level

BUDGET_FRAMES = 400_000
SEARCHES = 8
"""Seeds that share the budget that is left after the first win."""
SHORTENINGS = 64
"""Most rounds of leaving out steps."""
NEVER = np.iinfo(np.int64).max
"""The frame of a win that does not come."""


@dataclass(frozen=True)
class Solution:
    """Inputs that win, the win in the last frame, and the frames that were simulated to find them.

    actions  [T] uint8, one action 0..5 per frame
    """

    actions: np.ndarray
    frames_spent: int

    @property
    def frames(self) -> int:
        """Frames from the start to the win."""
        return len(self.actions)


def solutions(
    level: Level, budget_frames: int = BUDGET_FRAMES, seed: int = 0
) -> Iterator[Solution]:
    """Wins of a level, each shorter than the one before; none where the search finds none.

    The budget bounds the frames simulated for all of them (a search may end a few actions late);
    whoever stops asking has the best so far.
    """
    prover, spent = Prover(budget_frames=budget_frames), 0
    best: Solution | None = None
    for k in range(SEARCHES):
        if spent >= budget_frames or (best is None and k > 1):
            return
        left = budget_frames - spent
        # Before the first win: half of the budget led by distances, the rest without them.
        parts = SEARCHES - k if best is not None else 2 - k
        prover.budget_frames = max(1, left // parts)
        prover.frame_limit = None if best is None else best.frames
        proof = prover.prove(level, seed + k, guided=k == 0 or best is not None)
        spent += proof.frames_spent
        if proof.inputs is None:
            continue
        actions, played = shortened(level, proof.inputs, budget_frames - spent)
        spent += played
        if best is None or len(actions) < best.frames:
            best = Solution(actions, spent)
            yield best


def solve(level: Level, budget_frames: int = BUDGET_FRAMES, seed: int = 0) -> Solution | None:
    """The shortest win within the budget; None where none was found."""
    found = deque(solutions(level, budget_frames, seed), maxlen=1)
    return found[0] if found else None


def shortened(
    level: Level, inputs: Inputs, budget_frames: int = BUDGET_FRAMES
) -> tuple[np.ndarray, int]:
    """[T] actions that win, T at most that of `inputs`, and the frames that were simulated.

    Of all inputs that are one step of 4 frames shorter somewhere, those whose win comes first are
    taken, until none is left that wins sooner or another round would exceed the budget.
    """
    steps = inputs.per_step()
    frames, spent = _win_frames(level, steps[None])
    best = int(frames[0])
    for _ in range(SHORTENINGS):
        ends = np.flatnonzero(np.diff(steps, append=6))  # one step of each run of equal ones
        if spent + len(ends) * best > budget_frames:
            break
        tried = np.stack([np.delete(steps, at) for at in ends]) if len(steps) > 1 else steps[None]
        frames, played = _win_frames(level, tried)
        spent += played
        if frames.min() >= best:
            break
        best, steps = int(frames.min()), tried[int(frames.argmin())]
    return np.repeat(steps, HOLD_FRAMES)[:best], spent


def _win_frames(level: Level, steps: np.ndarray) -> tuple[np.ndarray, int]:
    """The frame of the win of each row of actions [M, T], `NEVER` for none; frames simulated."""
    world = World([level], np.zeros(len(steps), np.int32), threads=1)
    world.step(np.ascontiguousarray(steps.T), frames=HOLD_FRAMES)
    frames = np.where(world.won, world.frame.astype(np.int64), NEVER)
    return frames, int(world.frame.sum())
