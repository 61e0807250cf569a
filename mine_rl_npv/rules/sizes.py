"""Sizes of mines, known before they are opened: all that a plan needs of them.

Opening a large deposit takes seconds (slopes, the ultimate pit). Its sizes are a few numbers: those
of the bundled deposits are shipped, those of others are kept in the user's cache, by the content of
their files and of the code that decides them.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from frugal_rl import remembered
from mine_rl_npv.rules.mines import MineSet, MineSource, key_of, open_mines
from mine_rl_npv.spec import Shapes

MOST = 2**31
"""Numbers of blocks and arcs are stored in 32 bits."""
SHIPPED = Path(__file__).parents[1] / "data" / "sizes.json"
DECIDING = ("mine_rl_npv.data", "mine_rl_npv.slopes", "mine_rl_npv.optimise.closure")
"""The code that decides how many blocks and arcs a pit has."""


@dataclass(frozen=True)
class MineSizes:
    """What a plan needs of the mines of one source."""

    grid: tuple[int, int, int]
    channels: tuple[str, ...]
    destinations: int
    units: int
    training: int
    """The first ones are for training."""
    blocks: tuple[int, ...]
    """Of each pit."""
    arcs: tuple[int, ...]
    periods: int
    resources: int
    held: int
    """Bytes of their arrays while they are open: models, slopes and pits."""

    def __post_init__(self) -> None:
        grid = self.grid[0] * self.grid[1] * self.grid[2] if len(self.grid) == 3 else 0
        limits = (self.periods, self.resources)
        numbers = (grid, self.destinations, self.training, *limits)
        wrong = [n for n in (*numbers, *self.blocks) if not 0 < n < MOST]
        wrong += [n for n in (*self.arcs, self.units) if not 0 <= n < MOST]
        wrong += [self.held] * (self.held < 0)
        if wrong or len(self.blocks) != len(self.arcs) or self.training > len(self.blocks):
            raise ValueError(f"sizes of mines are out of bounds: {wrong[:1]}")

    @classmethod
    def of(cls, mines: MineSet) -> MineSizes:
        """The sizes of mines that are open."""
        layouts, shapes = mines.layouts, mines.shapes
        return cls(
            shapes.grid,
            shapes.channels,
            shapes.destinations,
            shapes.units,
            mines.training,
            tuple(len(layout.block) for layout in layouts),
            tuple(layout.graph.arcs for layout in layouts),
            max(layout.instance.periods for layout in layouts),
            layouts[0].instance.resources,
            mines.nbytes,
        )

    @property
    def shapes(self) -> Shapes:
        """Sizes of the observation, before what actions and clock add."""
        return Shapes(self.grid, self.channels, self.destinations, units=self.units)


@lru_cache(maxsize=16)
def sizes_of(source: MineSource) -> MineSizes:
    """Shipped, remembered, or found by opening the mines, which is remembered."""
    known = _known(source)
    if known is None and source.per_block:  # the same pits, each block a column of its own
        columns = _known(replace(source, per_block=False))
        known = None if columns is None else _by_block(columns)
    if known is None:
        print(f"Opening {source.data} to know its size; this is done once.", file=sys.stderr)
        known = MineSizes.of(open_mines(source))
        remembered.write(_name_of(source), asdict(known))
    return known


def _by_block(columns: MineSizes) -> MineSizes:
    """The same pits: only where columns begin, 8 B each, is another list."""
    units = max(columns.blocks)
    more = units - columns.grid[0] * columns.grid[1]
    return replace(columns, units=units, held=columns.held + 8 * more * len(columns.blocks))


def _known(source: MineSource) -> MineSizes | None:
    return _shipped().get(key_of(source)) or _checked(remembered.read(_name_of(source)))


def _name_of(source: MineSource) -> str:
    digests = map(remembered.code_digest, DECIDING)
    return f"mine_{remembered.fingerprint(key_of(source), *digests)}"


def _checked(values: Any) -> MineSizes | None:
    """Sizes that a file holds, where they are within bounds."""
    try:
        return MineSizes(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})
    except (AttributeError, TypeError, ValueError):
        return None


@lru_cache(maxsize=1)
def _shipped() -> dict[str, MineSizes]:
    """Sizes of the bundled deposits and of conf/env/mine*.yaml, by key."""
    found = json.loads(SHIPPED.read_text())
    return {key: sizes for key, values in found.items() if (sizes := _checked(values))}
