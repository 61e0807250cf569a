"""Sliding window: exact re-optimisation of neighbouring periods of a plan, everything else fixed.

Blocks whose neighbours in the graph leave them free between the first and last period of the
window are re-assigned by HiGHS; the plan it starts from stays feasible, so each window can only
gain.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from mine_rl_npv.data.instance import NEVER

if TYPE_CHECKING:
    from mine_rl_npv.optimise.decode import Schedule
    from mine_rl_npv.optimise.problem import Problem


def slide_windows(
    problem: Problem, plan: Schedule, width: int = 2, seconds: float = 120.0, rounds: int = 2
) -> float:
    """Improves a plan in place.

    Args:
        problem: the pit; destinations stay as they are.
        plan: feasible before and after.
        width: periods per window.
        seconds: for all windows together.
        rounds: sweeps over the mine's life.

    Returns:
        The gain in discounted value.
    """
    deadline = time.perf_counter() + seconds
    windows = max(problem.instance.periods - width + 1, 1) * rounds
    total = 0.0
    for i in range(windows):
        left = deadline - time.perf_counter()
        if left <= 0.5:
            break
        first = i % max(problem.instance.periods - width + 1, 1)
        share = min(left, max(2.0, 2.0 * left / (windows - i)))
        total += _one_window(problem, plan, first, first + width, share)
    return total


def _one_window(problem: Problem, plan: Schedule, first: int, stop: int, seconds: float) -> float:
    stop = min(stop, problem.instance.periods)
    last_window = stop == problem.instance.periods
    inside = (plan.period >= first) & (plan.period < stop)
    if last_window:
        inside |= plan.period == NEVER
    ids = np.flatnonzero(inside)
    if len(ids) == 0:
        return 0.0
    width = stop - first
    local = np.full(problem.blocks, -1)
    local[ids] = np.arange(len(ids))
    rows = np.arange(len(ids))
    destination = plan.destination[ids]
    value = problem.value[ids, destination]
    use = problem.use[ids, destination].astype(float)
    discount = np.append(problem.discount[first:stop], 0.0)
    profit = value[:, None] * (discount[:-1] - discount[1:])
    mined = plan.period[ids] != NEVER
    room = plan.room[:, first:stop].astype(float)
    for t in range(width):
        room[:, t] += use[plan.period[ids] == first + t].sum(axis=0)
    owner = np.repeat(np.arange(problem.blocks), np.diff(problem.graph.pointer))
    pairs = np.column_stack((local[owner], local[problem.graph.index]))
    blocked = np.zeros(len(ids), bool)  # needs a block that is not mined and not in the window
    outside = (pairs[:, 0] >= 0) & (pairs[:, 1] < 0)
    blocked[pairs[outside, 0]] |= plan.period[problem.graph.index[outside]] == NEVER
    pairs = pairs[(pairs >= 0).all(axis=1)]
    lower = np.zeros((len(ids), width))
    lower[:, -1] = mined & (not last_window)
    upper = np.repeat((~blocked)[:, None], width, axis=1).astype(float)
    k = len(pairs) * width
    grid = np.arange(width)
    i = np.concatenate(
        ((pairs[:, :1] * width + grid).ravel(), (rows[:, None] * width + grid[:-1]).ravel())
    )
    j = np.concatenate(
        ((pairs[:, 1:] * width + grid).ravel(), (rows[:, None] * width + grid[1:]).ravel())
    )
    k = len(i)
    order = sp.csr_matrix(
        (np.tile([1.0, -1.0], k), (np.repeat(np.arange(k), 2), np.column_stack((i, j)).ravel())),
        shape=(k, len(ids) * width),
    )
    limits, sizes = _limit_rows(use, room, width)
    unit = max(float(np.abs(profit).max()), 1.0)
    result = milp(
        -profit.ravel() / unit,
        integrality=np.ones(profit.size),
        bounds=Bounds(lower.ravel(), upper.ravel()),
        constraints=[
            LinearConstraint(order, -np.inf, 0.0),
            LinearConstraint(limits, -np.inf, sizes),
        ],
        options={"time_limit": seconds, "mip_rel_gap": 1e-5},
    )
    if result.x is None:
        return 0.0
    return _adopt(problem, plan, ids, np.round(result.x).reshape(len(ids), width), first)


def _limit_rows(use: np.ndarray, room: np.ndarray, width: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows sum use * (z_t - z_{t-1}) <= room, scaled to a right-hand side of 1."""
    rows, sizes = [], []
    for r in range(use.shape[1]):
        for t in range(width):
            if room[r, t] > 2.0**60:
                continue
            row = np.zeros((len(use), width))
            row[:, t] = use[:, r]
            if t > 0:
                row[:, t - 1] = -use[:, r]
            unit = max(room[r, t], 1.0)
            rows.append(sp.csr_matrix(row.reshape(1, -1) / unit))
            sizes.append(room[r, t] / unit)
    empty = sp.csr_matrix((0, len(use) * width))
    return (sp.vstack(rows).tocsr() if rows else empty), np.array(sizes)


def _adopt(
    problem: Problem, plan: Schedule, ids: np.ndarray, by_then: np.ndarray, first: int
) -> float:
    """Takes the new periods when they are feasible in kilograms and gain; returns the gain."""
    before = problem.worth(plan.period, plan.destination)
    new = np.where(by_then[:, -1] > 0.5, first + by_then.argmax(axis=1), NEVER).astype(np.int32)
    old, old_room = plan.period[ids].copy(), plan.room.copy()
    for b, was, now in zip(ids, old, new, strict=True):
        if was != NEVER:
            plan.room[:, was] += problem.use[b, plan.destination[b]]
        if now != NEVER:
            plan.room[:, now] -= problem.use[b, plan.destination[b]]
    plan.period[ids] = new
    gain = problem.worth(plan.period, plan.destination) - before
    if gain <= 0 or (plan.room < 0).any():
        plan.period[ids] = old
        plan.room[:] = old_room
        return 0.0
    return gain
