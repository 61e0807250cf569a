"""Mazes of cells, and rooms whose columns of mines make the maze."""

from __future__ import annotations

from dataclasses import dataclass

from nclone.levels.generators.canvas import AT_CEILING, CENTRE, ON_FLOOR, Canvas, Range

Cell = tuple[int, int]


@dataclass(frozen=True)
class Maze:
    """A perfect maze: every cell can be reached from every other on exactly one way."""

    width: Range = (6, 20)
    """Tiles, walls included."""
    height: Range = (6, 10)
    cell: Range = (2, 3)
    """Tiles along the side of a cell, at most 4."""
    loops: float = 0.0
    """Share of the remaining walls that are opened as well."""
    decoration: float = 0.0

    def build(self, canvas: Canvas) -> None:
        """Carve the maze by depth-first search; spawn and exit are the ends of a long way."""
        dice = canvas.dice
        side = dice.between(*self.cell)
        pitch = side + 1
        columns = max(2, dice.between(*self.width) // pitch)
        rows = max(2, dice.between(*self.height) // pitch)
        columns, rows = min(columns, 41 // pitch), min(rows, 23 // pitch)
        left, top = canvas.place_box(columns * pitch - 1, rows * pitch - 1)
        links = self._tree(canvas, columns, rows)
        for column in range(columns):
            for row in range(rows):
                canvas.carve(left + column * pitch, top + row * pitch, side, side)
        for (a, b), (c, d) in links:
            x, y = left + min(a, c) * pitch, top + min(b, d) * pitch
            canvas.carve(x, y, side + pitch * abs(a - c), side + pitch * abs(b - d))
        start = self._farthest(links, (dice.between(0, columns - 1), rows - 1))
        goal = self._farthest(links, start)
        others = [(c, r) for c in range(columns) for r in range(rows) if (c, r) != start]
        switch = dice.pick([cell for cell in others if cell != goal] or others)

        def foot(cell: Cell, shift: int) -> Cell:
            x = left + cell[0] * pitch + min(shift, side - 1)
            return x, top + cell[1] * pitch + side - 1

        canvas.spawn(*foot(start, 0))
        canvas.exit(foot(switch, side - 1), foot(goal, 0))
        canvas.decorate(self.decoration)

    def _tree(self, canvas: Canvas, columns: int, rows: int) -> list[tuple[Cell, Cell]]:
        dice = canvas.dice
        stack: list[Cell] = [(dice.between(0, columns - 1), dice.between(0, rows - 1))]
        seen, links = {stack[0]}, []
        while stack:
            column, row = stack[-1]
            around = [(column - 1, row), (column + 1, row), (column, row - 1), (column, row + 1)]
            inside = [(c, r) for c, r in around if 0 <= c < columns and 0 <= r < rows]
            fresh = [cell for cell in inside if cell not in seen]
            for cell in inside:
                if cell in seen and cell > stack[-1] and dice.chance(self.loops / 2):
                    links.append((stack[-1], cell))
            if not fresh:
                stack.pop()
                continue
            to = dice.pick(fresh)
            links.append((stack[-1], to))
            seen.add(to)
            stack.append(to)
        return links

    @staticmethod
    def _farthest(links: list[tuple[Cell, Cell]], start: Cell) -> Cell:
        neighbours: dict[Cell, list[Cell]] = {}
        for a, b in links:
            neighbours.setdefault(a, []).append(b)
            neighbours.setdefault(b, []).append(a)
        line, seen = [start], {start}
        for cell in line:
            for to in neighbours.get(cell, []):
                if to not in seen:
                    seen.add(to)
                    line.append(to)
        return line[-1]


@dataclass(frozen=True)
class MineMaze:
    """A long room with columns of mines; each column leaves a gap above, below or between."""

    width: Range = (6, 42)
    height: Range = (3, 6)
    skip: Range = (2, 4)
    """Cells from one column of mines to the next."""
    mines: Range = (1, 10)
    """Mines per column, 12 px apart; the gap is kept free."""
    gap: int = 2
    """Cells of the gap."""

    def build(self, canvas: Canvas) -> None:
        """Fill the room with mines between the spawn and the exit."""
        dice = canvas.dice
        width, height = dice.between(*self.width), dice.between(*self.height)
        left, top = canvas.place_box(width, height)
        bottom, right = top + height - 1, left + width - 1
        canvas.carve(left, top, width, height)
        canvas.spawn(left, bottom)
        middle = dice.between(left + width // 3, right - width // 3)
        canvas.exit((middle, bottom), (right, bottom))
        column = left + 2 + dice.between(*self.skip)
        while column < right - 1:
            if abs(column - middle) > 1:
                self._column(canvas, column, top, bottom)
            column += dice.between(*self.skip)

    def _column(self, canvas: Canvas, column: int, top: int, bottom: int) -> None:
        """Stack mines on the floor, under the ceiling, or on both."""
        dice, free = canvas.dice, 2 * (bottom - top + 1 - self.gap)
        count = min(dice.between(*self.mines), free)
        if dice.chance(0.3):
            below = dice.between(0, count)
        else:
            below = count if dice.chance(0.6) else 0
        for k in range(below):
            canvas.mine(column, bottom - k // 2, CENTRE, (ON_FLOOR, AT_CEILING)[k % 2])
        for k in range(count - below):
            canvas.mine(column, top + k // 2, CENTRE, (AT_CEILING, ON_FLOOR)[k % 2])
