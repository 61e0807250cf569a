"""Path distances by look-up: one breadth-first search per (level, open doors, goal), ever.

`DistanceTables` owns one arena of hop counts, 8.8 kB per goal, that all environments share. An
environment holds an entry number; a kernel turns N entries and N positions into N distances with
one call. Entries that nobody holds are dropped least recently used first when the arena is full.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from nclone.geometry import PLAYER_RADIUS_PX
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH, GOALS, MINE_RADIUS_PX
from nclone.graph.lattice import NODES, STEP_PX, UNREACHABLE, flood_from_spawn
from nclone.graph.paths import TOUCH_RADIUS_PX, build_lattice, goal_hops, near_any, path_distance

if TYPE_CHECKING:
    from nclone.graph.landmarks import Landmarks


NO_DOORS = -1
"""Bits that no doors have."""


class MineBlock(Enum):
    """Whether deadly mines take nodes out of the lattice."""

    none = "none"
    tile = "tile"
    radius = "radius"


@dataclass(frozen=True)
class Truncation:
    """Frame limit of a level: clip((nodes * sqrt(A) + mines * M) * scale, least, most)."""

    nodes: float = 5.0
    mines: float = 50.0
    scale: float = 10.0
    least_frames: int = 300
    most_frames: int = 4000

    def frames(self, area: int, mines: int) -> int:
        """The limit for A reachable nodes and M reachable mines."""
        limit = (self.nodes * float(np.sqrt(area)) + self.mines * mines) * self.scale
        return int(np.clip(limit, self.least_frames, self.most_frames))


@dataclass(frozen=True)
class _Key:
    level: int
    door_bits: int
    deadly: bytes


class DistanceTables:
    """All distances that are in use, in one arena; the arrays are read by kernels.

    The arena may be replaced by a larger one: pass `tables.hops` and its companions to a kernel
    afresh in every call.

    Attributes:
        hops: [rows, 4400] uint16, steps to a goal, 65535 where there is no path.
        goal_row: [entries, 34] int32, the row of each goal, -1 where the level has no such goal.
        area: [entries] int32, A, the number of nodes reachable from the spawn point.
        scale_px: [entries] float64, S = 12 sqrt(A).
        reach_px: [entries, 2] float64, the greater of S and the way from the spawn point to the
            exit switch, or from the switch to the exit door.
        mines: [entries] int32, M, reachable mines of either kind.
        exit_reachable: [entries] bool, the exit door has a node in the reachable part.
        mine_reachable: [entries, most mines] bool, which mines have a reachable node in touch.
        mine_offset: [levels + 1] int64; the mines of level k are rows offset[k] to offset[k + 1]
            of mine_xy [total, 2] float64 px and mine_entity [total] int64.
        limit_frames: [entries] int32, the truncation limit L.
    """

    def __init__(
        self,
        capacity_mib: float = 64.0,
        mine_block: MineBlock = MineBlock.none,
        truncation: Truncation | None = None,
    ) -> None:
        self.mine_block = mine_block
        self.truncation = truncation or Truncation()
        rows = int(capacity_mib * 2**20 / (2 * NODES))
        if rows < GOALS:
            raise ValueError(
                f"env.distances_mib is {capacity_mib}; one level may need {GOALS} rows of "
                f"8.8 kB, so use at least 0.3."
            )
        self.levels: list[Landmarks] = []
        self._number_of_level: dict[str, int] = {}
        self._slots: OrderedDict[_Key, int] = OrderedDict()
        self._holders = np.zeros(0, np.int64)
        self._keys: list[_Key | None] = []
        self.hops = np.empty((rows, NODES), np.uint16)  # pages are touched when first written
        self._free_rows = _FreeRows(rows)
        self._free_slots: list[int] = []
        self.goal_row = np.empty((0, GOALS), np.int32)
        self.area = np.empty(0, np.int32)
        self.scale_px = np.empty(0, np.float64)
        self.reach_px = np.empty((0, 2), np.float64)
        self.mines = np.empty(0, np.int32)
        self.exit_reachable = np.empty(0, np.bool_)
        self.mine_reachable = np.empty((0, 0), np.bool_)
        self.limit_frames = np.empty(0, np.int32)
        self.mine_offset = np.zeros(1, np.int64)
        self.mine_xy = np.empty((0, 2), np.float64)
        self.mine_entity = np.empty(0, np.int64)
        self._grow_slots(64)
        self._exists = np.empty(NODES, np.bool_)
        self._steps = np.empty(NODES, np.uint8)
        self._queue = np.empty(NODES, np.int32)
        self._spawn_hops = np.empty(NODES, np.uint16)

    @property
    def entries(self) -> int:
        """How many (level, doors) pairs are held at present."""
        return len(self._slots)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows in use and of the directory."""
        used = self.hops.shape[0] - len(self._free_rows)
        return used * NODES * 2 + self.goal_row.nbytes + self.mine_reachable.nbytes

    def add_level(self, landmarks: Landmarks) -> int:
        """The number of a level, given once per content key; nothing is searched yet."""
        number = self._number_of_level.get(landmarks.key)
        if number is None:
            number = len(self.levels)
            self._number_of_level[landmarks.key] = number
            self.levels.append(landmarks)
            self._append_mines(landmarks)
        return number

    def add_levels(self, levels: Sequence[Landmarks]) -> np.ndarray:
        """[len(levels)] int64, the numbers of several levels."""
        return np.array([self.add_level(marks) for marks in levels], np.int64)

    def acquire(self, level: int, door_bits: int, deadly: np.ndarray | None = None) -> int:
        """The entry of a level with the doors in `door_bits` open; it stays until released.

        `deadly` [M] bool is asked for only with a `mine_block` other than none.
        """
        blocks = self.mine_block is not MineBlock.none and deadly is not None
        key = _Key(level, int(door_bits), deadly.tobytes() if blocks else b"")
        slot = self._slots.get(key)
        if slot is None:
            slot = self._build(key)
        self._slots.move_to_end(key)
        self._holders[slot] += 1
        return slot

    def reserve(self, level: int, again: bool = False) -> None:
        """Take places as for one entry of a level, where nobody will look: to count their bytes.

        `again` takes more where there are some already.
        """
        key = _Key(level, NO_DOORS, len(self._slots).to_bytes(8, "little") if again else b"")
        if key not in self._slots:
            self._keep(key, self._placed(self.levels[level]))

    def release(self, entry: int) -> None:
        """Give an entry back; it is kept until its place is needed."""
        if self._holders[entry] <= 0:
            raise ValueError(f"Distance entry {entry} is released more often than acquired.")
        self._holders[entry] -= 1

    def reacquire(
        self, entry: np.ndarray, level: np.ndarray, door_bits: np.ndarray, changed: Sequence[int]
    ) -> None:
        """Move the worlds listed in `changed` to the entries of their present level and doors.

        entry [N] int64 is rewritten in place; -1 means that a world holds none yet.
        """
        for n in changed:
            before = int(entry[n])
            entry[n] = self.acquire(int(level[n]), int(door_bits[n]))
            if before >= 0:
                self.release(before)

    def reachable_steps(
        self, level: int, door_bits: int, deadly: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """[4400] bool, nodes reachable from the spawn point, and [4400] uint8, their free steps."""
        self._flood(self.levels[level], door_bits, deadly)
        return self._spawn_hops != UNREACHABLE, self._steps.copy()

    def _flood(self, marks: Landmarks, door_bits: int, deadly: np.ndarray | None) -> int:
        closed = np.array([not door_bits >> d & 1 for d in range(len(marks.door_cells))], np.bool_)
        mines = marks.mines_xy[:0] if deadly is None else marks.mines_xy[deadly]
        block = list(MineBlock).index(self.mine_block)
        build_lattice(
            marks.tiles, marks.door_cells, closed, mines, block, self._exists, self._steps
        )
        return flood_from_spawn(
            self._steps, self._exists, *marks.spawn, self._queue, self._spawn_hops
        )

    def _build(self, key: _Key) -> int:
        marks = self.levels[key.level]
        deadly = np.frombuffer(key.deadly, np.bool_) if key.deadly else None
        area = self._flood(marks, key.door_bits, deadly)
        reachable = self._spawn_hops != UNREACHABLE
        slot = self._placed(marks)
        for goal, (x, y) in marks.goals.items():
            row, touch = self.goal_row[slot, goal], TOUCH_RADIUS_PX[goal]
            goal_hops(self._steps, reachable, x, y, touch, self._queue, self.hops[row])
        near = self.mine_reachable[slot, : len(marks.mines_xy)]
        touch = MINE_RADIUS_PX + PLAYER_RADIUS_PX
        self.mines[slot] = near_any(reachable, marks.mines_xy, touch, self._queue, near)
        self.area[slot] = area
        self.scale_px[slot] = STEP_PX * np.sqrt(area)
        self.reach_px[slot] = self.scale_px[slot]
        starts = {EXIT_SWITCH: marks.spawn, EXIT_DOOR: marks.goals.get(EXIT_SWITCH, marks.spawn)}
        for goal, start in starts.items():
            way = path_distance(self.hops, self.goal_row[slot, goal], *start)
            if np.isfinite(way):
                self.reach_px[slot, goal] = max(way, self.scale_px[slot])
        row = self.goal_row[slot, EXIT_DOOR]
        self.exit_reachable[slot] = row >= 0 and bool((self.hops[row] == 0).any())
        self.limit_frames[slot] = self.truncation.frames(area, int(self.mines[slot]))
        return self._keep(key, slot)

    def _placed(self, marks: Landmarks) -> int:
        """A slot with a row for each goal, still without content."""
        slot = self._take_slot(len(marks.goals))
        for goal in marks.goals:
            self.goal_row[slot, goal] = self._free_rows.pop()
        return slot

    def _keep(self, key: _Key, slot: int) -> int:
        self._slots[key] = slot
        self._keys[slot] = key
        return slot

    def _take_slot(self, rows: int) -> int:
        """A cleared slot, with at least `rows` free rows: drops the oldest entries nobody holds."""
        while len(self._free_rows) < rows:
            victim = next((k for k, s in self._slots.items() if self._holders[s] == 0), None)
            if victim is None:  # everything is in use: the bound gives way, not the run
                used = self.hops.shape[0]
                self.hops = np.concatenate([self.hops, np.empty_like(self.hops)])
                self._free_rows.total = 2 * used
            else:
                self._drop(victim)
        if not self._free_slots:
            self._grow_slots(2 * len(self._keys))
        slot = self._free_slots.pop()
        self.goal_row[slot] = -1
        self.mine_reachable[slot] = False
        return slot

    def _drop(self, key: _Key) -> None:
        slot = self._slots.pop(key)
        self._free_rows.extend(int(row) for row in self.goal_row[slot] if row >= 0)
        self._keys[slot] = None
        self._free_slots.append(slot)

    def _grow_slots(self, slots: int) -> None:
        before = len(self._keys)
        for name in _PER_ENTRY:
            setattr(self, name, _extended(getattr(self, name), slots))
        self._holders = _extended(self._holders, slots)
        self._keys.extend([None] * (slots - before))
        self._free_slots.extend(range(slots - 1, before - 1, -1))

    def _append_mines(self, marks: Landmarks) -> None:
        first, end = int(self.mine_offset[-1]), int(self.mine_offset[-1]) + len(marks.mines_xy)
        if end > len(self.mine_entity):
            self.mine_xy = _extended(self.mine_xy, 2 * end)
            self.mine_entity = _extended(self.mine_entity, 2 * end)
        self.mine_xy[first:end] = marks.mines_xy
        self.mine_entity[first:end] = marks.mine_entities
        self.mine_offset = np.append(self.mine_offset, end)
        slots, widest = self.mine_reachable.shape
        if len(marks.mines_xy) > widest:
            wider = np.zeros((slots, len(marks.mines_xy)), np.bool_)
            wider[:, :widest] = self.mine_reachable
            self.mine_reachable = wider


class _FreeRows:
    """Rows of the arena that nobody uses: those given back, and all from `unused` on.

    A list of all rows would cost each table 0.3 MB of integers.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.unused = 0
        self.returned: list[int] = []

    def __len__(self) -> int:
        return self.total - self.unused + len(self.returned)

    def pop(self) -> int:
        """A free row, one that was in use before if there is one."""
        if self.returned:
            return self.returned.pop()
        self.unused += 1
        return self.unused - 1

    def extend(self, rows: Iterable[int]) -> None:
        """Give rows back."""
        self.returned.extend(rows)


_PER_ENTRY = (
    "goal_row",
    "area",
    "scale_px",
    "reach_px",
    "mines",
    "exit_reachable",
    "mine_reachable",
    "limit_frames",
)


def _extended(array: np.ndarray, length: int) -> np.ndarray:
    grown = np.zeros((length, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
