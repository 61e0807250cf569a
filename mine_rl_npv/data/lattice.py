"""Finds the lattice of a block model from centroids that need not all lie on it.

The block size of an axis is the spacing on which nearly all centroids agree, never the smallest
difference of two numbers. A centroid a little off is put back and named; one that could belong to
two cells, or a model without a lattice, is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from frugal_rl.late import Late

spatial = Late("scipy.spatial")
"""It takes longer to import than a model to read."""
ON = 0.01
"""Share of the spacing within which a centroid counts as on the lattice."""
NEAR = 0.35
"""Share of the spacing up to which a centroid is put back."""
_AGREE = 0.75
_TOUCHING = 0.995
_BESIDE = 0.9
_MANY = 0.05
_SAMPLE = 20_000
USUAL = 0.7
"""Of the blocks beside another at the best step, the share beside one at the first that will do."""
FARTHEST = 6
"""Parts of a block by which a share of the model may have been moved."""
_LEVEL_APART = 1000.0


@dataclass(frozen=True)
class Lattice:
    """Cells of N centroids."""

    cell: np.ndarray
    """(N, 3) int32, smallest 0."""
    size: tuple[float, float, float]
    origin: tuple[float, float, float]
    """Centroid of cell (0, 0, 0) along the model's own axes, metres."""
    bearing: float
    """Azimuth of the model's own +y axis in degrees, 0 where it is north."""
    stated: np.ndarray
    """(N, 3) float64 the centroids as given, turned to the model's own axes."""

    @property
    def centre(self) -> np.ndarray:
        """(N, 3) float64 centroids on the lattice."""
        return np.asarray(self.origin) + self.cell * np.asarray(self.size)

    def off(self) -> np.ndarray:
        """(N,) float64 largest distance from the lattice by axis, as a share of the spacing."""
        return (np.abs(self.stated - self.centre) / np.asarray(self.size)).max(axis=1)


def fit_lattice(centroids: np.ndarray, size: Sequence[float] | None = None) -> Lattice | None:
    """The lattice that nearly all centroids (N, 3) agree on, None where there is none.

    Args:
        centroids: world coordinates in metres, z upward.
        size: spacing by axis, where it is known.
    """
    straight = _fit(centroids, size)
    if straight is not None and _share_off(straight) <= _MANY:
        return straight
    bearing = _bearing(centroids)
    turned = None if bearing is None else _fit(turn(centroids, bearing), size)
    if turned is None or bearing is None:
        return straight
    if straight is not None and _share_off(straight) <= _share_off(turned):
        return straight
    return replace(turned, bearing=bearing)


def _share_off(lattice: Lattice) -> float:
    return float((lattice.off() > ON).mean())


def turn(centroids: np.ndarray, bearing: float) -> np.ndarray:
    """World coordinates (N, 3) along axes whose +y points to the azimuth `bearing` in degrees."""
    cos, sin = math.cos(math.radians(bearing)), math.sin(math.radians(bearing))
    x, y, z = centroids.T
    return np.column_stack((x * cos - y * sin, x * sin + y * cos, z))


def _fit(centroids: np.ndarray, size: Sequence[float] | None) -> Lattice | None:
    found: list[float | None] = []
    for axis in range(3):
        values = centroids[:, axis]
        if size is not None:
            found.append(float(size[axis]))
        elif np.ptp(values) < 1e-6:
            found.append(None)
        else:
            spacing = _spacing(values)
            if spacing is None:
                return None
            found.append(spacing)
    lattice = _on_lattice(centroids, _filled(found))
    if size is not None:
        return lattice
    finer = _as_blocks_lie(_told_apart(lattice))
    some = 0 < _sharing(lattice) <= _MANY * len(centroids)
    if finer is None and some and _has_neighbours(lattice.cell):
        return lattice  # a row or two are wrong; whoever places blocks names them
    return finer


def _as_blocks_lie(lattice: Lattice) -> Lattice | None:
    """The lattice with the step of its blocks where that is a multiple; None without neighbours."""
    centroids = lattice.stated
    apart = [_blocks_apart(lattice.cell, axis) for axis in range(3)]
    if max(apart) > 1:
        steps = zip(lattice.size, apart, strict=True)
        x, y, z = (
            _refined(centroids[:, axis], far * step) if far > 1 else step
            for axis, (step, far) in enumerate(steps)
        )
        lattice = _on_lattice(centroids, (x, y, z))
        if len(np.unique(lattice.cell, axis=0)) < len(lattice.cell):
            return None
    return lattice if _has_neighbours(lattice.cell) else None


