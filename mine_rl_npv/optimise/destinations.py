"""Where blocks go when their periods are fixed: one small LP per period (PCPSP splits blocks)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from mine_rl_npv.data.instance import NEVER, Instance

ROW_MARGIN = 1e-7
"""Share of a side row's largest coefficient that is kept free, above the solver's tolerance."""


def best_destinations(instance: Instance, period: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Shares (n, D, T) that are worth most for given periods.

    Args:
        instance: with resource limits by period, and side rows that look at one period each.
        period: (n,) int, -1 for unmined.
        start: (n,) destinations of a feasible plan, kept where the LP finds nothing better; where
            they break side rows, everything goes to a destination that these do not know.
    """
    shares = np.zeros((instance.blocks, instance.destinations, instance.periods))
    for t in range(instance.periods):
        ids = np.flatnonzero(period == t)
        if len(ids):
            shares[ids, :, t] = _one_period(instance, ids, t, start[ids])
    assert not shares[period == NEVER].any()
    return shares


def _one_period(instance: Instance, ids: np.ndarray, t: int, start: np.ndarray) -> np.ndarray:
    count, d = len(ids), instance.destinations
    value = instance.destination_value[ids]
    held = np.zeros((count, d))
    held[np.arange(count), start] = 1.0
    bounded = np.flatnonzero(np.isfinite(instance.high[:, t]))
    use = instance.destination_use[ids][:, :, bounded].reshape(count * d, -1).T
    high = instance.high[bounded, t]
    unit = np.maximum(high, 1.0)
    scale = max(float(np.abs(value).max()), 1.0)
    side, most = _side_rows(instance, ids, t)
    rows = sp.vstack((sp.csr_matrix(use / unit[:, None]), side)).tocsr()
    limits = np.concatenate((high / unit * (1 - 1e-12), most))
    whole = sp.kron(sp.identity(count), np.ones((1, d)), format="csr")
    result = linprog(
        -value.ravel() / scale,
        A_ub=rows if rows.shape[0] else None,
        b_ub=limits if rows.shape[0] else None,
        A_eq=whole,
        b_eq=np.ones(count),
        bounds=(0, 1),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-9},
    )
    if np.any(side @ held.ravel() > most):
        held = _spared(instance, count)
    if result.status != 0:
        return held
    shares = result.x.reshape(count, d).clip(0, 1)
    shares /= shares.sum(axis=1, keepdims=True)
    fits = np.all((shares.ravel() @ use.T) <= high * (1 + 1e-12)) if len(bounded) else True
    fits = fits and bool(np.all(side @ shares.ravel() <= most + ROW_MARGIN / 2))
    better = (shares * value).sum() > (held * value).sum()
    return shares if fits and better else held


def _side_rows(instance: Instance, ids: np.ndarray, t: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """The period's side rows over (block, destination) as A y <= b, scaled, with a margin."""
    count, d = len(ids), instance.destinations
    general = instance.general
    if general is None:
        return sp.csr_matrix((0, count * d)), np.empty(0)
    local = np.full(instance.blocks, -1)
    local[ids] = np.arange(count)
    here = (general.period == t) & (local[general.block] >= 0)
    column = local[general.block[here]] * d + general.destination[here]
    shape = (len(general.low), count * d)
    rows = sp.csr_matrix((general.value[here], (general.row[here], column)), shape=shape)
    used = np.unique(general.row[here])
    rows = rows[used]
    unit = np.maximum(abs(rows).max(axis=1).toarray().ravel(), 1e-300) if len(used) else np.ones(0)
    rows = sp.diags(1 / unit) @ rows if len(used) else rows
    upper, lower = general.high[used] / unit, general.low[used] / unit
    above, below = np.isfinite(upper), np.isfinite(lower)
    sides = sp.vstack((rows[above], -rows[below])).tocsr()
    return sides, np.concatenate((upper[above], -lower[below])) - ROW_MARGIN


def _spared(instance: Instance, count: int) -> np.ndarray:
    """Everything to the first destination that no side row knows."""
    assert instance.general is not None
    known = np.unique(instance.general.destination)
    spare = np.setdiff1d(np.arange(instance.destinations), known)
    held = np.zeros((count, instance.destinations))
    held[:, spare[0] if len(spare) else 0] = 1.0
    return held
