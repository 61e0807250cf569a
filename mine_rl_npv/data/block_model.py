"""Block models as CSV: one row per block, columns in any order, absent rows are air."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from frugal_rl.errors import DataError
from frugal_rl.untrusted.printing import printable
from mine_rl_npv.data.coordinates import (
    refuse_counts,
    refuse_feet,
    spread_out,
    tell_of_flat_sides,
)
from mine_rl_npv.data.csv_table import CsvTable, read_table
from mine_rl_npv.data.placement import Placement, place_blocks
from mine_rl_npv.data.roles import (
    ABSENT,
    ASSAYS,
    COORDINATES,
    EDGES,
    VALUE,
    Z_DIRECTION,
    roles_of,
    shown,
)
from mine_rl_npv.data.units import Units
from mine_rl_npv.data.vertical import tell_or_refuse, vertical_of
from mine_rl_npv.data.whole_files import write_whole
from mine_rl_npv.slopes.cone import Slopes, cell_slopes

REQUIRED = (*COORDINATES, "ton")
NEVER_NEGATIVE = ("ton", "density", *ASSAYS, "upl")
PER_CENT = ("cu", "mo", "as", "rec", "clays")
"""Shares that cannot exceed 100."""
METALS = ("cu", "mo")
DEARER = ("bwi", "clays")
"""What makes a block's milling dearer."""
WIDEST = 30.0
"""Metres; longer blocks were more likely measured in feet."""
LIGHTEST, HEAVIEST = 0.5, 12.0
"""Tonnes per cubic metre between which rock, and most of what is sold as such, lies."""
LIGHT, HEAVY = 1.2, 6.0
"""The same of nearly all rock in place: beyond it a unit of some axis may be wrong."""
POOREST = 0.05
"""Per cent of copper below which a whole model was hardly meant in per cent."""


@dataclass(frozen=True)
class BlockModel:
    """Blocks of one deposit by row; N rows on a grid of nx * ny * nz cells.

    Raw values: grades, minerals, clays and recovery in per cent, bwi in kWh/t, ton in tonnes.
    """

    cell: np.ndarray
    """(N, 3) int32 cell x, y, z; z = 0 is the bottom bench."""
    columns: dict[str, np.ndarray]
    """(N,) float64 by role or name, without the coordinates."""
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
    table: CsvTable | None = None
    """The file that it was read from."""
    reading: str = ""
    """How the file's columns were understood, in one line."""
    text: dict[str, np.ndarray] = field(default_factory=dict)
    """(N,) words of the columns that hold no numbers."""
    vertical: str = ""
    """Which way the file's heights grow and who says so, in one line."""

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
    path: str | Path,
    block_size: Sequence[float] | None = None,
    required: Sequence[str] = REQUIRED,
    columns: Mapping[str, str] | None = None,
    units: Units | None = None,
) -> BlockModel:
    """Reads a block model; other columns are kept, also those of words.

    Args:
        path: the file; any usual delimiter, encoding and decimal sign.
        block_size: metres along x, y, z; None finds the spacing on which the centroids agree.
        required: roles that must be there.
        columns: role -> the file's name for it; the others are guessed. `z_direction` is up or
            down, and guessed from the name of z; `absent` is what stands for a missing assay.
        units: of the file; None means metres, tonnes and per cent.

    Raises:
        DataError: a column is missing, a value is no number, a tonnage is negative, a density is
            none of rock, a centroid is far off the lattice, two rows claim the same cell, or the
            model seems to be upside down; the message names file and line.
    """
    table = read_table(Path(path))
    path, units = table.path, units or Units()
    roles = roles_of(path, table.names, columns or {}, required)
    values, text = _columns(table, roles, (columns or {}).get(ABSENT, ""))
    refuse_feet(path, {axis: table.names[roles[axis]] for axis in COORDINATES}, units)
    values = units.converted(values)
    _refuse_impossible(table, values)
    stated = (columns or {}).get(Z_DIRECTION, "")
    vertical = vertical_of(path, table.names[roles["z"]], values["z"], stated)
    edge, size = _edges(values, block_size)
    numbers = np.column_stack((values["x"], values["y"], vertical.upward(values["z"])))
    coordinates = spread_out(path, numbers, size)
    values["z"] = coordinates[:, 2]
    where = place_blocks(path, coordinates, table.place, edge, size)
    _tell_of_places(path, where)
    if "ton" not in values and "density" in values and size is None and where.edge is None:
        _refuse_unknown_length(path, where)
    heaviness = _weigh(path, values, _volumes(where))
    if size is None and not heaviness <= HEAVIEST:
        refuse_counts(path, coordinates, heaviness)
    upward = tell_or_refuse(path, vertical, where, values, text)
    return BlockModel(
        where.cell,
        {name: v for name, v in values.items() if name not in COORDINATES},
        where.size,
        where.origin,
        where.gaps,
        where.stated,
        where.edge,
        where.bearing,
        table,
        shown(table.names, roles, list(text)) + _absences(table, roles, text, columns or {}),
        text,
        upward,
    )


