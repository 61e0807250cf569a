"""Where blocks go when their periods are fixed: one small LP per period (PCPSP splits blocks)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from mine_rl_npv.data.instance import NEVER, Instance


def best_destinations(instance: Instance, period: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Shares (n, D, T) that are worth most for given periods.

    Args:
        instance: with resource limits by period.
        period: (n,) int, -1 for unmined.
        start: (n,) destinations of a feasible plan, kept where the LP finds nothing better.
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
    whole = sp.kron(sp.identity(count), np.ones((1, d)), format="csr")
    result = linprog(
        -value.ravel() / scale,
        A_ub=use / unit[:, None] if len(bounded) else None,
        b_ub=high / unit * (1 - 1e-12) if len(bounded) else None,
        A_eq=whole,
        b_eq=np.ones(count),
        bounds=(0, 1),
        method="highs",
    )
    if result.status != 0:
        return held
    shares = result.x.reshape(count, d).clip(0, 1)
    shares /= shares.sum(axis=1, keepdims=True)
    fits = np.all((shares.ravel() @ use.T) <= high * (1 + 1e-12)) if len(bounded) else True
    better = (shares * value).sum() > (held * value).sum()
    return shares if fits and better else held
