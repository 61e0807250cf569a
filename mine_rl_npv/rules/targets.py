"""Which blocks a macro action moves: a block with all it needs, or a bench of a nested pit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mine_rl_npv.optimise.closure import max_closure
from mine_rl_npv.rules.choices import Actions

if TYPE_CHECKING:
    from mine_rl_npv.rules.layout import MineLayout


def macros_of(layouts: Sequence[MineLayout], actions: Actions) -> tuple[np.ndarray, ...]:
    """Targets of the macro actions of each mine.

    `cone`: one macro per block. `bench`: one per pair of nested quarter pit and bench.

    Returns:
        first (K,) and count (K,) int64 macros of a mine, pointer (macros + 1,) and target int64.
    """
    first, count, sizes, targets = [], [], [], []
    base = 0
    for layout in layouts:
        groups = _groups(layout, actions)
        first.append(len(sizes))
        count.append(int(groups.max()) + 1)
        order = np.argsort(groups, kind="stable")
        sizes.extend(np.bincount(groups, minlength=count[-1]).tolist())
        targets.append(order + base)
        base += len(groups)
    pointer = np.concatenate(([0], np.cumsum(sizes)))
    return (
        np.array(first, np.int64),
        np.array(count, np.int64),
        pointer.astype(np.int64),
        np.concatenate(targets).astype(np.int64),
    )


def _groups(layout: MineLayout, actions: Actions) -> np.ndarray:
    m = len(layout.block)
    if actions is Actions.cone:
        return np.arange(m)
    value = layout.value.max(axis=1)
    use = layout.use.max(axis=(1, 2)) if layout.use.shape[2] else np.ones(m)
    phase = np.zeros(m, np.int64)
    positive = value > 0
    for share in (0.25, 0.5, 0.75):
        penalty = np.quantile(value[positive] / np.maximum(use[positive], 1e-9), share)
        phase += ~max_closure(value - penalty * use, layout.graph)
    bench = layout.instance.position[layout.block, 2]
    key = phase * (bench.max() + 1) + (bench.max() - bench)
    return np.unique(key, return_inverse=True)[1].ravel()
