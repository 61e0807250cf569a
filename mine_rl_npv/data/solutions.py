"""MineLib solution files: `block destination period fraction`, or one block id per line (pits)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mine_rl_npv.data.instance import NEVER, Instance
from mine_rl_npv.data.sections import read_lines, table, whole
from mine_rl_npv.data.whole_files import write_whole


def read_solution(path: str | Path, instance: Instance) -> np.ndarray:
    """Fractions y (n, D, T) float64 of a CPIT, PCPSP or LP solution file.

    CPIT files name destination 0 for every block, whatever D is.

    Raises:
        DataError: a block, destination or period is unknown, or a fraction lies outside [0, 1].
    """
    lines = read_lines(Path(path))
    rows = table(lines, 4, "a solution row")
    b = whole(lines, rows[:, 0], instance.blocks, "block")
    d = whole(lines, rows[:, 1], instance.destinations, "destination")
    t = whole(lines, rows[:, 2], instance.periods, "period")
    outside = ~((rows[:, 3] >= 0) & (rows[:, 3] <= 1 + 1e-5))  # six digits are printed
    if outside.any():
        at = int(np.argmax(outside))
        raise lines.error(at, f"the fraction {rows[at, 3]:g} is outside [0, 1].")
    fractions = np.zeros((instance.blocks, instance.destinations, instance.periods))
    np.add.at(fractions, (b, d, t), rows[:, 3])
    return fractions


def read_pit(path: str | Path, blocks: int) -> np.ndarray:
    """Blocks of a pit file as (n,) bool."""
    lines = read_lines(Path(path))
    ids = whole(lines, table(lines, 1, "a pit row")[:, 0], blocks, "block")
    inside = np.zeros(blocks, bool)
    inside[ids] = True
    return inside


def write_pit(inside: np.ndarray, path: str | Path) -> None:
    """Writes a pit (n,) bool, one block id per line."""
    write_whole(Path(path), (str(b) for b in np.flatnonzero(inside)))


def write_schedule(
    period: np.ndarray, path: str | Path, destination: np.ndarray | None = None
) -> None:
    """Writes a whole-block schedule: `period` (n,) with -1 for blocks that stay in the ground."""
    sent = np.zeros(len(period), np.int64) if destination is None else destination
    mined = np.flatnonzero(np.asarray(period) != NEVER)
    write_whole(Path(path), (f"{b} {sent[b]} {period[b]} 1.000000" for b in mined))


def period_of(fractions: np.ndarray) -> np.ndarray:
    """Period (n,) int32 of each block in a whole-block solution (n, D, T); -1 when not mined."""
    by_period = fractions.sum(axis=1)
    return np.where(by_period.any(axis=1), by_period.argmax(axis=1), NEVER).astype(np.int32)
