"""How steep walls may be, by azimuth, and where the blocks are that this is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from frugal_rl.errors import ConfigError

BY_TURNS = "1-5-9"
PATTERNS = ("5", "9", BY_TURNS)
"""Predecessors by counting cells: the cross above, the 3 x 3 above, or both by turns of bench."""


@dataclass(frozen=True)
class Slopes:
    """A slope rule and the places of n blocks, in metres along the model's own axes, z upward."""

    centre: np.ndarray
    """(n, 3) float64 centroids; on the lattice where the model has one."""
    stated: np.ndarray
    """(n, 3) float64 centroids as the file states them; both places must keep their slopes."""
    edge: np.ndarray
    """(n, 3) float64 edge lengths."""
    run: np.ndarray
    """(360,) float64 horizontal metres per vertical metre, by degree of azimuth (0 = +y)."""
    levels: int
    """Benches above a block on which the rule is stated; 0 means every one."""
    regular: bool
    """Whether every block fills one cell of a lattice."""
    pattern: str = ""
    """One of `PATTERNS` instead of an angle; empty means the angle."""

    @property
    def reach(self) -> float:
        """Height in metres above a block up to which the rule is stated."""
        if self.levels == 0:
            return float("inf")
        return self.levels * float(self.edge[:, 2].max())

    @property
    def words(self) -> str:
        """The rule in words."""
        if self.pattern:
            return f"pattern {self.pattern}"
        steep = np.degrees(np.arctan(1.0 / self.run))
        low, high = float(steep.min()), float(steep.max())
        angle = f"{low:g}" if high - low < 1e-9 else f"{low:g} to {high:g}"
        height = f" over {self.levels} benches" if self.levels else ""
        return f"{angle} degrees{height}"

    def restricted(self, keep: np.ndarray) -> Slopes:
        """The same rule for the blocks where `keep` (n,) bool."""
        return replace(
            self, centre=self.centre[keep], stated=self.stated[keep], edge=self.edge[keep]
        )


def cell_slopes(
    cell: np.ndarray, size: Sequence[float], run: np.ndarray, levels: int, pattern: str = ""
) -> Slopes:
    """The rule for blocks that fill the cells (n, 3) int of a lattice of `size` metres."""
    centre = np.asarray(cell) * np.asarray(size, np.float64)
    edge = np.tile(np.asarray(size, np.float64), (len(centre), 1))
    return Slopes(centre, centre, edge, run, levels, True, pattern)


def runs_by_azimuth(
    degrees: float, sectors: Sequence[str] = (), bearing: float = 0.0
) -> np.ndarray:
    """Horizontal metres per vertical metre (360,) of the wall seen at each azimuth.

    Args:
        degrees: the slope wherever no sector says otherwise.
        sectors: `FROM-TO:DEGREES` by azimuth, 0 = north (+y), clockwise; 300-60:38 crosses north.
        bearing: azimuth of the model's own +y axis, for rotated models; a degree of the model
            that touches two sectors takes the flatter one.

    Raises:
        ConfigError: a sector is not of that form, or its slope is not between 0 and 90.
    """
    angle = np.full(360, np.nan)
    for sector in sectors:
        found = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*:\s*(\d+(?:\.\d+)?)\s*", sector)
        if found is None:
            raise ConfigError(f"plan.slope_sectors: '{sector}' is not of the form FROM-TO:DEGREES.")
        start, end, slope = int(found[1]), int(found[2]), float(found[3])
        if not (start < 360 and end <= 360 and start != end and 0 < slope < 90):
            raise ConfigError(
                f"plan.slope_sectors: '{sector}' needs azimuths from 0 to 360 and a slope between "
                "0 and 90 degrees."
            )
        span = (start + np.arange((end - start) % 360 or 360)) % 360
        if np.any(np.isfinite(angle[span]) & (angle[span] != slope)):
            raise ConfigError(
                f"plan.slope_sectors: '{sector}' says otherwise of azimuths that another "
                "sector names."
            )
        angle[span] = slope
    angle[np.isnan(angle)] = float(degrees)
    first, last = np.arange(360) + bearing, np.arange(1, 361) + bearing
    touched = [np.floor(edge).astype(np.int64) % 360 for edge in (first + 1e-6, last - 1e-6)]
    flattest = np.minimum(angle[touched[0]], angle[touched[1]])
    return 1.0 / np.tan(np.radians(flattest))
