"""Which way a file's heights grow: by the user's word, the column's name, the file, or not at all.

A model that is read upside down has a schedule, a bound and an audit that look right, and walls
that fall. So the direction is always told, and refused where the file itself speaks against it or
where heights and depths would have the same numbers.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import DataError
from frugal_rl.untrusted.printing import printable

if TYPE_CHECKING:
    from mine_rl_npv.data.placement import Placement

UP_WORDS = "elev elevation altitude cota rl reducedlevel masl msl".split()
DOWN_WORDS = "depth tvd profundidad profondeur tiefe teufe".split()
ASSUMED = "ASSUMED"
"""In the line about a direction that nobody stated."""
AIR_WORDS = ("air", "aire", "luft", "sky")
SHALLOW = ("overburden", "soil", "alluvi", "colluvi", "saprolit", "laterit", "oxid", "weather")
DEEP = ("fresh", "sulph", "sulf", "primary", "hypogene", "bedrock", "basement")
DEEPEST_TOP = -500.0
"""Metres; no open pit of the world begins so far below zero."""
HIGHEST = 50_000.0
"""Metres; a height above it is another coordinate (a northing), also where a datum was added."""
LIKE_DEPTHS = 2.0
"""Block heights above 0 within which the lowest numbers of depths lie."""
ORIGIN = "zmorig"
"""Column of the lowest corner of a model, as one mine planning package writes it in every row."""
FEW = 0.05
"""Share of the columns that may have air below their rock without a question."""
FAR_MORE = 4.0
"""Times as many columns that have it above as below speak for the direction that is assumed."""


class Direction(Enum):
    """In which direction the numbers of the vertical column grow."""

    up = "up"
    down = "down"

    @property
    def other(self) -> Direction:
        """The opposite one."""
        return Direction.down if self is Direction.up else Direction.up


@dataclass(frozen=True)
class Vertical:
    """How the vertical column of a file is read."""

    column: str
    """As the file spells it."""
    direction: Direction
    why: str
    """Who says so; empty where nobody does and it is assumed."""
    stated: bool
    """Whether the user said so, which no evidence contradicts."""

    def upward(self, heights: np.ndarray) -> np.ndarray:
        """Numbers of the column (N,) as elevations."""
        return heights if self.direction is Direction.up else -heights

    def line(self, heights: np.ndarray) -> str:
        """One line: the direction, who says so, both ends in the file's numbers, and the remedy.

        Args:
            heights: (N,) centroids as elevations in metres.
        """
        top, bottom = self.upward(np.array([heights.max(), heights.min()])).tolist()
        why = self.why or f"{ASSUMED}, since neither its name nor the setting says so"
        return (
            f"'{printable(self.column)}' grows {self.direction.value}ward ({why}): the top bench "
            f"is at {top:g}, the bottom bench at {bottom:g} m; columns.z_direction="
            f"{self.direction.other.value} turns the model over"
        )


def says(name: str) -> Direction | None:
    """The direction that a column's name states, None where it may be either."""
    words = re.findall(r"[a-z]+", name.lower())
    plain = "".join(words)
    if words[-1:] == ["down"] or any(word in plain for word in DOWN_WORDS):
        return Direction.down
    if words[-1:] == ["up"] or "elev" in plain or any(word in words for word in UP_WORDS):
        return Direction.up
    return None


def vertical_of(path: Path, column: str, heights: np.ndarray, stated: str) -> Vertical:
    """How the numbers (N,) of a file's vertical column are read.

    Depths that are all negative grow upward, as elevations below a surface at 0 do.

    Raises:
        DataError: a setting that is no direction; depths of both signs.
    """
    if stated:
        if stated not in Direction.__members__:
            raise DataError(f"columns.z_direction={printable(stated)}: choose up or down.")
        return Vertical(column, Direction(stated), "columns.z_direction says so", True)
    named = says(column)
    if named is None:
        return Vertical(column, Direction.up, "", False)
    own_word = re.findall(r"[a-z]+", column.lower())[-1] in Direction.__members__
    if named is Direction.down and not own_word:
        if heights.min() < 0 < heights.max():
            raise DataError(
                f"{path}: depths of column '{printable(column)}' are positive and negative; state "
                "columns.z_direction=down where they grow downward, =up where -20 is below -10."
            )
        if heights.min() < 0:
            return Vertical(column, Direction.up, "depths below 0", False)
    return Vertical(column, named, "its name says so", own_word)


