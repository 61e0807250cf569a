"""Coordinates that are no metres: block numbers, feet by name, and a height in the wrong column."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from frugal_rl.errors import DataError
from frugal_rl.untrusted.printing import printable
from mine_rl_npv.data.roles import COORDINATES
from mine_rl_npv.data.units import Length, Units

FEET = {"ft", "feet", "foot"}
NARROWEST = 1.5
"""Metres; a block is longer, so that steps of 1 beside such a size count blocks."""


def refuse_feet(path: Path, names: Mapping[str, str], units: Units) -> None:
    """Raises DataError where names of coordinates say feet and the setting says metres.

    Args:
        path: for messages.
        names: role -> the file's column.
        units: as the user stated them.
    """
    feet = [name for name in names.values() if set(re.findall("[a-z]+", name.lower())) & FEET]
    every = len(feet) == len(names)
    if not feet or (every and units.length is Length.ft):
        return
    said = f"{path}: {printable(', '.join(feet))} says feet"
    if every:
        raise DataError(f"{said}; state units.length=ft.")
    raise DataError(
        f"{said}, and the other coordinates do not; write all three in one unit (and state "
        "units.length=ft where it is feet)."
    )


def spread_out(
    path: Path, coordinates: np.ndarray, block_size: Sequence[float] | None
) -> np.ndarray:
    """Coordinates (N, 3) in metres where some axes count blocks and the block size is stated."""
    if block_size is None:
        return coordinates
    counted = [a for a in range(3) if block_size[a] > NARROWEST and counts(coordinates[:, a])]
    if not counted:
        return coordinates
    factor = np.ones(3)
    factor[counted] = np.asarray(block_size, np.float64)[counted]
    axes = ", ".join(COORDINATES[a] for a in counted)
    warnings.warn(
        f"{path}: {axes} counted in blocks, in steps of 1; block_size makes metres of them.",
        stacklevel=3,
    )
    return coordinates * factor


def counts(numbers: np.ndarray) -> bool:
    """Whether numbers (N,) look like those of blocks: whole, and usually one apart."""
    known = np.unique(numbers)
    if len(known) < 2 or not np.array_equal(known, np.round(known)):
        return False
    return float(np.median(np.diff(known))) == 1.0


def refuse_counts(path: Path, coordinates: np.ndarray, heaviness: float) -> None:
    """Raises DataError where axes (N, 3) count blocks and no block size says how long these are.

    Args:
        path: for messages.
        coordinates: as the file has them.
        heaviness: tonnes that a cubic metre would weigh, nan where the file has none.
    """
    counted = [COORDINATES[a] for a in range(3) if counts(coordinates[:, a])]
    if counted:
        weight = "" if np.isnan(heaviness) else f": a cubic metre would weigh {heaviness:.3g} t"
        raise DataError(
            f"{path}: {', '.join(counted)} seem to count blocks, not metres{weight}; state "
            "block_size=[x,y,z] in metres."
        )


def tell_of_flat_sides(path: Path, size: Sequence[float]) -> None:
    """Warns where blocks are square seen from a side and not from above: y may be the height."""
    x, y, z = size
    alike = [abs(a - b) < 1e-6 * max(a, b) for a, b in ((x, y), (x, z), (y, z))]
    if not alike[0] and (alike[1] or alike[2]):
        flat = "y" if alike[1] else "x"
        warnings.warn(
            f"{path}: blocks of {x:g} x {y:g} x {z:g} m are square seen along {flat} and not from "
            f"above; if {flat} is the height, name it with columns.z=.",
            stacklevel=3,
        )
