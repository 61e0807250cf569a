"""The levels that a game plays: what is static about each, by id; more may join while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nclone.graph.landmarks import Landmarks, find_landmarks
from nclone.graph.routes import Doors, door_places
from nclone.render.scene import moment_widths
from nclone.sim.table import LevelTable

if TYPE_CHECKING:
    from frugal_rl.observation.tables import StaticTable
    from nclone.graph.distance import DistanceTables
    from nclone.levels.level import Level

LEVEL_BYTES = 10_000
"""What a level that joins holds beside its rows of tables: bytes, tiles, entities, landmarks."""
SEARCHER_BYTES = 11 << 20
"""Of the searcher that proves them: 9.7 MB on small levels, 12.5 on the largest."""
Row = Callable[["Level", Landmarks], Mapping[str, np.ndarray]]
"""What the static table holds of a level."""


class PlayedLevels:
    """Tables of levels, row k of each belonging to level id k.

    Args:
        levels: what is played; equal contents share an id.
        static: the table of static observations, empty.
        row: what that table holds of a level.
        distances: the table of distances, empty.
        more: how many levels, each no larger than the largest of these, may be added later.

    Attributes:
        table, static, distances: of simulation, of static observations, of ways.
        marks: landmarks of each level.
        number: [L] int64, what `distances` calls each level.
        places: [L, 4] float64 px, exit switch and exit door.
        doors: `nclone.graph.routes.Doors` of all levels.
        playlist: [levels] int64, the ids of what was given, in its order; then what was added.
    """

    def __init__(
        self,
        levels: Sequence[Level],
        static: StaticTable,
        row: Row,
        distances: DistanceTables,
        more: int = 0,
    ) -> None:
        self.table, self.static, self.row = LevelTable(levels), static, row
        self.distances = distances
        self.marks: list[Landmarks] = [find_landmarks(level) for level in self.table.level]
        self.number = self.distances.add_levels(self.marks)
        for level, marks in zip(self.table.level, self.marks, strict=True):
            self._show(level, marks)
        self.places = np.array([marks.exit_places for marks in self.marks])
        self.doors = door_places(self.distances.levels)
        self.playlist = np.array([self.table.id_of(level) for level in levels])
        self.more = more
        self._widths = moment_widths(self.table.level) if more else (0, 0, 0)
        if more:
            self.table.reserve(more)
            self.static.reserve(more)

    def __len__(self) -> int:
        return len(self.table)

    def fits(self, level: Level) -> bool:
        """Whether a level is new and no larger than the largest, so that no array grows by it."""
        if level.key in self.table or not self.more:
            return False
        widths = zip(moment_widths([level]), self._widths, strict=True)
        return all(own <= most for own, most in widths) and self.table.has_room(level)

    def add(self, level: Level) -> None:
        """Let a level that fits join; it gets the next id."""
        marks = find_landmarks(level)
        self.table.add(level)
        self.marks.append(marks)
        self.number = np.append(self.number, self.distances.add_level(marks))
        self._show(level, marks)
        self.playlist = np.append(self.playlist, self.table.id_of(level))
        self.more -= 1
        self.places = np.vstack([self.places, [marks.exit_places]])
        more = self.distances.levels[len(self.doors.count) :]
        self.doors = Doors(*map(np.concatenate, zip(self.doors, door_places(more), strict=True)))

    def _show(self, level: Level, marks: Landmarks) -> None:
        self.static.intern(level.key, lambda: self.row(level, marks))
