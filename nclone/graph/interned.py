"""Graphs by (level, open doors, objective): built when they are first read, then only an id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from frugal_rl.errors import CheckpointError
from nclone.graph.fields import graph_table, table_row
from nclone.graph.navigation import build_graph

if TYPE_CHECKING:
    from frugal_rl.observation.bounded import BoundedTable
    from nclone.graph.distance import DistanceTables


class InternedGraphs:
    """The ids of a game's graphs and the bounded table of their rows.

    Args:
        distances: the tables of the levels that graphs are built from.
        most_mib: bound of the table; the least recently read go first.
    """

    def __init__(self, distances: DistanceTables, most_mib: float) -> None:
        self.distances = distances
        self.table: BoundedTable = graph_table(most_mib)

    def id_of(self, number: int, door_bits: int, objective: int) -> int:
        """The id of the graph of a level, by its number in `distances`."""
        return self.table.intern(
            (self.distances.levels[number].key, door_bits, objective),
            lambda: table_row(build_graph(self.distances, number, door_bits, objective)),
        )

    def keys(self) -> list[list[Any]]:
        """Keys of all graphs in the order of their ids, as plain values."""
        return [list(key) for key in self.table.keys]

    def intern_again(self, keys: Sequence[Sequence[Any]]) -> None:
        """Give graphs the ids that they had, so that stored rows keep their meaning.

        Raises:
            CheckpointError: other graphs have these ids already.
        """
        number = {marks.key: n for n, marks in enumerate(self.distances.levels)}
        for wanted, (key, door_bits, objective) in enumerate(keys):
            if self.id_of(number[key], int(door_bits), int(objective)) != wanted:
                raise CheckpointError(
                    "The checkpoint's graphs were numbered in another order. Continue with the "
                    "same env and seed that it was saved with."
                )