def _edges(
    values: Mapping[str, np.ndarray], block_size: Sequence[float] | None
) -> tuple[np.ndarray | None, Sequence[float] | None]:
    """Edge lengths (N, 3) where the file states them, and the one size of all blocks if known."""
    if not all(name in values for name in EDGES):
        return None, block_size
    edge = np.column_stack([values[name] for name in EDGES])
    return edge, block_size if np.ptp(edge, axis=0).any() else edge[0].tolist()


def _refuse_unknown_length(path: Path, where: Placement) -> None:
    """Raises DataError where densities need a length that a single layer does not show."""
    flat = [COORDINATES[a] for a in range(3) if where.cell[:, a].max() == 0]
    if flat:
        raise DataError(
            f"{path}: all blocks share one {' and one '.join(flat)}, so that nothing says how long "
            "they are there, and tonnes are density times volume; state block_size=[x,y,z] in "
            "metres, or give tonnes."
        )


def _tell_of_places(path: Path, where: Placement) -> None:
    """Warns of sizes that other units would explain, and of missing cells."""
    if max(where.size[:2]) > WIDEST:
        words = f"{path}: blocks are {max(where.size[:2]):g} m long; state units.length=ft if feet."
        warnings.warn(words, stacklevel=3)
    if where.gaps:
        warnings.warn(
            f"{path}: {where.gaps} cells are missing between blocks of their column; they are read "
            "as air, and slopes are kept across them.",
            stacklevel=3,
        )
    if where.edge is None:
        tell_of_flat_sides(path, where.size)


