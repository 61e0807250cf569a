"""Which row sits at which pad of which cartridge."""

from __future__ import annotations

import numpy as np


class Seating:
    """`rows` learners at cartridges: the first `pairs` cartridges have two of them, others one.

    machine  [rows] int64   the cartridge of each row
    seats    [rows] int64   0 the first pad, 1 the second; rows that are alone may change theirs
    rows_of  for each cartridge its rows
    single   [S] int64      rows with nobody learning opposite
    """

    def __init__(self, rows: int, pairs: int) -> None:
        self.machines = rows - pairs
        self.machine = np.concatenate(
            [np.arange(pairs).repeat(2), np.arange(pairs, self.machines)]
        ).astype(np.int64)
        self.seats = np.zeros(rows, np.int64)
        self.seats[1 : 2 * pairs : 2] = 1
        self.rows_of = [np.flatnonzero(self.machine == m) for m in range(self.machines)]
        self.single = np.arange(2 * pairs, rows)


def paired(rows: int, alone: float) -> int:
    """Cartridges of which both pads are rows, where the share `alone` of the rows is not."""
    return round((1 - alone) * rows / 2)
