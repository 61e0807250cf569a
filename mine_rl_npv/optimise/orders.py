"""Classical priorities: what the learned ones have to beat. Higher goes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mine_rl_npv.data.cones import cone_sums
from mine_rl_npv.data.precedence import best_of_needing

if TYPE_CHECKING:
    from mine_rl_npv.optimise.bound import Bound
    from mine_rl_npv.optimise.problem import Problem


def random_order(problem: Problem, seed: int) -> np.ndarray:
    """(m,) uniform keys."""
    return np.random.default_rng(seed).random(problem.blocks)


def bench_order(problem: Problem) -> np.ndarray:
    """(m,) bench by bench from the top, ties by id."""
    return problem.position[:, 2].astype(float)


def value_order(problem: Problem) -> np.ndarray:
    """(m,) block value."""
    return problem.value.max(axis=1)


def density_order(problem: Problem) -> np.ndarray:
    """(m,) value per kilogram of the block's largest use."""
    kilograms = problem.use.max(axis=(1, 2)) if problem.use.shape[2] else np.ones(problem.blocks)
    return problem.value.max(axis=1) / np.maximum(kilograms, 1)


def gershon_order(problem: Problem) -> np.ndarray:
    """(m,) Gershon's positional weight: value of the cone of blocks that need the block."""
    value = problem.value.max(axis=1)[:, None]
    return cone_sums(problem.graph.successors, value, problem.position)[:, 0]


def ratio_order(problem: Problem) -> np.ndarray:
    """(m,) value to weight of the cone of blocks that the block needs, itself included."""
    columns = np.column_stack((problem.value.max(axis=1), problem.use.max(axis=(1, 2)) + 1.0))
    sums = cone_sums(problem.graph, columns, problem.position)
    return sums[:, 0] / sums[:, 1]


def cone_order(problem: Problem) -> np.ndarray:
    """(m,) floating cones: a block inherits the best `ratio_order` of what needs it."""
    ratio, graph = ratio_order(problem), problem.graph
    best_of_needing(graph.pointer, graph.index, graph.order, ratio)
    return ratio


def filling_orders(problem: Problem) -> dict[str, np.ndarray]:
    """Keys (m,) by name: pits dug in the order in which they fill the capacity; see `filling`."""
    most, scarcest, delayed = problem.filling
    return {"most": -most, "scarcest": -scarcest, "delayed": -delayed}


def toposort_orders(problem: Problem, bound: Bound) -> dict[str, np.ndarray]:
    """TopoSort keys (m,) by name: LP expected period and alpha points (Chicoisne et al. 2012)."""
    expected = -bound.expected_period()[problem.inside]
    keys = {"expected": expected}
    for alpha in (0.1, 0.25, 0.5, 0.75, 0.9):
        point = -bound.alpha_period(alpha)[problem.inside].astype(float)
        keys[f"alpha_{alpha:g}"] = point + expected / (2 * problem.instance.periods + 2)
    return keys
