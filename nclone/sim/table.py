"""The level table: everything static, one copy for all worlds, and the templates for a reset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nclone.levels.entity_types import EntityType
from nclone.sim import state as st
from nclone.sim.terrain import build_segments, cell_bits

if TYPE_CHECKING:
    from nclone.levels.level import Level


_D = 0.7071067811865476
ORIENTATIONS = np.array(
    [(1, 0), (_D, _D), (0, 1), (-_D, _D), (-1, 0), (-_D, -_D), (0, -1), (_D, -_D)]
)
"""Unit vectors of the orientation bytes 0..7."""
E = EntityType
MOVERS = (E.ZAP_DRONE, E.BOUNCE_BLOCK, E.THWUMP, E.DEATH_BALL, E.MINI_DRONE, E.SHOVE_THWUMP)
MOVING = (E.ZAP_DRONE, E.BOUNCE_BLOCK, E.THWUMP, E.MINI_DRONE)
THINKING = (E.REGULAR_DOOR, E.THWUMP, E.DEATH_BALL, E.SHOVE_THWUMP)
WATCHED = (E.MINE, E.TOGGLE_MINE, E.BOOST_PAD)
PHYSICAL = (E.ONE_WAY, E.BOUNCE_BLOCK, E.THWUMP, E.SHOVE_THWUMP)
LIVELY = {*MOVING, *THINKING, *PHYSICAL}
DRONES = (E.ZAP_DRONE, E.MINI_DRONE)
DOORS = (E.REGULAR_DOOR, E.LOCKED_DOOR, E.TRAP_DOOR)


class Tables(NamedTuple):
    """The arrays that kernels read, in the order in which they take them."""

    levels: NDArray[np.void]
    segments: NDArray[np.void]
    things: NDArray[np.void]
    doorways: NDArray[np.void]
    lists: NDArray[np.int32]
    entities: NDArray[np.void]
    movers: NDArray[np.void]
    doors: NDArray[np.void]


_DTYPES = Tables(st.LEVEL, st.SEGMENT, st.THING, st.DOORWAY, np.int32, st.ENTITY, st.MOVER, st.DOOR)  # type: ignore[arg-type]
_COPIED = ("entities", "movers", "doors")


def cell_at(x: float, y: float) -> int:
    """Cell of a point inside the level."""
    return min(int(x // 24), 43) * 25 + min(int(y // 24), 24)


class LevelTable:
    """Levels by dense id. Adding a level never changes an id; equal contents share one."""

    def __init__(self, levels: Iterable[Level] = ()) -> None:
        self.level: list[Level] = []
        self.lively: np.int64 | None = None
        """`LIVELY` once a level has something that moves, thinks or pushes."""
        self._ids: dict[str, int] = {}
        self._used = [0] * len(_DTYPES)
        self._widest = [0] * len(_DTYPES)  # rows of the largest level in each array
        self._arrays = [np.zeros(1, dtype) for dtype in _DTYPES]
        for level in levels:
            self.add(level)

    def __len__(self) -> int:
        return len(self.level)

    def __contains__(self, key: str) -> bool:
        return key in self._ids

    @property
    def tables(self) -> Tables:
        """The static arrays; taken anew after each `add`, because they may have grown."""
        return Tables(*self._arrays)

    @property
    def nbytes(self) -> int:
        """Bytes of all static arrays, spare capacity included."""
        return sum(array.nbytes for array in self._arrays)

    @property
    def widest(self) -> dict[str, int]:
        """Rows that the largest level has in each array that worlds copy."""
        return {name: self._widest[Tables._fields.index(name)] for name in _COPIED}

    def id_of(self, level: Level) -> int:
        """Id of a level that was added."""
        return self._ids[level.key]

    def add(self, level: Level) -> int:
        """Compile a level and return its id."""
        if level.key in self._ids:
            return self._ids[level.key]
        for slot, rows in enumerate(_compile(level, self._used)):
            self._append(slot, rows)
            self._widest[slot] = max(self._widest[slot], len(rows))
        if not LIVELY.isdisjoint(level.entities[:, 0]):
            self.lively = st.LIVELY
        self._ids[level.key] = len(self.level)
        self.level.append(level)
        return self._ids[level.key]

    def reserve(self, count: int) -> None:
        """Take room for that many more levels, each as large as the largest here."""
        for slot, widest in enumerate(self._widest):
            self._make_room(slot, self._used[slot] + count * widest)

    def has_room(self, level: Level) -> bool:
        """Whether a level is no larger than the largest here, in each array."""
        sizes = zip(_compile(level, self._used), self._widest, strict=True)
        return all(len(rows) <= widest for rows, widest in sizes)

    def _append(self, slot: int, rows: NDArray) -> None:
        used = self._used[slot]
        need = used + len(rows)
        array = self._arrays[slot]
        if need > len(array):
            self._make_room(slot, max(need, 3 * len(array) // 2))
        self._arrays[slot][used:need] = rows
        self._used[slot] = need

    def _make_room(self, slot: int, rows: int) -> None:
        """Let an array have at least so many rows."""
        array, used = self._arrays[slot], self._used[slot]
        if rows > len(array):
            self._arrays[slot] = np.zeros(rows, array.dtype)
            self._arrays[slot][:used] = array[:used]


def _compile(level: Level, used: list[int]) -> Tables:
    """The rows that a level adds to each table; `used` counts the rows that are there."""
    first = Tables(*used)
    segments, first_of_cell, edges = build_segments(level.tiles)
    doorways, doors = _compile_doors(level)
    things, entities, movers = _compile_entities(level)
    kinds = things["kind"]
    lists = [
        np.nonzero(np.isin(kinds, types))[0] for types in (MOVING, THINKING, WATCHED, (E.EXIT,))
    ]
    row = np.zeros(1, st.LEVEL)
    head = row[0]
    head["spawn_x"], head["spawn_y"] = level.spawn
    head["first_segment"] = first.segments
    head["segments"] = first_of_cell
    head["solid"] = cell_bits(np.nonzero(np.diff(first_of_cell.astype(np.int64)))[0])
    head["edges"] = np.stack([edges[0][:88, :50], edges[1][:88, :50]])
    head["first_entity"], head["entities"] = first.things, len(things)
    head["first_mover"], head["movers"] = first.movers, len(movers)
    head["first_door"], head["doors"] = first.doors, len(doors)
    balls = np.nonzero(kinds == E.DEATH_BALL)[0]
    head["first_ball"] = balls[0] if len(balls) else 0
    head["balls"] = len(balls)
    head["balls_declared"] = level.death_balls_declared
    head["physical"] = np.isin(kinds, PHYSICAL).any()
    head["lists"] = first.lists + np.cumsum([0] + [len(ids) for ids in lists])
    head["watched"] = cell_bits(entities["cell"][lists[st.WATCHED]])
    _mark_doors(head, doorways)
    _fill_grid(head, level, things, entities)
    return Tables(row, segments, things, doorways, np.concatenate(lists), entities, movers, doors)


def _compile_entities(level: Level) -> tuple[NDArray, NDArray, NDArray]:
    """Static rows, initial state rows and initial mover rows of a level's entities."""
    table = level.entities
    kinds = table[:, 0].astype(np.int32)
    things = np.zeros(len(table), st.THING)
    things["kind"], things["x"], things["y"] = kinds, table[:, 1], table[:, 2]
    things["orientation"], things["mode"] = table[:, 3], table[:, 4]
    vectors = ORIENTATIONS[things["orientation"] % 8]
    things["nx"], things["ny"] = vectors[:, 0], vectors[:, 1]
    moving = np.isin(kinds, MOVERS)
    things["mover"] = np.where(moving, np.cumsum(moving) - 1, -1)
    has_door = np.isin(kinds, DOORS)
    things["door"] = np.where(has_door, np.cumsum(has_door) - 1, -1)
    entities = np.zeros(len(table), st.ENTITY)
    entities["active"], entities["next"] = 1, -1
    entities["cell"] = [cell_at(x, y) for x, y in table[:, 1:3]]
    entities["state"][np.isin(kinds, (E.TOGGLE_MINE, E.GOLD, E.EXIT_SWITCH))] = 1
    drones = np.isin(kinds, DRONES)
    entities["state"][drones] = things["orientation"][drones] // 2
    movers = np.zeros(np.count_nonzero(moving), st.MOVER)
    movers["x"], movers["y"] = things["x"][moving], things["y"][moving]
    targets = np.isin(kinds[moving], DRONES)
    movers["tx"][targets], movers["ty"][targets] = movers["x"][targets], movers["y"][targets]
    return things, entities, movers


