"""Rooms that ask for jumps: a mined pit, or platforms far apart."""

from __future__ import annotations

from dataclasses import dataclass

from nclone.levels.generators.canvas import ON_FLOOR, Canvas, Range, floor_mines


@dataclass(frozen=True)
class JumpRequired:
    """A room with a mined pit between two platforms; the exit is on the other side."""

    width: Range = (16, 40)
    height: Range = (8, 16)
    pit: Range = (3, 5)
    depth: Range = (2, 3)
    platform_mines: Range = (0, 0)
    """Mines per platform."""
    uneven: int = 0
    """Most cells between the heights of the two platforms."""

    def build(self, canvas: Canvas) -> None:
        """Carve the room, raise the platforms, mine the pit."""
        dice = canvas.dice
        width, height = dice.between(*self.width), dice.between(*self.height)
        left, top = canvas.place_box(width, height)
        bottom, right = top + height - 1, left + width - 1
        canvas.carve(left, top, width, height)
        pit, depth = dice.between(*self.pit), dice.between(*self.depth)
        start = dice.between(left + width // 3, right - width // 3 - pit)
        near = bottom - depth
        far = min(max(near + dice.between(-self.uneven, self.uneven), top + 3), bottom - 1)
        canvas.fill(left, near + 1, start - left, bottom - near)
        canvas.fill(start + pit, far + 1, right - start - pit + 1, bottom - far)
        for column in range(start, start + pit):
            canvas.mine(column, bottom, y=ON_FLOOR)
        switch = dice.between(start + pit + 1, max(start + pit + 1, right - 3))
        places = [(left + 1, near), (switch, far), (right - 1, far)]
        if dice.chance(0.3):
            places[1] = (dice.between(left + 3, max(left + 3, start - 2)), near)
        canvas.spawn(*places[0])
        canvas.exit(places[1], places[2])
        for columns, row in (
            (range(left + 4, start - 2), near),
            (range(start + pit + 3, right - 2), far),
        ):
            floor_mines(canvas, columns, row, dice.between(*self.platform_mines), 4)


@dataclass(frozen=True)
class JumpPlatforms:
    """A big room with platforms over a floor that is far below, or mined."""

    width: Range = (30, 40)
    height: Range = (16, 22)
    spacing: Range = (5, 7)
    """Cells from one platform to the next."""
    size: Range = (1, 2)
    """Cells of a platform."""
    offset: int = 2
    """Most cells between the heights of two neighbouring platforms."""
    mined_floor: bool = True

    def build(self, canvas: Canvas) -> None:
        """Carve the room and hang the platforms into it, from left to right."""
        dice = canvas.dice
        width, height = dice.between(*self.width), dice.between(*self.height)
        left, top = canvas.place_box(width, height)
        bottom, right = top + height - 1, left + width - 1
        canvas.carve(left, top, width, height)
        row = top + height // 2
        column = left
        places: list[tuple[int, int]] = []
        while column <= right - 1:
            size = dice.between(*self.size)
            canvas.fill(column, row, size, 1)
            places.append((column, row - 1))
            column += size - 1 + dice.between(*self.spacing)
            row = min(max(row + dice.between(-self.offset, self.offset), top + 4), bottom - 4)
        if self.mined_floor:
            for mined in range(left, right + 1, 2):
                canvas.mine(mined, bottom, y=ON_FLOOR)
        canvas.spawn(*places[0])
        canvas.exit(places[len(places) // 2], places[-1])
