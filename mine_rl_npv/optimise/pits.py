"""Ultimate and nested pits: closures for falling prices or rising penalties on tonnage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mine_rl_npv.optimise.closure import largest_closure
from mine_rl_npv.optimise.nested import first_closures

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Instance
    from mine_rl_npv.optimise.problem import Problem


@dataclass(frozen=True)
class NestedPits:
    """Pits from small to large. K pits over n blocks."""

    parameter: np.ndarray
    """(K,) float64 penalty per tonne, or revenue factor, of each pit."""
    first: np.ndarray
    """(n,) int32 smallest pit that holds the block, K for blocks in none."""
    blocks: np.ndarray
    """(K,) int64."""
    tonnes: np.ndarray
    """(K,) float64."""
    value: np.ndarray
    """(K,) float64 undiscounted value at the true prices."""

    def distinct(self) -> NestedPits:
        """Without the pits that hold nothing, or nothing more than the one before."""
        new = np.flatnonzero(np.diff(self.blocks, prepend=0) > 0)
        number = np.full(len(self.blocks) + 1, len(new), np.int32)
        number[new] = np.arange(len(new))
        rows = (self.parameter, self.blocks, self.tonnes, self.value)
        parameter, blocks, tonnes, value = (row[new] for row in rows)
        return NestedPits(parameter, number[self.first], blocks, tonnes, value)

    def gaps(self, share: float = 0.15) -> list[tuple[int, int]]:
        """Neighbouring pits between which more than `share` of all tonnes lie at once."""
        steps = np.diff(self.tonnes) / max(self.tonnes[-1], 1e-12)
        return [(int(k), int(k) + 1) for k in np.flatnonzero(steps > share)]

    def phases(self, count: int) -> np.ndarray:
        """Pit numbers (count,) that split the tonnage most evenly, the last pit included."""
        goals = self.tonnes[-1] * np.arange(1, count + 1) / count
        chosen = [int(np.abs(self.tonnes - goal).argmin()) for goal in goals]
        return np.unique(chosen)


def ultimate_pit(instance: Instance, largest: bool = False) -> np.ndarray:
    """(n,) bool blocks of the optimal pit of UPIT, the smallest or the largest one."""
    return largest_closure(instance.value, instance.graph) if largest else instance.pit


def block_tonnes(instance: Instance) -> np.ndarray:
    """(n,) float64 what the file states or the largest resource use, air 0; 1 where neither is."""
    tonnes = instance.use.max(axis=1) if instance.resources else np.zeros(instance.blocks)
    if "ton" in instance.fields:
        tonnes = np.maximum(tonnes, instance.fields["ton"])
    return tonnes if tonnes.any() else np.ones(instance.blocks)


def _penalty_tonnes(instance: Instance) -> np.ndarray:
    """(n,) float64 the same, but the mean where a file without tonnages shows no use of a block."""
    tonnes = block_tonnes(instance)
    if "ton" in instance.fields or (tonnes > 0).all():
        return tonnes
    return np.where(tonnes > 0, tonnes, tonnes[tonnes > 0].mean())


def penalised_pits(instance: Instance, count: int = 60) -> NestedPits:
    """Pits of value - penalty * tonnes for `count` penalties from the richest block's down to 0."""
    tonnes = _penalty_tonnes(instance)
    pays = (instance.value > 0) & (tonnes > 0)
    positive = instance.value[pays] / tonnes[pays]
    top = np.quantile(positive, 0.995) if len(positive) else 1.0
    penalties = top * np.linspace(1, 0, count) ** 1.5
    return _nest(instance, penalties, lambda k: instance.value - penalties[k] * tonnes)


def nested_pit_order(problem: Problem, count: int = 60) -> np.ndarray:
    """(m,) smaller nested pits first; inside a pit the higher bench, then the lower id."""
    instance = problem.instance
    first = penalised_pits(instance, count).first[problem.inside]
    bench = problem.position[:, 2]
    return -(first.astype(float) * (bench.max() + 1) + (bench.max() - bench))


def revenue_factor_pits(instance: Instance, factors: np.ndarray) -> NestedPits:
    """Pits when every positive value is multiplied by rising factors (ascending, up to 1)."""
    value, rising = instance.value, np.asarray(factors, float)
    return _nest(instance, rising, lambda k: np.where(value > 0, rising[k] * value, value))


def _nest(
    instance: Instance, parameter: np.ndarray, weight: Callable[[int], np.ndarray]
) -> NestedPits:
    count = len(parameter)
    first = first_closures(weight, count, instance.graph)

    def up_to(amount: np.ndarray) -> np.ndarray:
        return np.cumsum(np.bincount(first, amount, minlength=count)[:count])

    blocks = up_to(np.ones(instance.blocks)).astype(np.int64)
    tonnes, value = up_to(block_tonnes(instance)), up_to(instance.value)
    return NestedPits(parameter, first, blocks, tonnes, value)
