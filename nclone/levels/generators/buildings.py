"""Levels as people build them: a layout of rooms, a cave or an arena, then what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nclone.geometry import MIRRORED
from nclone.levels.generators.areas import EMPTY, Area, floors
from nclone.levels.generators.bevel import bevel
from nclone.levels.generators.canvas import Canvas, Range
from nclone.levels.generators.cells import carve_cave
from nclone.levels.generators.furniture import FURNITURE, furnish
from nclone.levels.generators.layout import (
    Layout,
    add_steps,
    chosen,
    cut,
    neighbours,
    open_passage,
    shrunk,
)
from nclone.levels.generators.locks import gate, lock, trap
from nclone.levels.generators.machines import equip
from nclone.levels.generators.objectives import place_objectives

if TYPE_CHECKING:
    from collections.abc import Sequence

ALL_FURNITURE = tuple(FURNITURE)
OPEN_FURNITURE = ("platforms", "pillars", "block", "hill", "basin", "dots", "stairs")


@dataclass(frozen=True)
class Equipment:
    """What a level holds besides tiles and objectives."""

    machines: tuple[str, ...] = ("gold",)
    """Kinds to draw from, by name; a kind that is named twice is drawn twice as often."""
    groups: Range = (1, 4)

    def put(self, canvas: Canvas, areas: Sequence[Area]) -> None:
        """Put the machines, each group into one of the areas."""
        equip(canvas, areas, self.machines, canvas.dice.between(*self.groups))


@dataclass(frozen=True)
class Building:
    """Rooms that share walls, joined by doorways and holes: a tree with some loops."""

    width: Range = (24, 42)
    height: Range = (12, 23)
    rooms: Range = (3, 6)
    upright: float = 0.5
    """Probability that a cut is vertical; towers have many, galleries few."""
    loops: float = 0.3
    """Share of the passages beyond a tree that are opened."""
    shrink: float = 0.4
    """Probability that a room is smaller than its part of the building, in each direction."""
    furniture: tuple[str, ...] = ALL_FURNITURE
    locks: Range = (0, 1)
    """Locked doors in a chain, at most."""
    traps: Range = (0, 0)
    """Trap doors on ways that one can get around, at most."""
    gates: float = 0.1
    """Share of the other passages with one-way platforms or doors that open at a touch."""
    bevel: float = 0.4
    equipment: Equipment = Equipment()

    def build(self, canvas: Canvas) -> None:
        """Cut, furnish, join, lock and equip."""
        layout = self._layout(canvas)
        bevel(canvas, canvas.dice.pick((0.0, self.bevel, 2 * self.bevel)))
        if not place_objectives(canvas, layout.rooms):
            _bare(canvas, layout.rooms[0])
            return
        self._shut(canvas, layout)
        self.equipment.put(canvas, layout.rooms)

    def _layout(self, canvas: Canvas) -> Layout:
        dice = canvas.dice
        width, height = dice.between(*self.width), dice.between(*self.height)
        left, top = canvas.place_box(width, height)
        parts = cut(
            canvas, Area(left, top, width + 1, height + 1), dice.between(*self.rooms), self.upright
        )
        rooms = [shrunk(canvas, part, self.shrink) for part in parts]
        for room in rooms:
            canvas.carve(room.left, room.top, room.width, room.height)
            furnish(canvas, room, self.furniture)
        passages = chosen(canvas, len(rooms), neighbours(canvas, rooms), self.loops)
        for passage in passages:
            add_steps(canvas, passage, rooms[passage.other])
            open_passage(canvas, passage)
        return Layout(rooms, passages)

    def _shut(self, canvas: Canvas, layout: Layout) -> None:
        spawn, switch, goal = (layout.room_of(cell) for cell in canvas.objectives)
        if spawn is None:
            return
        goals = {room for room in (switch, goal) if room is not None}
        taken = lock(canvas, layout, spawn, goals, canvas.dice.between(*self.locks))
        taken += trap(canvas, layout, canvas.dice.between(*self.traps), taken)
        gate(canvas, layout, self.gates, taken)


@dataclass(frozen=True)
class Cave:
    """A hollow without straight walls, grown from noise."""

    width: Range = (26, 42)
    height: Range = (14, 23)
    rock: float = 0.42
    """Share of cells that are rock at first."""
    bevel: float = 0.8
    equipment: Equipment = Equipment()

    def build(self, canvas: Canvas) -> None:
        """Hollow out, smooth and equip."""
        dice = canvas.dice
        width, height = dice.between(*self.width), dice.between(*self.height)
        box = Area(*canvas.place_box(width, height), width, height)
        carve_cave(canvas, box, self.rock)
        bevel(canvas, self.bevel)
        areas = cut(canvas, box, 6, 0.5)
        if not place_objectives(canvas, areas):
            _bare(canvas, box)
            return
        self.equipment.put(canvas, areas)


@dataclass(frozen=True)
class Arena:
    """One large room full of platforms and blocks, sometimes the same on both sides."""

    width: Range = (24, 42)
    height: Range = (12, 23)
    parts: Range = (4, 10)
    """Parts of the room that are furnished on their own."""
    furniture: tuple[str, ...] = (
        "platforms",
        "pillars",
        "block",
        "hill",
        "basin",
        "dots",
        "stairs",
    )
    symmetric: float = 0.4
    bevel: float = 0.5
    equipment: Equipment = Equipment()

    def build(self, canvas: Canvas) -> None:
        """Hollow out, furnish and equip."""
        dice = canvas.dice
        width, height = dice.between(*self.width), dice.between(*self.height)
        box = Area(*canvas.place_box(width, height), width, height)
        canvas.carve(box.left, box.top, width, height)
        parts = cut(canvas, box, dice.between(*self.parts), 0.6)
        for part in parts:
            furnish(canvas, shrunk(canvas, part, 0.5), self.furniture, 0.1)
        if dice.chance(self.symmetric):
            _mirror(canvas, box)
        bevel(canvas, dice.pick((0.0, self.bevel)))
        if not place_objectives(canvas, parts):
            _bare(canvas, box)
            return
        self.equipment.put(canvas, parts)


def _mirror(canvas: Canvas, box: Area) -> None:
    """Make the right half of a box look like the left one in a mirror."""
    part = canvas.tiles[box.top : box.bottom + 1, box.left : box.right + 1]
    half = box.width // 2
    part[:, box.width - half :] = MIRRORED[part[:, :half][:, ::-1]]


def _bare(canvas: Canvas, area: Area) -> None:
    """An empty room with its objectives, where there was no floor for them."""
    canvas.tiles[area.top : area.bottom + 1, area.left : area.right + 1] = EMPTY
    places = floors(canvas, area)
    canvas.spawn(*places[0])
    canvas.exit(places[len(places) // 2], places[-1])