def _told_apart(lattice: Lattice) -> Lattice:
    """A finer one where blocks share cells: pits far apart agree on the distance between them."""
    for axis in range(3):
        shared, most = _sharing(lattice), lattice.size[axis] / 2
        while shared and (finer := _spacing(lattice.stated[:, axis], most)) is not None:
            size = [finer if a == axis else step for a, step in enumerate(lattice.size)]
            tried, most = _on_lattice(lattice.stated, (size[0], size[1], size[2])), finer / 2
            if (left := _sharing(tried)) < shared:
                lattice, shared = tried, left
    return lattice


def _sharing(lattice: Lattice) -> int:
    """Blocks beyond one in each cell."""
    return len(lattice.cell) - len(np.unique(lattice.cell, axis=0))


def _on_lattice(centroids: np.ndarray, size: tuple[float, float, float]) -> Lattice:
    """The cells of centroids for a known spacing."""
    origin = [_phase(centroids[:, a], size[a]) for a in range(3)]
    cell = np.round((centroids - origin) / np.asarray(size)).astype(np.int64)
    low = cell.min(axis=0)
    place = tuple((np.asarray(origin) + low * np.asarray(size)).tolist())
    return Lattice((cell - low).astype(np.int32), size, place, 0.0, centroids)


def _blocks_apart(cell: np.ndarray, axis: int) -> int:
    """Cells from a block to the next one along an axis.

    It is above 1 where a part of the model was moved by a share of a block: all centroids then
    agree on a spacing finer than that of the blocks.
    """
    if cell[:, axis].max() == 0:
        return 1
    step = np.eye(3, dtype=np.int64)[axis]
    shape = cell.max(axis=0).astype(np.int64) + 1 + 2 * FARTHEST
    known = np.unique(np.ravel_multi_index(tuple((cell.astype(np.int64) + FARTHEST).T), shape))
    sample = cell[:: max(len(cell) // _SAMPLE, 1)].astype(np.int64) + FARTHEST
    beside = []
    for far in range(1, FARTHEST + 1):
        one = np.isin(np.ravel_multi_index(tuple((sample + far * step).T), shape), known)
        other = np.isin(np.ravel_multi_index(tuple((sample - far * step).T), shape), known)
        beside.append(float((one | other).mean()))
    return 1 if beside[0] >= USUAL * max(beside) else 1 + int(np.argmax(beside))


def _filled(found: list[float | None]) -> tuple[float, float, float]:
    """Spacings where every axis has one: a single layer takes that of another axis."""
    x, y, z = found
    across = x or y or z or 1.0
    return (x or y or across, y or x or across, z or across)


def _spacing(values: np.ndarray, most: float = math.inf) -> float | None:
    """The spacing up to `most` that most values agree on; the widest of equally good ones."""
    best, chosen = 0.0, None
    sample = values[:: max(len(values) // _SAMPLE, 1)]
    for candidate in sorted((c for c in _candidates(sample) if c <= most), reverse=True):
        agree = _agreement(sample, candidate)
        if agree > best + 0.02:
            best, chosen = agree, candidate
    if chosen is None or best < _AGREE:
        return None
    return _refined(values, chosen)


def _candidates(values: np.ndarray) -> set[float]:
    """Steps between well filled planes, told apart at several distances, and parts of them."""
    ordered = np.sort(values)
    steps = np.diff(ordered)
    span = float(ordered[-1] - ordered[0])
    found: set[float] = set()
    apart = span / 3
    while apart > span * 1e-7:
        edges = np.flatnonzero(steps > apart)
        starts = np.concatenate(([0], edges + 1))
        counts = np.diff(np.append(starts, len(ordered)))
        middles = np.add.reduceat(ordered, starts) / counts
        usual = np.median(np.repeat(counts, counts))
        planes = middles[counts >= 0.1 * usual]
        found |= _usual_steps(np.diff(planes))
        apart /= 3
    return {round(step / part, 9) for step in found for part in (1, 2, 3) if step / part > 1e-6}


def _usual_steps(steps: np.ndarray) -> set[float]:
    if len(steps) == 0:
        return set()
    rounded, counts = np.unique(np.round(steps, 4), return_counts=True)
    usual = rounded[np.argsort(-counts)[:3]]
    return {*usual.tolist(), float(np.median(steps)), float(rounded[0])} - {0.0}


def _agreement(values: np.ndarray, spacing: float) -> float:
    """Share of the values within a tenth of the spacing from the lattice they suggest."""
    away = (values - _phase(values, spacing)) / spacing
    return float((np.abs(away - np.round(away)) < 0.1).mean())


def _phase(values: np.ndarray, spacing: float) -> float:
    """Where the lattice of a spacing lies: the median of the values that agree with their mean."""
    angle = 2 * np.pi * values / spacing
    phase = math.atan2(float(np.sin(angle).mean()), float(np.cos(angle).mean())) / (2 * np.pi)
    for near in (0.25, 0.05):
        away = values / spacing - phase
        away -= np.round(away)
        close = np.abs(away) <= near
        if close.any():
            phase += float(np.median(away[close]))
    return phase * spacing


def _refined(values: np.ndarray, spacing: float) -> float:
    """The spacing by regression over the values on the lattice; a round number that fits as well.

    Centroids rounded in the file scatter about either; exact ones lie on their own spacing alone,
    and slopes must not be those of another.
    """
    away = (values - _phase(values, spacing)) / spacing
    cell = np.round(away)
    on = np.abs(away - cell) < 0.1
    if not on.any():
        return spacing
    x, y = cell[on] - cell[on].mean(), values[on] - values[on].mean()
    spread = float((x * x).sum())
    exact = float((x * y).sum()) / spread if spread > 0 else spacing
    scatter = float(np.sqrt(((y - exact * x) ** 2).mean()))
    for digits in (0, 1, 2, 3, 4, 5, 6):
        nice = round(exact, digits)
        if nice > 0 and abs(nice - exact) * np.ptp(cell) < 2 * scatter + 1e-9 * spacing:
            return nice
    return exact


def _has_neighbours(cell: np.ndarray) -> bool:
    """Whether nearly every block touches another one, as cells do and sub-blocks do not."""
    shape = cell.max(axis=0).astype(np.int64) + 3
    key = ((cell[:, 2] + 1) * shape[1] + cell[:, 1] + 1) * shape[0] + cell[:, 0] + 1
    known = np.unique(key)
    steps = (-1, 0, 1)
    level = {y * shape[0] + x for y in steps for x in steps} - {0}
    every = {z * shape[0] * shape[1] + step for z in steps for step in (*level, 0)} - {0}
    across = len(np.unique(cell[:, :2], axis=0)) > 1
    if across and _touching(key, known, level) < _BESIDE:
        return False
    return len(known) == 1 or _touching(key, known, every) >= _TOUCHING


def _touching(key: np.ndarray, known: np.ndarray, steps: set[int]) -> float:
    """Share of the cells that have another one at one of the steps."""
    beside = np.zeros(len(key), bool)
    for step in steps:
        beside[~beside] = np.isin(key[~beside] + step, known)
    return float(beside.mean())


def _bearing(centroids: np.ndarray) -> float | None:
    """Azimuth in [0, 90) of the axes by nearest neighbours on the same level; None if unclear."""
    if len(centroids) < 4:
        return None
    sample = np.unique(np.linspace(0, len(centroids) - 1, 2000).astype(np.int64))
    apart = centroids * (1, 1, _LEVEL_APART)
    _, nearest = spatial.cKDTree(apart).query(apart[sample], k=2)
    step = centroids[nearest[:, 1]] - centroids[sample]
    azimuth = np.arctan2(step[:, 0], step[:, 1])
    fourfold = np.exp(4j * azimuth).mean()
    if abs(fourfold) < 0.8:
        return None
    bearing = float(np.degrees(np.angle(fourfold)) / 4) % 90
    return _sharpened(centroids, bearing)


def _sharpened(centroids: np.ndarray, bearing: float) -> float:
    """The bearing at which the planes of x and y are thinnest, within a degree."""
    around = bearing
    for width in (0.5, 0.1, 0.02, 0.004, 0.0008, 0.00016):
        tried = around + width * np.linspace(-1, 1, 11)
        around = float(min(tried, key=lambda b: _thickness(centroids, b)))
    return round(around, 4) % 90


def _thickness(centroids: np.ndarray, bearing: float) -> float:
    """How far sorted coordinates are from a few planes: the middle of the small steps."""
    turned = turn(centroids, bearing)
    return sum(
        float(np.sort(np.diff(np.sort(turned[:, a])))[: len(turned) * 9 // 10].sum())
        for a in (0, 1)
    )
