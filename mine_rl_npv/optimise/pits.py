"""Ultimate and nested pits: closures for falling prices or rising penalties on tonnage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mine_rl_npv.optimise.closure import largest_closure, max_closure

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Instance


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
    return (largest_closure if largest else max_closure)(instance.value, instance.graph)


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
    weights = [instance.value - p * tonnes for p in penalties]
    return _nest(instance, penalties, weights, block_tonnes(instance))


def revenue_factor_pits(instance: Instance, factors: np.ndarray) -> NestedPits:
    """Pits when every positive value is multiplied by rising factors (ascending, up to 1)."""
    value = instance.value
    return _nest(
        instance,
        np.asarray(factors, float),
        [np.where(value > 0, f * value, value) for f in factors],
        block_tonnes(instance),
    )


def _nest(
    instance: Instance, parameter: np.ndarray, weights: list[np.ndarray], tonnes: np.ndarray
) -> NestedPits:
    first = np.full(instance.blocks, len(weights), np.int32)
    rows = []
    for k, weight in enumerate(weights):
        pit = max_closure(weight, instance.graph) | (first < k)
        first[pit & (first > k)] = k
        rows.append((pit.sum(), tonnes[pit].sum(), instance.value[pit].sum()))
    blocks, moved, value = (np.array(column) for column in zip(*rows, strict=True))
    return NestedPits(np.asarray(parameter), first, blocks, moved, value)
