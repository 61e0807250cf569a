"""What a priority policy sees of each block, comparable between mines of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mine_rl_npv.data.cones import cone_sums
from mine_rl_npv.optimise.filling import capacity_shares
from mine_rl_npv.optimise.orders import cone_order
from mine_rl_npv.optimise.pits import penalised_pits

if TYPE_CHECKING:
    from mine_rl_npv.optimise.bound import Bound
    from mine_rl_npv.optimise.problem import Problem

CLIP = 5.0
GEOLOGY = (
    "value",
    "value_per_tonne",
    "tonnes",
    "tightest_use",
    "bench",
    "needs",
    "needed_by",
    "value_below",
    "tonnes_below",
    "value_above",
    "tonnes_above",
    "cone_ratio",
    "pit",
    "best_below",
    "value_rank",
    "cone_rank",
    "pit_rank",
    "floating_cone",
    "floating_cone_rank",
    "filled",
    "filled_rank",
    "filled_scarcest",
    "filled_scarcest_rank",
    "filled_delayed",
    "filled_delayed_rank",
)
RELAXATION = ("expected_period", "alpha_10", "alpha_50", "alpha_90", "expected_rank")


def feature_names(relaxation: bool) -> tuple[str, ...]:
    """Columns of `block_features`, with or without those of the LP relaxation."""
    return GEOLOGY + RELAXATION if relaxation else GEOLOGY


def block_features(problem: Problem, bound: Bound | None = None) -> np.ndarray:
    """Features (m, F) float32 of the pit's blocks.

    Each is standardised inside the pit and clipped to +-5, so that sentinel values cannot drown
    the rest; ranks run from -1 to 1. No column but those of the relaxation has seen an LP.

    Args:
        problem: the pit.
        bound: adds the columns of the LP relaxation.
    """
    instance, inside = problem.instance, problem.inside
    graph = problem.graph
    value = problem.value.max(axis=1)
    share = capacity_shares(problem)
    tonnes = instance.use[inside].max(axis=1)
    tonnes = np.where(tonnes > 0, tonnes, tonnes[tonnes > 0].mean() if tonnes.any() else 1.0)
    columns = np.column_stack((value, tonnes))
    below = cone_sums(graph.successors, columns, problem.position)
    above = cone_sums(graph, columns, problem.position)
    pit = penalised_pits(instance).first[inside].astype(float)
    ratio = above[:, 0] / above[:, 1]
    stack = [
        value,
        value / tonnes,
        tonnes,
        share.max(axis=1),
        problem.position[:, 2],
        np.diff(graph.pointer),
        np.diff(graph.successors.pointer),
        below[:, 0],
        below[:, 1],
        above[:, 0],
        above[:, 1],
        ratio,
        pit,
        _best_below(problem, value),
        _rank(value),
        _rank(ratio),
        _rank(pit),
    ]
    cone = cone_order(problem)
    stack += [cone, _rank(cone)]
    for filled in problem.filling:
        stack += [filled, _rank(filled)]
    if bound is not None:
        expected = bound.expected_period()[inside]
        alphas = [bound.alpha_period(a)[inside] for a in (0.1, 0.5, 0.9)]
        stack += [expected, *alphas, _rank(expected)]
    return np.column_stack([_standard(np.asarray(c, float)) for c in stack]).astype(np.float32)


def _best_below(problem: Problem, value: np.ndarray) -> np.ndarray:
    """Best value among the blocks that directly need each block."""
    graph = problem.graph
    owner = np.repeat(np.arange(problem.blocks), np.diff(graph.pointer))
    best = np.zeros(problem.blocks)
    np.maximum.at(best, graph.index, value[owner])
    return best


def _rank(column: np.ndarray) -> np.ndarray:
    order = np.unique(column, return_inverse=True)[1].astype(float)
    return 2.0 * order / max(order.max(), 1.0) - 1.0


def _standard(column: np.ndarray) -> np.ndarray:
    middle, spread = np.median(column), column.std()
    if spread > 0:
        clipped = np.clip(column, *np.quantile(column, [0.001, 0.999]))
        middle, spread = clipped.mean(), clipped.std()
    return np.clip((column - middle) / max(spread, 1e-12), -CLIP, CLIP)
