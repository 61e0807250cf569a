"""What stands in a room: platforms, pillars, stairs, hills. All of it is tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nclone.levels.generators.areas import SOLID

if TYPE_CHECKING:
    from nclone.levels.generators.areas import Area
    from nclone.levels.generators.canvas import Canvas

HALF_TOP, HALF_BOTTOM, UP_RIGHT, DOWN_RIGHT = 2, 4, 8, 9
"""Tiles whose upper or lower half is solid, and slopes that go up or down to the right."""


def platforms(canvas: Canvas, area: Area) -> None:
    """Slabs in the air, one above the other at changing places."""
    dice, row = canvas.dice, area.bottom - canvas.dice.between(2, 3)
    tile = dice.pick((SOLID, SOLID, HALF_TOP, HALF_BOTTOM))
    while row > area.top + 1:
        size = dice.between(2, max(2, min(6, area.width // 2)))
        canvas.fill(dice.between(area.left, area.right - size + 1), row, size, 1, tile)
        row -= dice.between(2, 4)


def ledges(canvas: Canvas, area: Area) -> None:
    """Slabs from one wall and the other in turn: a tower's way up."""
    dice, row = canvas.dice, area.bottom - canvas.dice.between(2, 4)
    on_left = dice.chance(0.5)
    while row > area.top + 1:
        size = dice.between(1, max(1, area.width // 2))
        canvas.fill(area.left if on_left else area.right - size + 1, row, size, 1)
        on_left = not on_left
        row -= dice.between(3, 5)


def pillars(canvas: Canvas, area: Area) -> None:
    """Blocks on the floor."""
    dice, column = canvas.dice, area.left + canvas.dice.between(2, 4)
    while column < area.right - 1:
        tall = dice.between(1, max(1, min(4, area.height - 3)))
        wide = dice.between(1, 3)
        canvas.fill(column, area.bottom - tall + 1, min(wide, area.right - column), tall)
        column += wide + dice.between(3, 6)


def teeth(canvas: Canvas, area: Area) -> None:
    """Blocks that hang from the ceiling."""
    dice, column = canvas.dice, area.left + canvas.dice.between(1, 4)
    while column < area.right:
        deep = dice.between(1, max(1, area.height // 2 - 1))
        canvas.fill(column, area.top, dice.between(1, 2), deep)
        column += dice.between(3, 6)


def stairs(canvas: Canvas, area: Area) -> None:
    """Steps that go up to one side."""
    dice, tall, run = canvas.dice, 0, canvas.dice.between(2, 3)
    to_right, step = dice.chance(0.5), canvas.dice.between(1, 2)
    for k in range(area.width // 3, area.width):
        if (k - area.width // 3) % run == 0:
            tall = min(tall + step, area.height - 4)
        column = area.left + k if to_right else area.right - k
        canvas.fill(column, area.bottom - tall + 1, 1, tall)


def block(canvas: Canvas, area: Area) -> None:
    """One large block with ways around it."""
    dice = canvas.dice
    wide, tall = dice.between(2, area.width - 4), dice.between(1, area.height - 4)
    canvas.fill(
        dice.between(area.left + 2, area.right - wide - 1),
        dice.between(area.top + 2, area.bottom - tall - 1),
        wide,
        tall,
    )


def hill(canvas: Canvas, area: Area) -> None:
    """A hill with slopes on both sides."""
    dice = canvas.dice
    tall = dice.between(1, max(1, min(3, area.height - 4, (area.width - 3) // 2 - 1)))
    flat = dice.between(1, max(1, area.width - 2 * tall - 2))
    left = dice.between(area.left + 1, max(area.left + 1, area.right - 2 * tall - flat))
    for k in range(tall):
        row, wide = area.bottom - k, 2 * (tall - k) + flat - 2
        canvas.fill(left + k, row, 1, 1, UP_RIGHT)
        canvas.fill(left + k + 1, row, wide, 1)
        canvas.fill(left + k + 1 + wide, row, 1, 1, DOWN_RIGHT)


def basin(canvas: Canvas, area: Area) -> None:
    """Raised floors at both sides of a pit."""
    dice = canvas.dice
    deep, pit = dice.between(1, max(1, min(3, area.height - 4))), dice.between(2, 5)
    start = dice.between(area.left + 2, max(area.left + 2, area.right - pit - 1))
    canvas.fill(area.left, area.bottom - deep + 1, start - area.left, deep)
    canvas.fill(start + pit, area.bottom - deep + 1, max(0, area.right - start - pit + 1), deep)


def screens(canvas: Canvas, area: Area) -> None:
    """Thin walls from floor and ceiling in turn: over one, under the next."""
    dice, column = canvas.dice, area.left + canvas.dice.between(2, 4)
    hangs = dice.chance(0.5)
    while column < area.right - 1:
        gap = dice.between(2, max(2, area.height // 2))
        top = area.top if hangs else area.top + gap
        canvas.fill(column, top, 1, area.height - gap)
        hangs = not hangs
        column += dice.between(3, 6)


def dots(canvas: Canvas, area: Area) -> None:
    """Single blocks on a grid in the air."""
    dice = canvas.dice
    pitch, shift = dice.between(3, 5), dice.between(0, 1)
    for k, row in enumerate(range(area.bottom - 2, area.top + 1, -3)):
        first = area.left + 1 + (pitch // 2 if shift and k % 2 else 0)
        for column in range(first, area.right, pitch):
            canvas.fill(column, row, 1, 1, dice.pick((SOLID, SOLID, 12, 13)))


FURNITURE: dict[str, Callable[[Canvas, Area], None]] = {
    piece.__name__: piece
    for piece in (
        platforms,
        ledges,
        pillars,
        teeth,
        stairs,
        block,
        hill,
        basin,
        screens,
        dots,
    )
}
"""By the names that presets use."""


def furnish(canvas: Canvas, area: Area, pieces: tuple[str, ...], empty: float = 0.15) -> None:
    """Put one of the pieces into an area, or with a probability none; small areas stay empty."""
    if area.width >= 6 and area.height >= 5 and not canvas.dice.chance(empty):
        FURNITURE[canvas.dice.pick(pieces)](canvas, area)
