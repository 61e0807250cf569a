"""Block models as CSV: one row per block, columns in any order, absent rows are air."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from frugal_rl.errors import DataError
from mine_rl_npv.data.lattice import NEAR, ON, Lattice, fit_lattice
from mine_rl_npv.data.whole_files import write_whole
from mine_rl_npv.slopes.cone import Slopes, cell_slopes

COORDINATES = ("x", "y", "z")
REQUIRED = (*COORDINATES, "ton")
ASSAYS = (
    "clays",
    "chalcocite",
    "bornite",
    "chalcopyrite",
    "tennantite",
    "molibdenite",
    "pyrite",
    "cu",
    "mo",
    "as",
    "rec",
    "bwi",
)
EDGES = (("dx", "dy", "dz"), ("xinc", "yinc", "zinc"), ("xlength", "ylength", "zlength"))
"""Names under which block models state edge lengths."""
NEVER_NEGATIVE = ("ton", *ASSAYS, "upl")


@dataclass(frozen=True)
class BlockModel:
    """Blocks of one deposit by row; N rows on a grid of nx * ny * nz cells.

    Raw values: grades, minerals, clays and recovery in per cent, bwi in kWh/t, ton in tonnes.
    """

    cell: np.ndarray
    """(N, 3) int32 cell x, y, z; z = 0 is the bottom bench."""
    columns: dict[str, np.ndarray]
    """(N,) float64 by name, without the coordinates."""
    block_size: tuple[float, float, float]
    """Encoder lengths in metres."""
    origin: tuple[float, float, float]
    """Centroid of cell (0, 0, 0) in metres."""
    gaps: int = 0
    """Missing cells that have blocks above and below them in their column."""
    stated: np.ndarray | None = None
    """(N, 3) float64 centroids of the file along the model's own axes; None: on the lattice."""
    edge: np.ndarray | None = None
    """(N, 3) float64 edge lengths of a model without a lattice (sub-blocks); None: block_size."""
    bearing: float = 0.0
    """Azimuth of the model's own +y axis in degrees."""

    @property
    def centre(self) -> np.ndarray:
        """(N, 3) float64 centroids along the model's own axes in metres."""
        if self.edge is not None and self.stated is not None:
            return self.stated
        return np.asarray(self.origin) + self.cell * np.asarray(self.block_size)

    def slopes(self, run: np.ndarray, levels: int, pattern: str = "") -> Slopes:
        """The slope rule for these blocks; see `Slopes`."""
        if self.edge is not None:
            return Slopes(self.centre, self.centre, self.edge, run, levels, False, pattern)
        rule = cell_slopes(self.cell, self.block_size, run, levels, pattern)
        if self.stated is None:
            return rule
        return replace(rule, centre=self.centre, stated=self.stated)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Grid cells along x, y, z."""
        return tuple((self.cell.max(axis=0) + 1).tolist())

    def grid(self, name: str, fill: float = 0.0) -> np.ndarray:
        """One column as (nx, ny, nz) float64, air filled with `fill`."""
        cells = np.full(self.shape, fill)
        cells[tuple(self.cell.T)] = self.columns[name]
        return cells

    def solid(self) -> np.ndarray:
        """(nx, ny, nz) bool cells that hold a block."""
        mask = np.zeros(self.shape, bool)
        mask[tuple(self.cell.T)] = True
        return mask


def read_csv(
    path: str | Path, block_size: Sequence[float] | None = None, required: Sequence[str] = REQUIRED
) -> BlockModel:
    """Reads a block model; unknown columns are kept, optional ones may be absent.

    Args:
        path: the file; CRLF, comment lines with `%` or `#` and blank lines are fine.
        block_size: metres along x, y, z; None finds the spacing on which the centroids agree.
        required: columns that must be there.

    Raises:
        DataError: a column is missing, a value is no number, a tonnage is negative, a centroid is
            far off the lattice, or two rows claim the same cell; the message names file and line.
    """
    path = Path(path)
    names, place, values = _parse(path, required)
    for name in NEVER_NEGATIVE:
        if name in names:
            bad = ~(values[:, names.index(name)] >= 0)
            if bad.any():
                at = int(np.argmax(bad))
                found = values[at, names.index(name)]
                raise DataError(
                    f"{path}, line {place[at]}: column '{name}' is {found:g}; it must be 0 or more."
                )
    coordinates = values[:, [names.index(axis) for axis in COORDINATES]]
    model = _placed(path, coordinates, place, _edges(names, values), block_size)
    if model.gaps:
        warnings.warn(
            f"{path}: {model.gaps} cells are missing between blocks of their column; they are read "
            "as air, and slopes are kept across them.",
            stacklevel=2,
        )
    columns = {
        name: np.ascontiguousarray(values[:, i])
        for i, name in enumerate(names)
        if name not in COORDINATES
    }
    return replace(model, columns=columns)


def _edges(names: list[str], values: np.ndarray) -> np.ndarray | None:
    """Edge lengths (N, 3) where the file states them."""
    for words in EDGES:
        if all(word in names for word in words):
            return values[:, [names.index(word) for word in words]]
    return None


def _placed(
    path: Path,
    coordinates: np.ndarray,
    place: list[int],
    edge: np.ndarray | None,
    block_size: Sequence[float] | None,
) -> BlockModel:
    """The blocks on their lattice, or as they lie where edges differ; without columns."""
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
    _repaired(path, place, lattice, off)
    _refuse_duplicates(path, lattice.cell, place)
    stated = np.where((off > ON)[:, None], lattice.stated, lattice.centre)
    moved = stated if (off > ON).any() else None
    gaps = _count_gaps(lattice.cell)
    return BlockModel(
        lattice.cell, {}, lattice.size, lattice.origin, gaps, moved, None, lattice.bearing
    )


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


def _irregular(
    path: Path, coordinates: np.ndarray, place: list[int], edge: np.ndarray
) -> BlockModel:
    """A model of unequal blocks: cells of its smallest edges, one block in each at most."""
    size = edge.min(axis=0)
    low = (coordinates - edge / 2).min(axis=0)
    cell = np.floor((coordinates - low) / size + 1e-6).astype(np.int32)
    _refuse_duplicates(path, cell, place)
    origin = tuple((low + size / 2).tolist())
    return BlockModel(cell, {}, tuple(size.tolist()), origin, 0, coordinates, edge)


def _parse(path: Path, required: Sequence[str]) -> tuple[list[str], list[int], np.ndarray]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; env.data expects a CSV block model.") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not a text file; env.data expects a CSV block model.") from None
    rows = [
        (number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and line.lstrip()[0] not in "%#"
    ]
    if len(rows) < 2:
        raise DataError(f"{path} needs a header line and at least one block.")
    names = [word.strip().strip('"').lower() for word in rows[0][1].split(",")]
    missing = [name for name in required if name not in names]
    if missing:
        raise DataError(
            f"{path}, line {rows[0][0]}: missing column {', '.join(missing)}; found {names}."
        )
    if len(set(names)) < len(names):
        raise DataError(f"{path}, line {rows[0][0]}: a column name appears twice.")
    place = [number for number, _ in rows[1:]]
    return names, place, _numbers(path, [line for _, line in rows[1:]], place, len(names))


def _numbers(path: Path, lines: list[str], place: list[int], width: int) -> np.ndarray:
    for at, line in enumerate(lines):
        if line.count(",") != width - 1:
            raise DataError(
                f"{path}, line {place[at]}: {line.count(',') + 1} values for {width} columns."
            )
    try:
        values = np.array(",".join(lines).split(","), dtype=np.float64).reshape(-1, width)
    except ValueError:
        values = np.empty((0, width))
    if len(values) and np.isfinite(values).all():
        return values
    for at, line in enumerate(lines):
        for word in line.split(","):
            try:
                finite = np.isfinite(float(word))
            except ValueError:
                finite = False
            if not finite:
                raise DataError(f"{path}, line {place[at]}: '{word.strip()}' is not a number.")
    raise DataError(f"{path} cannot be read as numbers.")


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


def write_csv(model: BlockModel, path: str | Path) -> None:
    """Writes a block model with centroid coordinates and every column in full precision."""
    names = list(model.columns)
    table = np.column_stack([model.centre, *model.columns.values()])
    lines = (",".join(repr(value) for value in row) for row in table.tolist())
    write_whole(Path(path), [",".join([*COORDINATES, *names]), *lines])
