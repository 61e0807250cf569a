"""When the mine's capacity would reach each block if it dug nested pits one after the other.

With one limited resource the LP relaxation of CPIT does just that: its prices of the periods are
penalties per share of a period's capacity. Pits of such penalties therefore order blocks as the
relaxation does, without solving it.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from mine_rl_npv.data.cones import cone_sums
from mine_rl_npv.optimise.nested import Part

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Graph
    from mine_rl_npv.optimise.problem import Problem


def capacity_shares(problem: Problem) -> np.ndarray:
    """(m, R) float64 share of a period's capacity that a block takes where it takes most.

    Of a resource without any capacity a kilogram counts as the whole.
    """
    return problem.use.max(axis=1) / np.maximum(problem.room.mean(axis=1), 1.0)


def filling_times(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Periods (m,) float64 until each block's pit is dug, by three kinds of pit.

    Shares of the resource that each block takes most of; shares of the mine's scarcest resource;
    the first again, with each block's value discounted by the periods that what it needs takes at
    least. That splits the pits between which the first two see one large step.
    """
    graph = problem.graph
    value, share = problem.value.max(axis=1), capacity_shares(problem)
    most, scarcest = share.max(axis=1), share[:, share.sum(axis=0).argmax()]
    soonest = cone_sums(graph, most[:, None], problem.position)[:, 0]
    if problem.instance.rate < 0:  # what comes after the last period would be worth ever more
        soonest = np.minimum(soonest, problem.instance.periods)
    delayed = value * (1.0 + problem.instance.rate) ** -soonest
    return (
        capacity_pits(value, most, graph),
        capacity_pits(value, scarcest, graph),
        capacity_pits(delayed, most, graph),
    )


def capacity_pits(
    value: np.ndarray, share: np.ndarray, graph: Graph, count: int = 64
) -> np.ndarray:
    """Periods (n,) float64 that the smallest pit of value - penalty * share around a block takes.

    Blocks in no pit count as dug when everything is.

    Args:
        value: (n,) float64 money.
        share: (n,) float64 of a period's capacity that each block takes.
        graph: precedence between the n blocks.
        count: closures to compute; the widest step between two pits is halved next.
    """
    top = float((value[share > 0] / share[share > 0]).max(initial=0.0))
    filled = np.full(len(value), share.sum())
    widest: list[tuple[float, float, float, float, Part]] = []

    def dig(part: Part, high: float, low: float, before: float) -> float:
        step = float(share[part.blocks].sum())
        filled[part.blocks] = before + step
        if step > 0 and high - low > 1e-6 * top:
            heappush(widest, (-step, high, low, before, part))
        return before + step

    smallest, beyond = Part.whole(graph).split(value - top * share)
    used = dig(smallest, top, top, 0.0)
    dig(beyond.split(value)[0], top, 0.0, used)
    for _ in range(count - 2):
        if not widest:
            break
        _, high, low, before, part = heappop(widest)
        middle = (high + low) / 2
        inner, outer = part.split(value - middle * share)
        dig(outer, middle, low, dig(inner, high, middle, before))
    return filled
