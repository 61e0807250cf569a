"""Corridors: one horizontal, one vertical, or several in turn."""

from __future__ import annotations

from dataclasses import dataclass

from nclone.levels.generators.canvas import (
    CENTRE,
    FIRST_COLUMN,
    FIRST_ROW,
    LAST_COLUMN,
    LAST_ROW,
    Canvas,
    Range,
    floor_mines,
)


@dataclass(frozen=True)
class HorizontalCorridor:
    """One straight corridor, spawn at one end and exit at the other, the switch between them."""

    width: Range = (3, 23)
    height: Range = (1, 5)
    mines: Range = (0, 0)
    mine_spacing: int = 4
    bumps: float = 0.0
    """Share of floor cells that carry a solid block; only in corridors of 3 cells or more."""
    decoration: float = 0.0

    def build(self, canvas: Canvas) -> None:
        """Carve the corridor."""
        dice = canvas.dice
        width, height = dice.between(*self.width), dice.between(*self.height)
        left, top = canvas.place_box(width, height)
        bottom = top + height - 1
        canvas.carve(left, top, width, height)
        if height >= 3:
            for column in range(left + 2, left + width - 2):
                if dice.chance(self.bumps):
                    canvas.fill(column, bottom, 1, 1)
        ends = [left, left + width - 1]
        dice.shuffle(ends)
        start, end = ends
        middle = dice.between(left + width // 3, left + width - 1 - width // 3)
        if middle in (start, end):
            middle = end
        switch_row = canvas.floor_below(middle, top)
        end_row = canvas.floor_below(end, top)
        if (middle, switch_row) == (end, end_row):
            end_row = max(top, end_row - 1)
        canvas.spawn(start, canvas.floor_below(start, top))
        canvas.exit((middle, switch_row), (end, end_row))
        if height >= 2:
            inner = range(left + 2, left + width - 2)
            floor_mines(canvas, inner, bottom, dice.between(*self.mines), self.mine_spacing)
        canvas.decorate(self.decoration)


@dataclass(frozen=True)
class VerticalCorridor:
    """A shaft: spawn at its foot, the switch on the way, the exit on top."""

    width: Range = (1, 6)
    height: Range = (8, 22)
    mine_spacing: Range = (3, 5)
    wall_mines: bool = False
    middle_mines: bool = False
    platforms: bool = False
    chaotic: float = 0.0
    """Share of wall cells that are pushed in or out by one cell."""
    upwards: bool = True
    decoration: float = 0.0

    def build(self, canvas: Canvas) -> None:
        """Carve the shaft."""
        dice = canvas.dice
        width, height = dice.between(*self.width), dice.between(*self.height)
        left, top = canvas.place_box(width + 2, height)
        left += 1
        right, bottom = left + width - 1, top + height - 1
        canvas.carve(left, top, width, height)
        self._roughen(canvas, left, right, top, bottom)
        if self.platforms and width >= 3:
            self._add_platforms(canvas, left, right, top, bottom)
        spawn = (dice.between(left, right), bottom)
        goal = (dice.between(left, right), top)
        column = dice.between(left, right)
        switch = (column, dice.between(top + height // 4, top + height // 2))
        if not canvas.is_empty(*switch):
            switch = (column, switch[1] - 1)
        canvas.carve(*switch, 1, 1)
        canvas.carve(*goal, 1, 1)
        start, end = (spawn, goal) if self.upwards else (goal, spawn)
        canvas.spawn(*start)
        canvas.exit(switch, end)
        self._add_mines(canvas, left, right, top, bottom)
        canvas.decorate(self.decoration)

    def _roughen(self, canvas: Canvas, left: int, right: int, top: int, bottom: int) -> None:
        for row in range(top + 1, bottom):
            for outside, inside in ((left - 1, left), (right + 1, right)):
                if canvas.dice.chance(self.chaotic):
                    if canvas.dice.chance(0.5) or right - left < 3:
                        canvas.carve(outside, row, 1, 1)
                    else:
                        canvas.fill(inside, row, 1, 1)

    def _add_platforms(self, canvas: Canvas, left: int, right: int, top: int, bottom: int) -> None:
        row = bottom - canvas.dice.between(3, 4)
        on_left = canvas.dice.chance(0.5)
        while row > top + 2:
            size = canvas.dice.between(1, max(1, (right - left + 1) // 2))
            canvas.fill(left if on_left else right - size + 1, row, size, 1)
            on_left = not on_left
            row -= canvas.dice.between(3, 4)

    def _add_mines(self, canvas: Canvas, left: int, right: int, top: int, bottom: int) -> None:
        row = bottom - 2 - canvas.dice.between(*self.mine_spacing)
        while row > top + 1 and (self.wall_mines or self.middle_mines):
            if self.wall_mines and (not self.middle_mines or canvas.dice.chance(0.6)):
                on_left = canvas.dice.chance(0.5)
                canvas.mine(left if on_left else right, row, 1 if on_left else 3, CENTRE)
            elif right - left >= 2:
                canvas.mine((left + right) // 2, row)
            row -= canvas.dice.between(*self.mine_spacing)


@dataclass(frozen=True)
class Corridors:
    """Two to five corridors in turn, horizontal and vertical, each beginning where one ends."""

    segments: Range = (2, 5)
    long: Range = (8, 25)
    """Length of a horizontal segment."""
    low: Range = (1, 3)
    """Height of a horizontal segment."""
    narrow: Range = (1, 4)
    """Width of a vertical segment."""
    deep: Range = (6, 15)
    """Length of a vertical segment."""
    upwards: float = 0.5
    """Probability that a vertical segment leads up."""
    mines: Range = (0, 0)
    """Mines per horizontal segment of two cells height or more."""
    decoration: float = 0.0

    def build(self, canvas: Canvas) -> None:
        """Carve the corridors from left to right or from right to left."""
        dice = canvas.dice
        step = dice.pick((-1, 1))
        column = dice.between(2, 6) if step > 0 else dice.between(38, 41)
        row = dice.between(6, 18)
        points = [(column, row)]
        floors: list[tuple[range, int]] = []
        for k in range(dice.between(*self.segments)):
            column, row = points[-1]
            if k % 2 == 0:
                end, height = self._horizontal(canvas, column, row, step)
                if abs(end - column) < 3:
                    break
                if height >= 2:
                    floors.append((range(min(column, end) + 2, max(column, end) - 1), row))
                points.append((end, row))
            else:
                end = self._vertical(canvas, column, row, step)
                if abs(end - row) < 3:
                    break
                points.append((column, end))
        goal = points[-1]
        at = points[len(points) // 2] if len(points) > 2 else self._between(points[0], goal)
        canvas.spawn(*points[0])
        canvas.exit(at if at != goal else points[-2], goal)
        for columns, floor in floors:
            floor_mines(canvas, columns, floor, dice.between(*self.mines), 4)
        canvas.decorate(self.decoration)

    def _horizontal(self, canvas: Canvas, column: int, row: int, step: int) -> tuple[int, int]:
        length, height = canvas.dice.between(*self.long), canvas.dice.between(*self.low)
        end = min(max(column + step * (length - 1), FIRST_COLUMN + 1), LAST_COLUMN - 1)
        height = min(height, row - FIRST_ROW + 1)
        canvas.carve(min(column, end), row - height + 1, abs(end - column) + 1, height)
        return end, height

    def _vertical(self, canvas: Canvas, column: int, row: int, step: int) -> int:
        dice = canvas.dice
        length, width = dice.between(*self.deep), dice.between(*self.narrow)
        up = dice.chance(self.upwards)
        if up and row - length < FIRST_ROW + 3:
            up = row > LAST_ROW - length
        end = row - length if up else row + length
        end = min(max(end, FIRST_ROW + 3), LAST_ROW)
        left = column if step > 0 else column - width + 1
        canvas.carve(left, min(row, end), width, abs(end - row) + 1)
        return end

    @staticmethod
    def _between(start: tuple[int, int], end: tuple[int, int]) -> tuple[int, int]:
        return (start[0] + end[0]) // 2, (start[1] + end[1]) // 2
