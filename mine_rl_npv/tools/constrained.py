"""Schedules under `constraints`: mining width, bench advance, blending; each honoured and checked.

The bound that is printed is that of the mine without them, a relaxation: no plan that keeps them
can be worth more, and a line of the report says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.blending import blending_rows
from mine_rl_npv.data.panels import Panels, best_panels, narrow_blocks
from mine_rl_npv.data.solutions import period_of
from mine_rl_npv.optimise.bound import relaxation
from mine_rl_npv.optimise.check import check_shares
from mine_rl_npv.tools.solve import solve
from mine_rl_npv.tools.solve_config import Constraints, SolveConfig

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Instance
    from mine_rl_npv.priority.watch import Watch
    from mine_rl_npv.tools.solution import Solution


def solve_mine(instance: Instance, config: SolveConfig, watch: Watch | None = None) -> Solution:
    """`solve`, under `config.constraints` where there are any.

    Raises:
        ConfigError: the mine lacks what a constraint is about.
    """
    asked = config.constraints
    if asked == Constraints():
        found = solve(instance, config, watch)
        return replace(found, notes=(*found.notes, *_stock_words(config)))
    if asked.bench_advance:
        _refuse_unclear_benches(instance)
    instance = replace(instance, bench_advance=asked.bench_advance)
    if asked.blend:
        instance = _blended(instance, asked)
    if asked.mining_width:
        return _by_panels(instance, config, watch)
    found = solve(instance, config, watch)
    return replace(found, notes=(*found.notes, *_pace_words(asked), *_stock_words(config)))


def _refuse_unclear_benches(instance: Instance) -> None:
    """Raises ConfigError where blocks lie across benches, or z of MineLib files counts none."""
    if instance.slopes is not None:
        _refuse_parts(instance)
        return
    height, graph = instance.position[:, 2].astype(np.int64), instance.graph
    owner = np.repeat(np.arange(instance.blocks), np.diff(graph.pointer))
    below = np.flatnonzero(height[graph.index] < height[owner])
    if len(below):
        one, other = owner[below[0]], graph.index[below[0]]
        raise ConfigError(
            f"constraints.bench_advance needs z to grow upward: {instance.name} has block {one} at "
            f"z={height[one]} need block {other} at z={height[other]}. Turn z over in .blocks."
        )
    steps = np.diff(np.unique(height))
    if len(steps) and steps.min() > 1:
        raise ConfigError(
            f"constraints.bench_advance counts benches, which are {steps.min()} apart in z of "
            f"{instance.name}; number the benches 0, 1, 2, ... in .blocks."
        )


def _refuse_parts(instance: Instance) -> None:
    """Raises ConfigError where a block reaches over the faces of others: it has no one bench."""
    slopes = instance.slopes
    if slopes is None or slopes.regular:
        return
    for axis in range(3):
        edge = slopes.edge[:, axis]
        low, near = slopes.centre[:, axis] - edge / 2, 0.01 * edge.min()
        faces = np.sort(low)
        within = np.searchsorted(faces, low + edge - near) - np.searchsorted(faces, low + near)
        if within.any():
            raise ConfigError(
                f"constraints.bench_advance needs benches and columns: block "
                f"{int(np.argmax(within > 0))} of {instance.name} reaches over several of them "
                "(sub-blocks). Give a model of whole blocks, or leave it out."
            )


def _blended(instance: Instance, asked: Constraints) -> Instance:
    if instance.general is not None or instance.slopes is None or "ton" not in instance.fields:
        raise ConfigError(
            f"constraints.blend needs the columns of a block model; {instance.name} has none, or "
            "brings side rows of its own."
        )
    rows = blending_rows(instance.fields, instance.periods, asked.blend)
    return replace(instance, general=rows)


def _by_panels(instance: Instance, config: SolveConfig, watch: Watch | None) -> Solution:
    panels = best_panels(instance, config.constraints.mining_width)
    small = panels.gathered(instance)
    found = solve(small, replace(config, constraints=Constraints()), watch)
    assert found.shares is not None
    shares = np.ascontiguousarray(found.shares[panels.unit])
    verdict = check_shares(instance, shares)
    narrow = narrow_blocks(instance, period_of(shares), panels.cells)
    if narrow.any():
        words = f"{int(narrow.sum())} blocks lie in places narrower than the mining width"
        verdict = replace(verdict, faults=(*verdict.faults, words))
    free = relaxation(instance)
    notes = (*found.notes, *_width_words(panels, found, config.constraints))
    return replace(
        found,
        instance=instance,
        shares=shares,
        verdict=verdict,
        upper=free.upper,
        bound_seconds=found.bound_seconds + free.seconds,
        notes=notes,
    )


def _width_words(panels: Panels, found: Solution, asked: Constraints) -> list[str]:
    across, along = panels.cells
    return [
        f"width      {asked.mining_width:g} m kept: {len(panels.position)} panels of up to "
        f"{across} x {along} blocks are dug whole; looked at bench by bench",
        "           the bound is that of the mine without the width; no plan by these panels is "
        f"worth more than {found.upper:,.2f}",
        *_pace_words(asked),
    ]


def _pace_words(asked: Constraints) -> list[str]:
    if not asked.bench_advance:
        return []
    return [
        f"advance    {asked.bench_advance} benches per period kept in every column; the bound is "
        "that of the mine without this limit"
    ]


def _stock_words(config: SolveConfig) -> list[str]:
    money = config.economics
    if money.stockpile_cost < 0:
        return []
    return [
        f"stockpile  ore waits {money.stockpile_periods} periods and needs no mill then; none is "
        f"stocked in the last {money.stockpile_periods}; plan and bound are those of this rule, "
        "not of a pile that is drawn on at any time"
    ]
