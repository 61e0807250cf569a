"""Rooms of a building: a rectangle cut again and again, and passages between the neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nclone.levels.generators.areas import Area, Cell

if TYPE_CHECKING:
    from nclone.levels.generators.canvas import Canvas

SMALLEST_WIDTH, SMALLEST_HEIGHT = 6, 5
"""Cells of a part that is not cut again, its wall included."""
HIGHEST_LIP = 3
"""Most cells from a room's floor up to a doorway's sill."""


@dataclass(frozen=True)
class Passage:
    """An opening in the wall between the rooms `one` and `other`, by number.

    `area` holds the cells of the wall; `across` where one goes up and down through it.
    """

    one: int
    other: int
    area: Area
    across: bool


@dataclass
class Layout:
    """Rooms and the passages that were opened between them."""

    rooms: list[Area]
    passages: list[Passage]

    def room_of(self, cell: Cell) -> int | None:
        """The number of the room in which a cell lies."""
        return next((k for k, room in enumerate(self.rooms) if room.holds(cell)), None)

    def reached(self, start: int, shut: Iterable[Passage] = ()) -> set[int]:
        """Rooms that can be reached from one without some passages."""
        closed, found, queue = list(shut), {start}, [start]
        while queue:
            room = queue.pop()
            for p in self.passages:
                ends = {p.one, p.other}
                if room in ends and p not in closed:
                    new = ends - found
                    found |= new
                    queue += new
        return found

    def is_bridge(self, passage: Passage) -> bool:
        """Whether one cannot get around a passage."""
        return passage.other not in self.reached(passage.one, [passage])


def cut(canvas: Canvas, box: Area, parts: int, upright: float) -> list[Area]:
    """Cut a box into parts; a cut is vertical with a probability where both are possible."""
    dice, found = canvas.dice, [box]
    while len(found) < parts:
        able = [a for a in found if _cuts(a)]
        if not able:
            break
        largest = max(able, key=lambda a: (a.width * a.height, -a.left, -a.top))
        ways = _cuts(largest)
        vertical = ways[0] if len(ways) == 1 else dice.chance(upright)
        found.remove(largest)
        found += _halves(canvas, largest, vertical)
    return sorted(found, key=lambda a: (a.left, a.top))


def _cuts(area: Area) -> list[bool]:
    """Whether a vertical and whether a horizontal cut leaves parts that are large enough."""
    sizes = ((True, area.width, SMALLEST_WIDTH), (False, area.height, SMALLEST_HEIGHT))
    return [vertical for vertical, size, least in sizes if size >= 2 * least]


def _halves(canvas: Canvas, area: Area, vertical: bool) -> list[Area]:
    size, least = (area.width, SMALLEST_WIDTH) if vertical else (area.height, SMALLEST_HEIGHT)
    middle, play = size // 2, size // 5
    at = min(max(canvas.dice.between(middle - play, middle + play), least), size - least)
    if vertical:
        return [
            Area(area.left, area.top, at, area.height),
            Area(area.left + at, area.top, area.width - at, area.height),
        ]
    return [
        Area(area.left, area.top, area.width, at),
        Area(area.left, area.top + at, area.width, area.height - at),
    ]


def shrunk(canvas: Canvas, part: Area, chance: float) -> Area:
    """The room inside a part: a wall at the right and below, some of it thicker."""
    dice = canvas.dice
    width, height = part.width - 1, part.height - 1
    left, top = part.left, part.top
    if width > 7 and dice.chance(chance):
        less = dice.between(1, min(4, width - 6))
        left, width = left + dice.between(0, less), width - less
    if height > 6 and dice.chance(chance):
        less = dice.between(1, min(4, height - 5))
        top, height = top + dice.between(0, less), height - less
    return Area(left, top, width, height)


def neighbours(canvas: Canvas, rooms: list[Area], thickest: int = 9) -> list[Passage]:
    """A passage for every two rooms that face each other, with no third one between."""
    found = []
    for i, a in enumerate(rooms):
        for j, b in enumerate(rooms):
            for across in (False, True):
                area = _between(canvas, a, b, across)
                if area is None or (area.height if across else area.width) > thickest:
                    continue
                if not any(_touch(area, c) for k, c in enumerate(rooms) if k not in (i, j)):
                    found.append(Passage(i, j, area, across))
    return found


def _between(canvas: Canvas, a: Area, b: Area, across: bool) -> Area | None:
    """The cells of a doorway from `a` to the room at its right, or of a hole to the one below."""
    dice = canvas.dice
    if across:
        low, high = max(a.left, b.left), min(a.right, b.right)
        if high - low < 1 or b.top <= a.bottom:
            return None
        size = dice.between(2, min(5, high - low + 1))
        at = dice.pick((low, high - size + 1, dice.between(low, high - size + 1)))
        return Area(at, a.bottom + 1, size, b.top - a.bottom - 1)
    low, high = max(a.top, b.top), min(a.bottom, b.bottom)
    if high - low < 1 or b.left <= a.right:
        return None
    size = dice.between(2, min(4, high - low + 1))
    sill = high - dice.pick((0, 0, dice.between(0, min(HIGHEST_LIP, high - low + 1 - size))))
    return Area(a.right + 1, sill - size + 1, b.left - a.right - 1, size)


def _touch(a: Area, b: Area) -> bool:
    return a.left <= b.right and b.left <= a.right and a.top <= b.bottom and b.top <= a.bottom


def chosen(canvas: Canvas, rooms: int, passages: list[Passage], loops: float) -> list[Passage]:
    """Passages that join all rooms, and a share of the others, which make loops."""
    dice, order = canvas.dice, list(passages)
    dice.shuffle(order)
    group, kept = list(range(rooms)), []
    for p in order:
        if group[p.one] != group[p.other]:
            old, new = group[p.other], group[p.one]
            group = [new if g == old else g for g in group]
            kept.append(p)
        elif dice.chance(loops) and not any({p.one, p.other} == {k.one, k.other} for k in kept):
            kept.append(p)
    return kept


def open_passage(canvas: Canvas, passage: Passage) -> None:
    """Carve a passage, and a cell in front of it in both rooms."""
    a = passage.area
    if passage.across:
        canvas.carve(a.left, a.top - 1, a.width, a.height + 2)
    else:
        canvas.carve(a.left - 1, a.top, a.width + 2, a.height)


def add_steps(canvas: Canvas, passage: Passage, below: Area) -> None:
    """Slabs under a hole that is out of reach: neither low enough for a jump nor at a wall."""
    a, dice = passage.area, canvas.dice
    if not passage.across or a.left == below.left or a.right == below.right:
        return
    on_left = dice.chance(0.5)
    for row in range(below.top + 2, below.bottom - 1, 3):
        column = a.left - 2 if on_left else a.right + 1
        canvas.fill(max(column, below.left), row, 2, 1)
        on_left = not on_left


def narrow(canvas: Canvas, passage: Passage) -> Cell:
    """Leave one cell's width of a passage; the first cell of it."""
    a, dice = passage.area, canvas.dice
    canvas.fill(a.left, a.top, a.width, a.height)
    if passage.across:
        column = dice.pick((a.left, a.right))
        canvas.carve(column, a.top, 1, a.height)
        return column, a.top
    canvas.carve(a.left, a.bottom, a.width, 1)
    return a.left, a.bottom
