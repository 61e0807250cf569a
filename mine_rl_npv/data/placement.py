"""Where the blocks of a file are: on a lattice, put back onto it, or as they lie."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from frugal_rl.errors import DataError
from mine_rl_npv.data.lattice import NEAR, ON, Lattice, fit_lattice, spatial, turn
from mine_rl_npv.data.roles import COORDINATES
from mine_rl_npv.data.unequal import refuse_apart

SLAB = 5
"""Blocks of nothing along an axis beyond which a few rows' numbers are taken for missing ones."""
FEW = 0.01
"""Share of the rows that such a value stands in at most."""

SIX_DIGITS = 10**5
"""The smallest number of as many digits as `%g` and spreadsheets leave of a number."""


class Placement(NamedTuple):
    """Cells and places of N blocks; see `BlockModel`."""

    cell: np.ndarray
    size: tuple[float, float, float]
    origin: tuple[float, float, float]
    gaps: int
    stated: np.ndarray | None
    edge: np.ndarray | None
    bearing: float


def place_blocks(
    path: Path,
    coordinates: np.ndarray,
    place: list[int],
    edge: np.ndarray | None,
    block_size: Sequence[float] | None,
) -> Placement:
    """The blocks on their lattice, or as they lie where edges differ.

    Raises:
        DataError: no lattice, a centroid far off it, or two rows in one cell; by line.
    """
    if edge is not None:
        if (edge <= 0).any():
            at = int(np.argmax((edge <= 0).any(axis=1)))
            raise DataError(f"{path}, line {place[at]}: an edge length is not above 0.")
        if np.ptp(edge, axis=0).max() > 1e-6:
            return _irregular(path, coordinates, place, edge)
        block_size = edge[0].tolist()
    lattice = fit_lattice(coordinates, block_size)
    if lattice is None:
        raise DataError(
            f"{path}: the centroids agree on no block size, straight or rotated. State "
            "block_size=[x,y,z], or give sub-blocks their edge lengths in columns dx, dy, dz."
        )
    off = lattice.off()
    _refuse_far_plane(path, place, lattice.stated, np.asarray(lattice.size))
    _repaired(path, place, lattice, off)
    if block_size is None:
        _refuse_thin(path, place, lattice)
        _refuse_rounded(path, lattice)
    _refuse_duplicates(path, lattice.cell, place)
    stated = np.where((off > ON)[:, None], lattice.stated, lattice.centre)
    moved = stated if (off > ON).any() else None
    gaps = _count_gaps(lattice.cell)
    return Placement(lattice.cell, lattice.size, lattice.origin, gaps, moved, None, lattice.bearing)


def _repaired(path: Path, place: list[int], lattice: Lattice, off: np.ndarray) -> None:
    """Names the centroids that are put back on the lattice, refuses those too far from it."""
    size = " x ".join(f"{length:g}" for length in lattice.size)
    if (off > NEAR).any():
        at = int(np.argmax(off))
        away = np.abs(lattice.stated[at] - lattice.centre[at]).max()
        raise DataError(
            f"{path}, line {place[at]}: the centroid is {away:g} m off the lattice of {size} m "
            f"blocks ({int((off > NEAR).sum())} such rows); correct it or state block_size=[x,y,z]."
        )
    near = np.flatnonzero(off > ON)
    if len(near):
        away = np.abs(lattice.stated[near] - lattice.centre[near]).max(axis=1)
        named = ", ".join(
            f"line {place[b]} by {d:g} m" for b, d in zip(near[:3], away[:3], strict=True)
        )
        warnings.warn(
            f"{path}: {len(near)} centroids lie off the lattice of {size} m blocks and are put "
            f"back ({named}{', ...' if len(near) > 3 else ''}); slopes are kept at both places.",
            stacklevel=2,
        )


def _refuse_far_plane(
    path: Path, place: list[int], coordinates: np.ndarray, size: np.ndarray
) -> None:
    """Raises DataError where few rows share a number far from all others: a missing one's, as -999.

    Args:
        path: for messages.
        place: line numbers.
        coordinates: (N, 3) along the model's own axes.
        size: (3,) edge lengths.
    """
    for axis, values in enumerate(coordinates.T):
        known, count = np.unique(values.round(6), return_counts=True)
        if len(known) < 3:
            continue
        for end, next_to_it in ((0, 1), (-1, -2)):
            far = abs(known[end] - known[next_to_it])
            if far > SLAB * size[axis] and count[end] <= max(1, FEW * len(values)):
                at = int(np.argmin(np.abs(values - known[end])))
                raise DataError(
                    f"{path}, line {place[at]}: the block lies {far:g} m from all others along "
                    f"{COORDINATES[axis]} ({count[end]} such rows); correct it, or leave out rows "
                    "whose coordinates are missing."
                )