def _compile_doors(level: Level) -> tuple[NDArray, NDArray]:
    """Static and initial rows of a level's doors, in order of creation (8.4)."""
    doorways = np.zeros(len(level.doors), st.DOORWAY)
    doors = np.zeros(len(level.doors), st.DOOR)
    for d, (entity, x, y, horizontal, closed) in enumerate(level.doors):
        ox, oy = ORIENTATIONS[int(level.entities[int(entity), 3])]
        cell = cell_at(x - 12 * ox, y - 12 * oy)
        hx, hy = 2 * (cell // 25 + 1), 2 * (cell % 25 + 1)
        if horizontal:
            row = (x - 12, y, x + 12, y, cell, 0, hx - 2, hy, hx - 1, hy)
        else:
            row = (x, y - 12, x, y + 12, cell, 1, hx, hy - 2, hx, hy - 1)
        doorways[d] = row
        doors[d] = (closed, closed, 0)
    return doorways, doors


def _mark_doors(head: np.void, doorways: NDArray) -> None:
    """Note which edges doors count on, and which cells own or come near a door."""
    for first, second in (("hx", "hy"), ("hx2", "hy2")):
        for way in doorways:
            if way[first] < 88 and way[second] < 50:
                head["edges"][way["vertical"], way[first], way[second]] |= 2
    head["doorways"] = cell_bits(doorways["cell"])
    middle = [cell_at((w["x1"] + w["x2"]) / 2, (w["y1"] + w["y2"]) / 2) for w in doorways]
    grid = np.zeros((44, 25), bool)
    for cell in middle:
        column, row = divmod(cell, 25)
        grid[max(column - 2, 0) : column + 3, max(row - 2, 0) : row + 3] = True
    head["near_doors"] = cell_bits(np.nonzero(grid.ravel())[0])


def _fill_grid(head: np.void, level: Level, things: NDArray, entities: NDArray) -> None:
    """Link all entities but exits into their cells, in the order of the file."""
    head["head"] = -1
    last: dict[int, int] = {}
    for e in np.argsort(level.records, kind="stable"):
        if things["kind"][e] == E.EXIT:
            entities["cell"][e] = -1
            continue
        cell = int(entities["cell"][e])
        if cell in last:
            entities["next"][last[cell]] = e
        else:
            head["head"][cell] = e
        last[cell] = int(e)
    head["crowd"] = cell_bits(np.array(list(last), np.int64))
