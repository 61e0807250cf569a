"""Doors between rooms: locked ones in chains, trap doors, doors that open at a touch, one-ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone.levels.entity_types import EntityType
from nclone.levels.generators.areas import Area, Cell, floors
from nclone.levels.generators.canvas import CENTRE
from nclone.levels.generators.layout import Layout, Passage, narrow

if TYPE_CHECKING:
    from nclone.levels.generators.canvas import Canvas

UPWARDS = 6


def lock(canvas: Canvas, layout: Layout, spawn: int, goals: set[int], count: int) -> list[Passage]:
    """Lock up to `count` passages that must be passed; returns them, the nearest to spawn first.

    The key of each door lies in front of it, where possible behind the door before.
    """
    needed = [p for p in layout.passages if goals - layout.reached(spawn, [p])]
    canvas.dice.shuffle(needed)
    needed = sorted(needed[:count], key=lambda p: len(layout.reached(spawn, [p])))
    behind: set[int] = set()
    locked = []
    for k, passage in enumerate(needed):
        open_rooms = layout.reached(spawn, needed[k:])
        fresh = (open_rooms - behind) or open_rooms
        key = key_place(canvas, [layout.rooms[n] for n in sorted(fresh)])
        if key is None:
            continue
        column, row = narrow(canvas, passage)
        canvas.locked_door(column, row, key, passage.across)
        behind |= open_rooms
        locked.append(passage)
    return locked


def trap(canvas: Canvas, layout: Layout, count: int, taken: list[Passage]) -> list[Passage]:
    """Put trap doors into passages that one can get around; their switches lie on floors."""
    free = [p for p in layout.passages if p not in taken and not layout.is_bridge(p)]
    canvas.dice.shuffle(free)
    for passage in free[:count]:
        switch = key_place(canvas, [layout.rooms[passage.one], layout.rooms[passage.other]])
        if switch is not None:
            column, row = narrow(canvas, passage)
            canvas.trap_door(column, row, switch, passage.across)
    return free[:count]


def gate(canvas: Canvas, layout: Layout, share: float, taken: list[Passage]) -> None:
    """Fit one-way platforms into holes, and doors that open at a touch into doorways."""
    for p in layout.passages:
        if p in taken or not canvas.dice.chance(share):
            continue
        if p.across:
            for column in range(p.area.left, p.area.right + 1):
                x, y = 4 * column + CENTRE, 4 * p.area.top + CENTRE
                canvas.record(EntityType.ONE_WAY, x, y, UPWARDS, 0)
        elif layout.is_bridge(p):
            column, row = narrow(canvas, p)
            canvas.record(EntityType.REGULAR_DOOR, 4 * column, 4 * row + CENTRE, 0, 0)
        else:
            to_right = canvas.dice.chance(0.5)
            for row in range(p.area.top, p.area.bottom + 1):
                x, y = 4 * p.area.left + CENTRE, 4 * row + CENTRE
                canvas.record(EntityType.ONE_WAY, x, y, 0 if to_right else 4, 0)


def key_place(canvas: Canvas, rooms: list[Area]) -> Cell | None:
    """A clear cell on a floor of one of the rooms."""
    spots = [c for room in rooms for c in floors(canvas, room) if canvas.is_clear(*c, reach=1)]
    return canvas.dice.pick(spots) if spots else None
