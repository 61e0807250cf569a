"""Where blocks go when their periods are fixed: one small LP per period (PCPSP splits blocks)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from mine_rl_npv.data.instance import NEVER, GeneralRows, Graph, Instance
from mine_rl_npv.optimise.closure import max_closure

ROW_MARGINS = (0.0, 2e-9, 1e-7)
"""Shares of a side row's largest coefficient that are kept free, the least that works: solutions on
the limit itself may break it by the solver's tolerance, and what is kept free earns nothing."""
ROW_SLACK = 5e-10
"""Of a side row's sum; half of what the checker allows."""


def best_destinations(instance: Instance, period: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Shares (n, D, T) that are worth most for given periods.

    Where no destinations keep all limits and side rows of a period, its blocks are left, with all
    that needs them.

    Args:
        instance: with resource limits by period, and side rows that look at one period each.
        period: (n,) int, -1 for unmined.
        start: (n, D) shares of a plan, kept where they are feasible and nothing better is found.
    """
    shares = np.zeros((instance.blocks, instance.destinations, instance.periods))
    period = period.copy()
    for t in range(instance.periods):
        ids = np.flatnonzero(period == t)
        found = _one_period(instance, ids, t, start[ids]) if len(ids) else start[ids]
        if found is None:
            period[ids] = NEVER
            _leave_what_needs(instance.graph, period)
        else:
            shares[ids, :, t] = found
    assert not shares[period == NEVER].any()
    return shares


def _leave_what_needs(graph: Graph, period: np.ndarray) -> None:
    """Leaves every block that needs one that is left; in place."""
    owner = np.repeat(np.arange(graph.blocks), np.diff(graph.pointer))
    while True:
        hangs = (period[graph.index] == NEVER) & (period[owner] != NEVER)
        if not hangs.any():
            return
        period[owner[hangs]] = NEVER


def without_losses(instance: Instance, shares: np.ndarray) -> np.ndarray:
    """Shares (n, D, T) less the blocks that do not pay, with all that needs them.

    What a block earns is known when its destination is: a mill that takes only parts of blocks, or
    a blend that it must keep, may leave waste that no ore pays for. Those left share again.
    """
    while True:
        earned = _earned(instance, shares)
        dug = shares.any(axis=(1, 2))
        keep = dug & max_closure(np.where(dug, earned, 0.0), instance.graph)
        if (keep == dug).all():
            return shares
        period = np.where(keep, shares.sum(axis=1).argmax(axis=1), NEVER)
        again = best_destinations(instance, period, shares.sum(axis=2))
        if _earned(instance, again).sum() <= earned.sum():
            return shares
        shares = again


def _earned(instance: Instance, shares: np.ndarray) -> np.ndarray:
    """(n,) discounted value of each block."""
    by_destination = shares @ instance.discount
    return np.einsum("nd,nd->n", by_destination, instance.destination_value)


def _one_period(instance: Instance, ids: np.ndarray, t: int, held: np.ndarray) -> np.ndarray | None:
    """The best feasible shares (k, D) of: an LP's, those held, all in a spare destination."""
    value = instance.destination_value[ids]
    bounded = np.flatnonzero(np.isfinite(instance.high[:, t]))
    use = instance.destination_use[ids][:, :, bounded].reshape(value.size, -1).T
    high = instance.high[bounded, t]
    unit = np.maximum(high, 1.0)
    side, most, unit_of_row = _side_rows(instance, ids, t)
    rows = sp.vstack((sp.csr_matrix(use / unit[:, None]), side)).tocsr()
    tried = [held]
    if instance.general is not None:
        tried.append(_spared(instance.general, held.shape))

    def fits(shares: np.ndarray) -> bool:
        used, rowed = use @ shares.ravel(), side @ shares.ravel()
        kept = np.all(rowed <= most + ROW_SLACK / unit_of_row)
        return bool(kept and np.all(used <= high * (1 + 1e-12)))

    for margin in ROW_MARGINS if len(most) else (0.0,):
        limits = np.concatenate((high / unit * (1 - 1e-12), most - margin))
        found = _best_shares(value, rows, limits)
        if found is not None and fits(found):
            tried.append(found)
            break
    good = [shares for shares in tried if fits(shares)]
    return max(good, key=lambda shares: float((shares * value).sum()), default=None)


def _best_shares(value: np.ndarray, rows: sp.csr_matrix, limits: np.ndarray) -> np.ndarray | None:
    """Shares (k, D) of whole blocks worth most within rows (L, k * D) <= limits (L,), by HiGHS."""
    count, d = value.shape
    result = linprog(
        -value.ravel() / max(float(np.abs(value).max()), 1.0),
        A_ub=rows if rows.shape[0] else None,
        b_ub=limits if rows.shape[0] else None,
        A_eq=sp.kron(sp.identity(count), np.ones((1, d)), format="csr"),
        b_eq=np.ones(count),
        bounds=(0, 1),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-9},
    )
    if result.status != 0:
        return None
    shares = result.x.reshape(count, d).clip(0, 1)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _side_rows(
    instance: Instance, ids: np.ndarray, t: int
) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """The period's side rows over (block, destination) as A y <= b, scaled, and their units."""
    count, d = len(ids), instance.destinations
    general = instance.general
    if general is None:
        return sp.csr_matrix((0, count * d)), np.empty(0), np.empty(0)
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
    units = np.concatenate((unit[above], unit[below]))
    return sides, np.concatenate((upper[above], -lower[below])), units


def _spared(rows: GeneralRows, shape: tuple[int, ...]) -> np.ndarray:
    """(k, D) everything in the first destination that no side row knows."""
    spare = np.setdiff1d(np.arange(shape[1]), rows.destination)
    held = np.zeros(shape)
    held[:, spare[0] if len(spare) else 0] = 1.0
    return held
