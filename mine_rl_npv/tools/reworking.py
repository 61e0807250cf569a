"""What closes method=best: the best plan found is reworked until the budget is spent."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mine_rl_npv.optimise.decode import Schedule
from mine_rl_npv.optimise.rework import Rework, ranks
from mine_rl_npv.priority.watch import Watch, going_on

if TYPE_CHECKING:
    import numpy as np

    from mine_rl_npv.priority.task import Mine
    from mine_rl_npv.tools.solve_config import SolveConfig

ROUND = 4
"""Times that all blocks are scheduled again before the clock is looked at."""
ENOUGH = 3000
"""Schedules that the search decodes before it gives up more than its least share."""
MOST = 0.8
"""Of the budget, for the search."""


class Heard:
    """Hands on what a search tells, and remembers whether it was stopped by Ctrl-C."""

    def __init__(self, watch: Watch | None) -> None:
        self.watch = watch
        self.stopped = False
        self.decodes = 0

    def __call__(self, seconds: float, decodes: int, best: float) -> None:
        """See `Watch`."""
        self.stopped = self.stopped or math.isnan(seconds)
        self.decodes = decodes
        if self.watch is not None:
            self.watch(seconds, decodes, best)


@dataclass(frozen=True)
class Shares:
    """Of a budget: what the search gets, and the rework after it. Decodes of 0: the clock counts.

    The search gets half, and more as long as it has decoded few schedules: a plan from a search
    that was broken off early is far from where reworking leads to.
    """

    search_seconds: float
    search_decodes: int
    rework_seconds: float
    rework_decodes: int

    @classmethod
    def of(cls, config: SolveConfig, decode_seconds: float) -> Shares:
        """The shares for a mine of which one schedule takes so long on one thread."""
        whole, counted = config.search_seconds, config.decodes
        enough = ENOUGH * decode_seconds / config.threads
        seconds = max(whole / 2, min(MOST * whole, enough))
        decodes = max((counted + 1) // 2, min(int(MOST * counted), ENOUGH))
        return cls(seconds, decodes, whole - seconds, counted - decodes)


def rework_best(
    mine: Mine,
    plan: Schedule,
    priority: np.ndarray,
    config: SolveConfig,
    shares: Shares,
    heard: Heard,
) -> None:
    """Spends the rework's share of the budget on a plan, in place.

    By the clock each thread tries for itself, and all go on from the best of each round; where
    schedules are counted one does, so that the answer is the same everywhere.
    """
    rounds = -(-shares.rework_decodes // ROUND)
    if heard.stopped or (config.decodes and not rounds):
        return
    chains = [
        Rework(mine.problem, Schedule(*(a.copy() for a in plan)), ranks(priority), seed)
        for seed in range(config.seed, config.seed + (1 if config.decodes else config.threads))
    ]
    best, before, done, started = chains[0], heard.decodes, 0, time.perf_counter()
    try:
        with ThreadPoolExecutor(len(chains)) as pool:
            while going_on(time.perf_counter() - started, shares.rework_seconds, done, rounds):
                gains = list(pool.map(lambda one: one.spend(ROUND * mine.problem.blocks), chains))
                best = chains[max(range(len(gains)), key=gains.__getitem__)]
                for one in chains:
                    if one is not best and max(gains) > 0:
                        one.follow(best)
                done += 1
                spent = time.perf_counter() - started
                decoded = before + done * ROUND * len(chains)
                heard(shares.search_seconds + spent, decoded, mine.worth(best.plan))
    except KeyboardInterrupt:  # after the threads have ended their round
        heard(float("nan"), before + done * ROUND * len(chains), mine.worth(best.plan))
        best = max(chains, key=lambda one: mine.worth(one.plan))
    for own, found in zip(plan, best.plan, strict=True):
        own[:] = found