def _refuse_thin(path: Path, place: list[int], lattice: Lattice) -> None:
    """Raises DataError where planes of blocks are cells apart: two rows that nearly are one."""
    for axis, cells in enumerate(lattice.cell.T):
        steps = np.diff(np.unique(cells))
        usual = float(np.median(steps)) if len(steps) else 1.0
        if usual <= 1:
            continue
        away, other = spatial.cKDTree(lattice.stated).query(lattice.stated, k=2)
        at = int(np.argmin(away[:, 1]))
        raise DataError(
            f"{path}, line {place[at]}: the block lies {away[at, 1]:g} m from that of line "
            f"{place[int(other[at, 1])]}, and planes of blocks are usually "
            f"{usual * lattice.size[axis]:g} m apart along {COORDINATES[axis]}; is one of them "
            "there twice? Correct it, or state block_size=[x,y,z]."
        )


def _refuse_rounded(path: Path, lattice: Lattice) -> None:
    """Raises DataError where six digits were left of coordinates, so that their step is no block's.

    A northing of 7654333.5 becomes 7.65433e+06, and blocks of 12.5 m stand 10 and 20 m apart.
    """
    for axis in (0, 1):
        step, values = lattice.size[axis], lattice.stated[:, axis]
        apart = np.unique(np.diff(np.unique(lattice.cell[:, axis])))
        ten = step >= 1 and step == 10 ** round(math.log10(step))
        if ten and len(apart) > 1 and SIX_DIGITS <= np.abs(values).max() / step < 10 * SIX_DIGITS:
            if not (values % step).any():
                raise DataError(
                    f"{path}: the numbers of {COORDINATES[axis]} have six digits, and planes of "
                    f"blocks stand {apart[0] * step:g} to {apart[-1] * step:g} m apart; were they "
                    "rounded? Write all digits of coordinates, or state block_size=[x,y,z]."
                )


def _irregular(
    path: Path, coordinates: np.ndarray, place: list[int], edge: np.ndarray
) -> Placement:
    """A model of unequal blocks: cells of its smallest edges, one block in each at most.

    Its largest blocks tell whether it is rotated.
    """
    large = np.all(edge == edge[np.argmax(edge.prod(axis=1))], axis=1)
    whole = fit_lattice(coordinates[large], edge[large][0])
    bearing = whole.bearing if whole is not None and (whole.off() <= ON).mean() > 0.95 else 0.0
    coordinates = turn(coordinates, bearing) if bearing else coordinates
    _refuse_far_plane(path, place, coordinates, edge.max(axis=0))
    size = edge.min(axis=0)
    low = (coordinates - edge / 2).min(axis=0)
    cell = np.floor((coordinates - low) / size + 1e-6).astype(np.int32)
    _refuse_duplicates(path, cell, place)
    refuse_apart(path, place, coordinates, edge)
    origin = tuple((low + size / 2).tolist())
    return Placement(cell, tuple(size.tolist()), origin, 0, coordinates, edge, bearing)


def _refuse_duplicates(path: Path, cell: np.ndarray, place: list[int]) -> None:
    _, first, inverse = np.unique(cell, axis=0, return_index=True, return_inverse=True)
    if len(first) < len(cell):
        again = first[inverse.ravel()] != np.arange(len(cell))
        at = int(np.argmax(again))
        raise DataError(
            f"{path}, line {place[at]}: cell {tuple(cell[at].tolist())} already has the block of "
            f"line {place[int(first[inverse.ravel()[at]])]} ({int(again.sum())} such rows); check "
            "the coordinates or the block size."
        )


def _count_gaps(cell: np.ndarray) -> int:
    column = cell[:, 0].astype(np.int64) * (int(cell[:, 1].max()) + 1) + cell[:, 1]
    _, inverse, count = np.unique(column, return_inverse=True, return_counts=True)
    low = np.full(len(count), np.iinfo(np.int32).max)
    high = np.full(len(count), -1)
    np.minimum.at(low, inverse, cell[:, 2])
    np.maximum.at(high, inverse, cell[:, 2])
    return int((high - low + 1 - count).sum())