def _columns(
    table: CsvTable, roles: Mapping[str, int], absent: str
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Columns of numbers by role or lower-case name, and columns of words.

    A missing assay is waste, of grade and recovery 0, also in columns without a role; a missing
    place, weight or value is refused.
    """
    values: dict[str, np.ndarray] = {}
    text: dict[str, np.ndarray] = {}
    named = {column: role for role, column in roles.items()}
    for column, name in enumerate(table.names):
        role = named.get(column)
        found = table.numbers(column, absent if role is None or role in ASSAYS else "")
        if found is None and role is not None:
            raise _no_numbers(table, column, role, absent)
        if found is None:
            text[name.lower()] = table.text(column)
        else:
            free = name.lower() if name.lower() != VALUE else f"file_{VALUE}"
            values[role if role is not None else free] = np.ascontiguousarray(found)
    if absent:
        _refuse_free_milling(table, roles, values, absent)
    return values, text


def _refuse_free_milling(
    table: CsvTable, roles: Mapping[str, int], values: Mapping[str, np.ndarray], absent: str
) -> None:
    """Raises DataError where ore lacks what makes milling dear: read as 0, it costs nothing."""
    ore = sum((values[name] for name in METALS if name in values), np.zeros(len(table.words))) > 0
    for name in (name for name in DEARER if name in roles):
        unknown = ore & table.missing(roles[name], absent)
        if unknown.any():
            at = table.place[int(np.argmax(unknown))]
            raise DataError(
                f"{table.path}, line {at}: column '{name}' is missing in a block of ore "
                f"({int(unknown.sum())} such rows), and 0 would make its milling cheap; write it."
            )


def _absences(
    table: CsvTable, roles: Mapping[str, int], text: Mapping[str, object], stated: Mapping[str, str]
) -> str:
    """How many assays were missing and read as 0, for the line about the columns."""
    absent = stated.get(ABSENT, "")
    if not absent:
        return ""
    others = [column for role, column in roles.items() if role not in ASSAYS]
    assays = [
        column
        for column, name in enumerate(table.names)
        if column not in others and name.lower() not in text
    ]
    count = sum(int(table.missing(column, absent).sum()) for column in assays)
    return f"; {count} assays ({absent}) are missing and read as 0"


def _no_numbers(table: CsvTable, column: int, role: str, absent: str) -> DataError:
    """The refusal of a role's words, with the setting that may be missing."""
    refused = table.refused(column)
    if role not in ASSAYS or absent:
        return refused
    return DataError(f"{refused} {_absent_remedy(table.no_number(column)[1])}")


def _absent_remedy(word: str) -> str:
    return (
        f"Where that stands for an assay that is missing, state columns.absent="
        f"{printable(word) or 'blank'}, which reads it as 0."
    )


def _refuse_impossible(table: CsvTable, values: Mapping[str, np.ndarray]) -> None:
    for name in NEVER_NEGATIVE:
        if name in values and (values[name] < 0).any():
            at = int(np.argmax(values[name] < 0))
            raise DataError(
                f"{table.path}, line {table.place[at]}: column '{name}' is {values[name][at]:g}; "
                f"it must be 0 or more."
                f"{' ' + _absent_remedy(f'{values[name][at]:g}') if name in ASSAYS else ''}"
            )
    for name in PER_CENT:
        if name in values and (values[name] > 100).any():
            at = int(np.argmax(values[name] > 100))
            raise DataError(
                f"{table.path}, line {table.place[at]}: column '{name}' is {values[name][at]:g}; "
                "it is read as per cent. Divide parts per million by 10,000."
            )
    best = values["rec"].max() if "rec" in values else 0.0
    if 0 < best <= 1:
        raise DataError(
            f"{table.path}: column 'rec' is at most {best:g}; it is read as per cent. Multiply "
            "shares by 100."
        )
    if "ton" in values and not values["ton"].any():
        raise DataError(f"{table.path}: no block has any tonnage.")


def _weigh(path: Path, values: dict[str, np.ndarray], volumes: np.ndarray | float) -> float:
    """Tonnes from densities where the file states none; tells what no rock and no ore weighs.

    Returns:
        Tonnes in a cubic metre of the usual block; nan where the file does not weigh its blocks.
    """
    weighed = "ton" in values
    if not weighed and "density" in values:
        values["ton"] = values["density"] * volumes
    if "ton" not in values:
        return float("nan")
    solid = values["ton"] > 0
    usual = float(np.median((values["ton"] / volumes)[solid])) if solid.any() else LIGHT
    if not LIGHT <= usual <= HEAVY:
        words = (
            f"{path}: a cubic metre of the usual block weighs {usual:.3g} t; state the file's "
            "units, as units.length=ft, units.mass=kg or units.density=kg_m3."
        )
        if not weighed and not LIGHTEST <= usual <= HEAVIEST:
            raise DataError(words)
        warnings.warn(words, stacklevel=3)
    best = values["cu"].max(initial=0.0) if "cu" in values else 0.0
    if 0 < best < POOREST:
        words = f"{path}: copper is at most {best:.3g} per cent; state units.grade=share if it is."
        warnings.warn(words, stacklevel=3)
    return usual if weighed else float("nan")


def _volumes(where: Placement) -> np.ndarray | float:
    """Cubic metres (N,) of the blocks."""
    return float(np.prod(where.size)) if where.edge is None else where.edge.prod(axis=1)


def write_csv(model: BlockModel, path: str | Path) -> None:
    """Writes a block model with centroid coordinates and every column in full precision.

    The height is called `z_up`: of `z` a reader cannot know in which direction it grows.
    """
    names = list(model.columns)
    table = np.column_stack([model.centre, *model.columns.values()])
    lines = (",".join(repr(value) for value in row) for row in table.tolist())
    write_whole(Path(path), [",".join(["x", "y", "z_up", *names]), *lines])