def tell_or_refuse(
    path: Path,
    vertical: Vertical,
    where: Placement,
    values: Mapping[str, np.ndarray],
    text: Mapping[str, np.ndarray],
) -> str:
    """The line about the direction; said as a warning as well where it is assumed.

    Args:
        path: for messages.
        vertical: how the heights were read.
        where: the blocks, z upward.
        values: columns (N,) of numbers by role or name, `z` as elevations.
        text: columns (N,) of words by name.

    Raises:
        DataError: the file contradicts the direction, or leaves open which it is, and the user did
            not state it; the numbers are no heights.
    """
    _refuse_no_heights(path, vertical, values["z"])
    against = "" if vertical.stated else _contradiction(vertical, where, values, text)
    if against:
        now = vertical.direction
        raise DataError(
            f"{path}: '{printable(vertical.column)}' is read as growing {now.value}ward, but "
            f"{against}; state columns.z_direction={now.other.value} to turn the model over, "
            f"={now.value} to keep it (or name the column z_{now.other.value} or z_{now.value})."
        )
    if not vertical.why:
        vertical = replace(vertical, why=_found(where, values, text))
    if not vertical.why:
        _refuse_like_depths(path, vertical, where, values["z"])
    line = vertical.line(values["z"])
    if not vertical.why:
        warnings.warn(f"{path}: {line}", stacklevel=3)
    return line


def _refuse_no_heights(path: Path, vertical: Vertical, heights: np.ndarray) -> None:
    """Raises DataError where numbers (N,) are far from every mine's, as a northing's are."""
    far = float(np.abs(heights).max())
    if far > HIGHEST:
        raise DataError(
            f"{path}: column '{printable(vertical.column)}' holds {far:.10g} m, which is no height "
            "of any mine; name the right column with columns.z=."
        )


def _refuse_like_depths(
    path: Path, vertical: Vertical, where: Placement, heights: np.ndarray
) -> None:
    """Raises DataError where numbers (N,) of no name begin at 0, as heights and depths both do."""
    tall = where.size[2] if where.edge is None else float(where.edge[:, 2].max())
    bottom, top = float(heights.min()), float(heights.max())
    if not 0 <= bottom <= LIKE_DEPTHS * tall:
        return
    raise DataError(
        f"{path}: nothing says whether '{printable(vertical.column)}' grows upward (heights, the "
        f"top bench at {top:g} m) or downward (depths, the top bench at {bottom:g} m), and the "
        "wrong one undercuts every wall; state columns.z_direction=up or =down (or name the column "
        "z_up or z_down)."
    )


def _found(
    where: Placement, values: Mapping[str, np.ndarray], text: Mapping[str, np.ndarray]
) -> str:
    """Why numbers of no name can only grow upward; empty where they may be depths.

    What could not be if they were depths: a top bench so deep, air under rock, and the like.
    Ragged ends prove nothing (ground, or the floor of a pit), nor do blocks without tonnage (air,
    or depths that nobody estimated).
    """
    heights = values["z"]
    if np.ptp(np.round(heights, 3)) == 0:
        return "a single level, the same either way"
    if heights.min() > -DEEPEST_TOP:
        return f"no pit begins at a depth of {heights.min():g} m"
    if ORIGIN in values:
        return f"beside {ORIGIN.upper()}, the origin of a Datamine model, in which heights do"
    turned = where._replace(
        cell=where.cell * [1, 1, -1],
        stated=None if where.stated is None else where.stated * [1, 1, -1],
    )
    against = (
        _other_column(-heights, values)
        or _air_below(turned, np.zeros(len(heights), bool), text)
        or _shallow_rock_below(-heights, text)
    )
    return f"were it depths, {against}" if against else ""


def _contradiction(
    vertical: Vertical,
    where: Placement,
    values: Mapping[str, np.ndarray],
    text: Mapping[str, np.ndarray],
) -> str:
    """What in the file speaks against the direction, in words; empty without any."""
    heights = values["z"]
    if heights.max() < DEEPEST_TOP:
        return f"its top bench would then lie {-heights.max():g} m below zero"
    return (
        _other_column(heights, values)
        or _air_below(where, _weightless(values), text)
        or _shallow_rock_below(heights, text)
        or ("" if vertical.why else _ends_above_the_bottom(where))
    )


