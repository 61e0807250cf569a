"""One-shot scheduling as a task: scores in, relative value of the decoded schedule out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mine_rl_npv.optimise.bound import Bound, relaxation
from mine_rl_npv.optimise.decode import Decoder, Schedule, empty_schedule, list_schedule, prune
from mine_rl_npv.optimise.paced import fill_paced
from mine_rl_npv.optimise.problem import Problem, prepare
from mine_rl_npv.optimise.shift import shift_search
from mine_rl_npv.priority.features import block_features

if TYPE_CHECKING:
    from frugal_rl.learn.ranks import Ranks
    from mine_rl_npv.data.instance import Instance


@dataclass(frozen=True)
class Mine:
    """A deposit ready for a priority policy."""

    problem: Problem
    features: np.ndarray
    """(m, F) float32."""
    bound: Bound

    def decode(self, priority: np.ndarray, decoder: Decoder) -> Schedule:
        """The schedule of priorities (m,)."""
        two_pass = decoder is not Decoder.forward
        if self.problem.pace is not None:
            plan = empty_schedule(self.problem)
            fill_paced(self.problem, plan, priority, two_pass)
            return plan
        plan = list_schedule(self.problem, priority, two_pass)
        if decoder is Decoder.shift:
            shift_search(self.problem, plan, rounds=4, group=0)
        return plan

    def polish(self, plan: Schedule) -> None:
        """What closes a run: group moves and an optimal prune, in place; with a pace the prune."""
        if self.problem.pace is not None:
            prune(self.problem, plan)
            return
        shift_search(self.problem, plan, rounds=30, group=400)
        prune(self.problem, plan)
        shift_search(self.problem, plan, rounds=30, group=400)

    def worth(self, plan: Schedule) -> float:
        """Discounted value over the certified LP bound; at most 1."""
        return self.problem.worth(plan.period, plan.destination) / (self.bound.upper or 1.0)


def open_mine(
    instance: Instance, lp_features: bool, destinations: bool = False, bound: Bound | None = None
) -> Mine:
    """Bounds an instance, cuts it to its pit and computes its features."""
    bound = bound or relaxation(instance, destinations)
    problem = prepare(instance, destinations, bound.prices)
    return Mine(problem, block_features(problem, bound if lp_features else None), bound)


class PriorityTask:
    """Values of many score vectors on one or more mines, on all cores of all ranks.

    Kernels and BLAS calls leave the interpreter lock, so plain threads run side by side. Ranks that
    are given the same candidates each decode their own, and all of them know all values.
    """

    def __init__(
        self, mines: list[Mine], decoder: Decoder, threads: int = 2, ranks: Ranks | None = None
    ) -> None:
        self.mines = mines
        self.decoder = decoder
        self.ranks = ranks
        self.pool = ThreadPoolExecutor(threads)

    def values(self, score: object, candidates: np.ndarray, chosen: list[int]) -> np.ndarray:
        """Mean relative value (C,) of each candidate over the chosen mines.

        Args:
            score: callable (candidate, mine) -> priority (m,).
            candidates: (C, ...) whatever `score` reads.
            chosen: indices of mines.
        """

        def one(candidate: np.ndarray) -> float:
            total = 0.0
            for i in chosen:
                mine = self.mines[i]
                total += mine.worth(mine.decode(score(candidate, mine), self.decoder))
            return total / len(chosen)

        own = np.array(list(self.pool.map(one, candidates[self.own])))
        if self.ranks is None:
            return own
        values = np.empty(len(candidates))
        for rank, found in enumerate(self.ranks.gathered(own)):
            values[rank :: self.ranks.size] = found
        return values

    @property
    def own(self) -> slice:
        """Which candidates this rank decodes."""
        return slice(None) if self.ranks is None else slice(self.ranks.rank, None, self.ranks.size)

    def close(self) -> None:
        """Ends the threads."""
        self.pool.shutdown()
