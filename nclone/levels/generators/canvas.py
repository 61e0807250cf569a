"""A level while it is being made: solid rock from which generators carve rooms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nclone.geometry import COLUMNS, ROWS
from nclone.levels.entity_types import SWITCH_OF, EntityType
from nclone.levels.generators.areas import EMPTY, SOLID

if TYPE_CHECKING:
    from nclone.levels.generators.dice import Dice

Range = tuple[int, int]
"""Smallest and largest value, both included."""
FIRST_COLUMN, LAST_COLUMN = 1, COLUMNS - 2
FIRST_ROW, LAST_ROW = 1, ROWS - 2
CENTRE, ON_FLOOR, AT_CEILING = 2, 3, 1
"""Places inside a tile in quarter tiles; `ON_FLOOR` is 6 px above the tile's lower edge."""


class Canvas:
    """Tiles and entities in cells of the full level (column 1..42, row 1..23 are playable).

    Attributes:
        tiles: [25, 44] uint8, solid at first.
        dice: The level's random numbers.
    """

    def __init__(self, dice: Dice) -> None:
        self.tiles = np.full((ROWS, COLUMNS), SOLID, np.uint8)
        self.dice = dice
        self._spawn = (FIRST_COLUMN, FIRST_ROW)
        self._exit: tuple[tuple[int, int], tuple[int, int]] | None = None
        self._records: list[tuple[int, int, int, int, int]] = []
        self._taken: set[tuple[int, int]] = set()
        self._objectives: set[tuple[int, int]] = set()

    def place_box(self, width: int, height: int) -> tuple[int, int]:
        """Upper left cell of a box of the given size, anywhere in the playable part."""
        return (
            self.dice.between(FIRST_COLUMN, LAST_COLUMN - width + 1),
            self.dice.between(FIRST_ROW, LAST_ROW - height + 1),
        )

    def carve(self, column: int, row: int, width: int, height: int) -> None:
        """Make a rectangle empty; what lies outside the playable part stays solid."""
        self._paint(column, row, width, height, EMPTY)

    def fill(self, column: int, row: int, width: int, height: int, tile: int = SOLID) -> None:
        """Fill a rectangle with a tile."""
        self._paint(column, row, width, height, tile)

    def _paint(self, column: int, row: int, width: int, height: int, tile: int) -> None:
        top, bottom = max(row, FIRST_ROW), min(row + height, LAST_ROW + 1)
        left, right = max(column, FIRST_COLUMN), min(column + width, LAST_COLUMN + 1)
        if top < bottom and left < right:
            self.tiles[top:bottom, left:right] = tile

    def is_empty(self, column: int, row: int) -> bool:
        """Whether a cell is inside the map and empty."""
        return 0 <= column < COLUMNS and 0 <= row < ROWS and self.tiles[row, column] == EMPTY

    def floor_below(self, column: int, row: int) -> int:
        """The lowest empty row reached by falling from a cell."""
        while self.is_empty(column, row + 1):
            row += 1
        return row

    def spawn(self, column: int, row: int) -> None:
        """Put the ninja into a cell."""
        self._spawn = (column, row)
        self._taken.add((column, row))
        self._objectives.add((column, row))

    def exit(self, switch: tuple[int, int], door: tuple[int, int]) -> None:
        """Put the exit's switch and door into two cells (column, row)."""
        self._exit = (switch, door)
        self._taken.update((switch, door))
        self._objectives.update((switch, door))

    @property
    def objectives(self) -> tuple[tuple[int, int], ...]:
        """Cells of spawn, switch and exit, as far as they are placed."""
        return (self._spawn, *(self._exit or ()))

    def mine(self, column: int, row: int, x: int = CENTRE, y: int = CENTRE) -> bool:
        """Put a deadly mine into an empty cell that no objective stands in; tells whether it did.

        x and y are its place in the cell, in quarter tiles.
        """
        if (column, row) in self._taken or not self.is_empty(column, row):
            return False
        self._records.append((EntityType.MINE, 4 * column + x, 4 * row + y, 0, 0))
        return True

    def record(self, *row: int) -> None:
        """Add any entity record (type, x, y, orientation, mode), in quarter tiles."""
        type_, x, y, orientation, mode = row
        self._records.append((type_, x, y, orientation, mode))

    def locked_door(
        self, column: int, row: int, switch: tuple[int, int], across: bool = False
    ) -> None:
        """Close the left, or `across` the upper, side of a cell; its switch is in another one."""
        self._door(EntityType.LOCKED_DOOR, column, row, switch, across)

    def trap_door(
        self, column: int, row: int, switch: tuple[int, int], across: bool = False
    ) -> None:
        """As `locked_door`, but open until its switch is touched."""
        self._door(EntityType.TRAP_DOOR, column, row, switch, across)

    def _door(
        self, kind: EntityType, column: int, row: int, switch: tuple[int, int], across: bool
    ) -> None:
        x, y = 4 * column + (CENTRE if across else 0), 4 * row + (0 if across else CENTRE)
        self.record(kind, x, y, 2 if across else 0, 0)
        self.record(SWITCH_OF[kind], *_centre(switch), 0, 0)
        self._taken.update(((column, row), switch))

    def take(self, column: int, row: int) -> None:
        """Keep a cell for what was put there."""
        self._taken.add((column, row))

    def is_free(self, column: int, row: int) -> bool:
        """Whether a cell is empty and nothing was put there."""
        return self.is_empty(column, row) and (column, row) not in self._taken

    def is_clear(self, column: int, row: int, reach: int = 2) -> bool:
        """Whether a cell is free and neither spawn, exit, switch nor door is within some cells."""
        near = (abs(column - c) <= reach and abs(row - r) <= reach for c, r in self._objectives)
        return self.is_free(column, row) and not any(near)

    def decorate(self, share: float) -> None:
        """Turn some rock that touches no empty cell into random tiles, to look at only."""
        if share <= 0:
            return
        tiles = self.tiles
        open_cells = tiles != SOLID
        near = open_cells.copy()
        for rows in (slice(1, None), slice(None, -1), slice(None)):
            for columns in (slice(1, None), slice(None, -1), slice(None)):
                near[rows, columns] |= open_cells[_opposite(rows), _opposite(columns)]
        for row in range(FIRST_ROW, LAST_ROW + 1):
            for column in range(FIRST_COLUMN, LAST_COLUMN + 1):
                if not near[row, column] and self.dice.chance(share):
                    tiles[row, column] = self.dice.between(2, 33)

    def records(self) -> list[tuple[int, ...]]:
        """Type, x, y, orientation and mode of all entities, in quarter tiles."""
        records = [(EntityType.NINJA, *_centre(self._spawn), 0, 0), *self._records]
        if self._exit is not None:
            switch, door = self._exit
            records.append((EntityType.EXIT, *_centre(door), 0, 0))
            records.append((EntityType.EXIT_SWITCH, *_centre(switch), 0, 0))
        return records


def floor_mines(canvas: Canvas, columns: range, row: int, most: int, spacing: int) -> None:
    """Put up to `most` mines on a floor, at least `spacing` cells apart."""
    column = columns.start + canvas.dice.between(0, spacing - 1)
    for _ in range(most):
        if column >= columns.stop:
            return
        canvas.mine(column, row, canvas.dice.between(1, 3), ON_FLOOR)
        column += spacing + canvas.dice.between(0, 2)


def _opposite(part: slice) -> slice:
    if part == slice(1, None):
        return slice(None, -1)
    return slice(1, None) if part == slice(None, -1) else part


def _centre(cell: tuple[int, int]) -> tuple[int, int]:
    return 4 * cell[0] + CENTRE, 4 * cell[1] + CENTRE