def _other_column(heights: np.ndarray, values: Mapping[str, np.ndarray]) -> str:
    """Another column that says up or down by its name, and runs the other way."""
    for name, numbers in values.items():
        named = says(name)
        if named is None or name == "z" or not np.ptp(numbers) > 0 or not np.ptp(heights) > 0:
            continue
        sinks = named is Direction.down and numbers.max() > 0
        together = float(np.corrcoef(heights, -numbers if sinks else numbers)[0, 1])
        if together < -0.9:
            return f"column '{printable(name)}' runs the other way"
    return ""


def _weightless(values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Blocks (N,) bool without tonnage."""
    return values["ton"] <= 0 if "ton" in values else np.zeros(len(values["z"]), bool)


def _air_below(where: Placement, air: np.ndarray, text: Mapping[str, np.ndarray]) -> str:
    """Blocks of air (N,), and those so called, below rock, and hardly any above it."""
    for words in text.values():
        air = air | np.isin(np.char.lower(words.astype(str)), AIR_WORDS)
    if not air.any() or air.all():
        return ""
    column, low, high = _columns(where)
    top, bottom = _ends(column, low, high, np.ones(len(air), bool))
    rock_top, rock_bottom = _ends(column, low, high, ~air)
    known = np.isfinite(rock_top)
    above, below = (top > rock_top)[known], (bottom < rock_bottom)[known]
    if below.mean() < FEW or below.sum() <= FAR_MORE * above.sum():
        return ""
    return (
        f"{int(below.sum())} of {len(below)} columns have blocks of air (without tonnage, or so "
        f"called) below their rock, and {int(above.sum())} above it"
    )


def _ends_above_the_bottom(where: Placement) -> str:
    """All columns begin on one level and many end above the bottom: a hillside upside down."""
    column, low, high = _columns(where)
    top, bottom = _ends(column, low, high, np.ones(len(low), bool))
    slack = 0.5 * float((high - low).min())
    above = top < high.max() - slack
    below = bottom > low.min() + slack
    if below.sum() < 3 or below.mean() < 2 * FEW or below.sum() <= FAR_MORE * above.sum():
        return ""
    return (
        f"{int(below.sum())} of {len(below)} columns end above its bottom and {int(above.sum())} "
        "below its top, as a hillside upside down does (or a model that was cut to a pit)"
    )


def _shallow_rock_below(heights: np.ndarray, text: Mapping[str, np.ndarray]) -> str:
    """Soil, oxides and weathered rock below fresh rock and sulphides."""
    for name, words in text.items():
        kinds, inverse = np.unique(np.char.lower(words.astype(str)), return_inverse=True)
        negated = np.char.startswith(kinds, "un") | np.char.startswith(kinds, "non")
        shallow, deep = (
            (_holds(kinds, parts) & ~_holds(kinds, others) & ~negated)[inverse]
            for parts, others in ((SHALLOW, DEEP), (DEEP, SHALLOW))
        )
        if not shallow.any() or not deep.any():
            continue
        if heights[deep].mean() - heights[shallow].mean() > 0.1 * np.ptp(heights):
            one, other = words[np.argmax(shallow)], words[np.argmax(deep)]
            return (
                f"column '{printable(name)}' has '{printable(str(one))}' below "
                f"'{printable(str(other))}'"
            )
    return ""


def _holds(kinds: np.ndarray, parts: tuple[str, ...]) -> np.ndarray:
    return np.array([any(part in kind for part in parts) for kind in kinds.tolist()], bool)


def _columns(where: Placement) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number of its column (N,), bottom and top (N,) of each block."""
    if where.edge is None or where.stated is None:
        across, low = where.cell[:, :2], where.cell[:, 2].astype(np.float64)
        high = low + 1.0
    else:
        across = np.floor((where.stated - where.stated.min(axis=0)) / where.edge.max(axis=0))[:, :2]
        low, high = (where.stated[:, 2] + s * where.edge[:, 2] / 2 for s in (-1, 1))
    _, column = np.unique(across, axis=0, return_inverse=True)
    return column.ravel(), low, high


def _ends(
    column: np.ndarray, low: np.ndarray, high: np.ndarray, taken: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Top and bottom (C,) of the taken blocks of each column; infinite where there is none."""
    top = np.full(column.max() + 1, -np.inf)
    bottom = np.full(column.max() + 1, np.inf)
    np.maximum.at(top, column[taken], high[taken])
    np.minimum.at(bottom, column[taken], low[taken])
    return top, bottom
