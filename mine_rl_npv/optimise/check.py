"""The independent checker: reads an instance and a plan, shares no code with any scheduler."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mine_rl_npv.slopes.audit import SlopeAudit, audit_slopes

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Instance

SLACK = 1e-9
"""Relative slack of a limit, for sums in floating point only."""


@dataclass(frozen=True)
class Verdict:
    """What a plan is worth and what it breaks."""

    value: float
    """Discounted value in full precision (exactly rounded sum)."""
    faults: tuple[str, ...]
    """One sentence per broken rule, at most ten; empty when the plan is feasible."""
    slopes: SlopeAudit | None = None
    """What the coordinates say; None where the instance lists precedences and no slopes."""

    @property
    def feasible(self) -> bool:
        """Whether no rule is broken."""
        return not self.faults


def check_periods(instance: Instance, period: np.ndarray) -> Verdict:
    """Judges whole-block CPIT periods (n,) int, -1 for unmined."""
    period = np.asarray(period)
    if period.shape != (instance.blocks,):
        return Verdict(float("nan"), (f"{period.shape} periods for {instance.blocks} blocks",))
    wrong = (period < -1) | (period >= instance.periods)
    if wrong.any():
        return Verdict(float("nan"), (f"block {int(np.argmax(wrong))} has no such period",))
    share = np.zeros((instance.blocks, 1, instance.periods))
    mined = np.flatnonzero(period >= 0)
    share[mined, 0, period[mined]] = 1.0
    return check_shares(instance, share)


def check_shares(
    instance: Instance, share: np.ndarray, slack: float = SLACK, choice: bool | None = None
) -> Verdict:
    """Judges shares (n, D, T) of blocks by destination and period.

    Fractions are judged as in the LP: cumulated shares obey the precedence.

    Args:
        instance: the problem.
        share: what is extracted where and when.
        slack: relative tolerance; published LP files need 1e-5, whole blocks 1e-9.
        choice: whether values, tonnages and side rows are those of PCPSP, not of CPIT; None means
            wherever there are several destinations.
    """
    cpit = share.shape[1] == 1 if choice is None else not choice
    money = instance.value[:, None] if cpit else instance.destination_value
    tonnes = instance.use[:, None] if cpit else instance.destination_use
    terms = (money[:, :, None] * instance.discount) * share
    value = _exact_sum(terms[share != 0])
    faults: list[str] = []
    outside = (share < 0) | (share > 1 + slack)
    if outside.any():
        faults.append(f"block {np.argwhere(outside)[0][0]} has a share outside [0, 1]")
    mined = share.sum(axis=1)
    twice = mined.sum(axis=1) > 1 + max(slack, 1e-9)
    faults += [f"block {b} is mined more than once" for b in np.flatnonzero(twice)[:3]]
    by_then = np.cumsum(mined, axis=1)
    faults += _precedence_faults(instance, by_then, slack)
    slopes = None if instance.slopes is None else audit_slopes(instance.slopes, by_then)
    faults = faults[:5] + (slopes.faults() if slopes is not None else [])
    faults += _limit_faults(instance, tonnes, share, slack)
    faults += _pace_faults(instance, mined, slack)
    if not cpit and instance.general is not None:
        faults += _general_faults(instance, share, slack)
    return Verdict(value, tuple(faults[:10]), slopes)


def _exact_sum(terms: np.ndarray) -> float:
    return math.fsum(terms.tolist())


def _precedence_faults(instance: Instance, by_then: np.ndarray, slack: float) -> list[str]:
    graph = instance.graph
    owner = np.repeat(np.arange(instance.blocks), np.diff(graph.pointer))
    faults = []
    for t in range(instance.periods):
        early = by_then[owner, t] > by_then[graph.index, t] + max(slack, 1e-9)
        faults += [
            f"block {owner[k]} is mined by period {t} before block {graph.index[k]}, which it needs"
            for k in np.flatnonzero(early)[:3]
        ]
    return faults


def _pace_faults(instance: Instance, mined: np.ndarray, slack: float) -> list[str]:
    """Columns of which one period takes benches too far apart."""
    faults: list[str] = []
    if not instance.bench_advance:
        return faults
    column = np.unique(instance.position[:, :2], axis=0, return_inverse=True)[1].reshape(-1)
    bench = instance.position[:, 2].astype(np.int64)
    for t in range(instance.periods):
        taken = np.flatnonzero(mined[:, t] > slack)
        low = np.full(column.max() + 1, np.iinfo(np.int64).max)
        high = np.full(column.max() + 1, -1)
        np.minimum.at(low, column[taken], bench[taken])
        np.maximum.at(high, column[taken], bench[taken])
        deep = np.flatnonzero((high >= 0) & (high - low >= instance.bench_advance))
        faults += [
            f"{len(deep)} columns are deepened by more than {instance.bench_advance} benches in "
            f"period {t}"
        ] * bool(len(deep))
    return faults


def _limit_faults(
    instance: Instance, tonnes: np.ndarray, share: np.ndarray, slack: float
) -> list[str]:
    used = np.einsum("ndr,ndt->rt", tonnes, share)
    faults = []
    for r, t in np.argwhere(used > instance.high * (1 + slack) + slack):
        faults.append(
            f"resource {r} uses {used[r, t]:.6f} t in period {t}, allowed {instance.high[r, t]:.6f}"
        )
    for r, t in np.argwhere(used < instance.low * (1 - slack) - slack):
        faults.append(
            f"resource {r} uses {used[r, t]:.6f} t in period {t}, at least {instance.low[r, t]:.6f}"
        )
    return faults


def _general_faults(instance: Instance, share: np.ndarray, slack: float) -> list[str]:
    rows = instance.general
    terms = rows.value * share[rows.block, rows.destination, rows.period]
    total = np.bincount(rows.row, terms, minlength=len(rows.low))
    room = slack * (1 + np.abs(total))
    broken = (total > rows.high + room) | (total < rows.low - room)
    return [f"general row {j} sums to {total[j]:.6f}" for j in np.flatnonzero(broken)]
