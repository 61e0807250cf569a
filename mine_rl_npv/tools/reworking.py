"""The second half of method=best: the best plan found is reworked until the budget is spent."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
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


def first_half(config: SolveConfig) -> tuple[float, int]:
    """Seconds, and decodes (0: the clock counts), of the search before the plan is reworked."""
    return config.search_seconds / 2, (config.decodes + 1) // 2


def rework_best(
    mine: Mine, plan: Schedule, priority: np.ndarray, config: SolveConfig, heard: Heard
) -> None:
    """Spends the second half of the budget on a plan, in place.

    By the clock each thread tries for itself, and all go on from the best of each round; where
    schedules are counted one does, so that the answer is the same everywhere.
    """
    seconds, decodes = first_half(config)
    rounds = -(-(config.decodes - decodes) // ROUND)
    if heard.stopped or (config.decodes and not rounds):
        return
    chains = [
        Rework(mine.problem, Schedule(*(a.copy() for a in plan)), ranks(priority), seed)
        for seed in range(config.seed, config.seed + (1 if config.decodes else config.threads))
    ]
    best, before, done, started = chains[0], heard.decodes, 0, time.perf_counter()
    try:
        with ThreadPoolExecutor(len(chains)) as pool:
            while going_on(time.perf_counter() - started, seconds, done, rounds):
                gains = list(pool.map(lambda one: one.spend(ROUND * mine.problem.blocks), chains))
                best = chains[max(range(len(gains)), key=gains.__getitem__)]
                for one in chains:
                    if one is not best and max(gains) > 0:
                        one.follow(best)
                done += 1
                spent = time.perf_counter() - started
                heard(seconds + spent, before + done * ROUND * len(chains), mine.worth(best.plan))
    except KeyboardInterrupt:  # after the threads have ended their round
        heard(float("nan"), before + done * ROUND * len(chains), mine.worth(best.plan))
        best = max(chains, key=lambda one: mine.worth(one.plan))
    for own, found in zip(plan, best.plan, strict=True):
        own[:] = found
