"""In what a block model's file counts; inside everything is metres, tonnes and per cent."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

import numpy as np

from mine_rl_npv.data.roles import COORDINATES, EDGES


class Length(Enum):
    """Of coordinates and edges."""

    m = "m"
    ft = "ft"


class Mass(Enum):
    """Of a block."""

    t = "t"
    kg = "kg"
    lb = "lb"
    short_ton = "short_ton"
    """2,000 pounds."""


class Density(Enum):
    """Of rock."""

    t_m3 = "t_m3"
    kg_m3 = "kg_m3"
    lb_ft3 = "lb_ft3"


class Grade(Enum):
    """Of copper, molybdenum and arsenic."""

    percent = "percent"
    share = "share"
    ppm = "ppm"


METRES = MappingProxyType({Length.m: 1.0, Length.ft: 0.3048})
TONNES = MappingProxyType(
    {Mass.t: 1.0, Mass.kg: 1e-3, Mass.lb: 0.45359237e-3, Mass.short_ton: 0.90718474}
)
TONNES_PER_CUBIC_METRE = MappingProxyType(
    {Density.t_m3: 1.0, Density.kg_m3: 1e-3, Density.lb_ft3: 0.016018463373960138}
)
PER_CENT = MappingProxyType({Grade.percent: 1.0, Grade.share: 100.0, Grade.ppm: 1e-4})
GRADES = ("cu", "mo", "as")


@dataclass(frozen=True)
class Units:
    """Units of a file's columns."""

    length: Length = Length.m
    mass: Mass = Mass.t
    density: Density = Density.t_m3
    grade: Grade = Grade.percent

    def converted(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Columns (N,) float64 by role in metres, tonnes, t per cubic metre and per cent."""
        factors = dict.fromkeys((*COORDINATES, *EDGES), METRES[self.length])
        factors |= {"ton": TONNES[self.mass], "density": TONNES_PER_CUBIC_METRE[self.density]}
        factors |= dict.fromkeys(GRADES, PER_CENT[self.grade])
        return {name: v * factors.get(name, 1.0) for name, v in values.items()}
