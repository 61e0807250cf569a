"""Chambers: one room with a profile, or several rooms joined by corridors."""

from __future__ import annotations

from dataclasses import dataclass

from nclone.levels.generators.canvas import LAST_COLUMN, LAST_ROW, Canvas, Range, floor_mines


@dataclass(frozen=True)
class SingleChamber:
    """A room with an uneven floor: spawn on the left, switch in the middle, exit on the right."""

    width: Range = (12, 30)
    height: Range = (5, 10)
    rise: int = 2
    """Most cells that the floor rises from one step to the next."""
    fall: int = 1
    obstacle: Range = (0, 0)
    """Height of a block in the middle."""
    gap: Range = (0, 0)
    """Width of a pit in the floor, two cells deep."""
    gap_mines: bool = False
    mines: Range = (0, 0)
    ceiling: float = 0.0
    """Share of columns with a block hanging from the ceiling."""

    def build(self, canvas: Canvas) -> None:
        """Carve the room and furnish it."""
        dice = canvas.dice
        width, height = dice.between(*self.width), dice.between(*self.height)
        left, top = canvas.place_box(width, height + 3)
        floor = self._floor(canvas, left, top, width, height)
        self._furnish(canvas, left, top, floor)
        middle = left + width // 2
        rows = [canvas.floor_below(c, top + 1) for c in (left + 1, middle, left + width - 2)]
        canvas.spawn(left + 1, rows[0])
        canvas.exit((middle, rows[1]), (left + width - 2, rows[2]))
        for first, end in ((left + 3, middle - 1), (middle + 2, left + width - 3)):
            row = floor[(first + end) // 2 - left]
            clear = [c for c in range(first, end) if floor[c - left] == row]
            if clear:
                columns = range(clear[0], clear[-1] + 1)
                floor_mines(canvas, columns, row, dice.between(*self.mines), 4)

    def _floor(self, canvas: Canvas, left: int, top: int, width: int, height: int) -> list[int]:
        """Carve column by column; returns the lowest empty row of each."""
        dice, row = canvas.dice, top + height - 1
        rows: list[int] = []
        while len(rows) < width:
            run = dice.between(3, 6)
            rows.extend([row] * run)
            row += dice.between(-self.rise, self.fall)
            row = min(max(row, top + 3), top + height + 1)
        rows = rows[:width]
        for k, lowest in enumerate(rows):
            canvas.carve(left + k, top, 1, lowest - top + 1)
        return rows

    def _furnish(self, canvas: Canvas, left: int, top: int, floor: list[int]) -> None:
        dice, width = canvas.dice, len(floor)
        third, two_thirds = width // 3, 2 * width // 3
        tall = min(dice.between(*self.obstacle), floor[third] - top - 1)
        if tall > 0:
            size = dice.between(1, 2)
            canvas.fill(left + third - size // 2, floor[third] - tall + 1, size, tall + 1)
        gap = dice.between(*self.gap)
        if gap > 0:
            at = left + two_thirds - gap // 2
            deepest = max(floor[two_thirds - gap // 2 : two_thirds - gap // 2 + gap])
            canvas.carve(at, deepest, gap, 3)
            for column in range(at, at + gap):
                if self.gap_mines:
                    canvas.mine(column, canvas.floor_below(column, top), y=3)
        for k in range(2, width - 2):
            if dice.chance(self.ceiling):
                canvas.fill(left + k, top, 1, dice.between(1, max(1, (floor[k] - top) // 2)))


@dataclass(frozen=True)
class MultiChamber:
    """Two to four rooms from left to right, each joined to the next by a corridor."""

    rooms: Range = (2, 2)
    width: Range = (4, 10)
    height: Range = (3, 6)
    corridor: Range = (1, 5)
    passage: Range = (1, 3)
    """Height of the corridors."""
    mines: Range = (0, 0)
    steps: int = 2
    """Most cells between the floors of two neighbouring rooms."""
    locked: float = 0.0
    """Probability that one corridor is one cell high and closed by a door."""

    def build(self, canvas: Canvas) -> None:
        """Carve the rooms; the switch lies in a room between the first and the last."""
        dice = canvas.dice
        column, floor = dice.between(1, 3), dice.between(9, 18)
        rooms = dice.between(*self.rooms)
        door_after = dice.between(0, rooms - 2) if dice.chance(self.locked) else -1
        centres: list[tuple[int, int]] = []
        while len(centres) < rooms:
            width, height = dice.between(*self.width), dice.between(*self.height)
            length, tall = dice.between(*self.corridor), dice.between(*self.passage)
            next_floor = min(max(floor + dice.between(-self.steps, self.steps), 8), LAST_ROW)
            if column + width > LAST_COLUMN + 1:
                break
            canvas.carve(column, floor - height + 1, width, height)
            centres.append((column + width // 2, floor))
            if width >= 6 and len(centres) > 1:
                columns = range(column + 2, column + width - 1)
                floor_mines(canvas, columns, floor, dice.between(*self.mines), 4)
            after = column + width
            if len(centres) == rooms or after + length + self.width[0] > LAST_COLUMN + 1:
                break
            if len(centres) - 1 == door_after:
                tall = 1
                canvas.locked_door(after, floor, (column + dice.between(0, width // 3), floor))
            canvas.carve(after, floor - tall + 1, length + 1, tall)
            column = after + length
            highest = min(floor, next_floor)
            canvas.carve(column, highest - tall + 1, 2, abs(floor - next_floor) + tall)
            floor = next_floor
        self._place(canvas, centres, swap=door_after < 0 and dice.chance(0.5))

    @staticmethod
    def _place(canvas: Canvas, centres: list[tuple[int, int]], swap: bool) -> None:
        first, last = (centres[-1], centres[0]) if swap else (centres[0], centres[-1])
        between = centres[1:-1]
        canvas.spawn(*first)
        canvas.exit(canvas.dice.pick(between) if between else (last[0] - 1, last[1]), last)
