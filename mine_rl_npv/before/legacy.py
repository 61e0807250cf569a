"""The predecessor's daily environment, defects included, for comparisons only (`env.legacy=true`).

Rules as specification A3 to A6 and A10 state them: normalised grades are used as money, the pit
limit is every block of positive own value, a tonnage rule ends most episodes after eleven days,
and an invalid action costs 100, changes nothing and lets no time pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from frugal_rl.observation.spec import ObservationSpec, Stored
from frugal_rl.observation.tables import Tables
from frugal_rl.vec_env.plain import SpecEnv
from mine_rl_npv.data.economics import POUNDS_PER_TONNE, Economics
from mine_rl_npv.spec import FULL_CHANNELS

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Instance

INVALID_REWARD = -100.0
NORMALISED = ("cu", "mo", "as", "clays", "bwi", "rec")
HUGE = 1e12


@dataclass(frozen=True)
class LegacyRules:
    """Numbers of one of the predecessor's configurations."""

    min_tonnes: float = 50_000.0
    max_tonnes: float = 100_000.0
    max_days: int = 1000


def legacy_spec(grid: tuple[int, int, int]) -> ObservationSpec:
    """One dense box of 17 channels and the mask."""
    return ObservationSpec(
        (
            Stored("volume", (17, *grid), np.float32, -HUGE, HUGE, "specification A3"),
            Stored("action_mask", (grid[0] * grid[1],), np.bool_, doc="columns that can be dug"),
        ),
        action_mask="action_mask",
    )


class LegacyDailyEnv(SpecEnv):
    """One block per day from the column that the action names."""

    def __init__(
        self, instance: Instance, economics: Economics, rules: LegacyRules, steps: int
    ) -> None:
        self.economics, self.rules, self.steps_limit = economics, rules, steps
        shape = tuple(int(n) for n in instance.position.max(axis=0) + 1)
        place = tuple(instance.position.T)
        grids = {name: np.zeros(shape) for name in FULL_CHANNELS}
        for name in FULL_CHANNELS:
            if name in instance.fields:
                grids[name][place] = instance.fields[name]
        if "upl" not in instance.fields:
            grids["upl"][place] = instance.destination_value[:, 1] > 0
        for name in NORMALISED:
            grids[name] = z_scores(grids[name])
        self.grids, self.shape = grids, shape
        self.inside = grids["upl"] > 0
        self.action_space = spaces.Discrete(shape[0] * shape[1])
        super().__init__(legacy_spec(shape), Tables(), steps)

    def begin(self) -> None:
        """Nothing is random: one model, the whole pit."""
        self.mined = np.zeros(self.shape, bool)
        self.days = np.zeros(self.shape)
        self.day, self.steps, self.tonnes, self.total = 0, 0, 0.0, 0.0

    def advance(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        """Dig one block, or pay for an invalid action."""
        self.steps += 1
        x, y = divmod(int(action), self.shape[1])
        reward = INVALID_REWARD
        if self.mask()[int(action)]:
            z = self._top(x, y)
            reward = self._money(x, y, z) / 1.12 ** (self.day / 365)
            self.mined[x, y, z] = True
            self.days[x, y, z] = self.day
            self.tonnes += self.grids["ton"][x, y, z]
            self.day += 1
        self.total += reward
        late = self.steps >= self.steps_limit
        starved = self.day > 10 and self.tonnes < 0.8 * self.rules.min_tonnes * self.day
        over = bool(starved or self.day >= self.rules.max_days or not self.mask().any())
        info: dict[str, Any] = {}
        if over or late:
            info = {"success": False, "stats": {"npv": self.total, "days": float(self.day)}}
        return float(reward), over, bool(late and not over), info

    def mask(self) -> np.ndarray:
        """(columns,) bool: the topmost pit block is free of the five-column cross above it."""
        ton = self.grids["ton"]
        solid = ton[ton > 0]
        mean = solid.mean() if len(solid) else 0.0
        if self.tonnes + mean > self.rules.max_tonnes * (self.day + 1):
            return np.zeros(self.shape[0] * self.shape[1], bool)
        left = self.inside & ~self.mined
        levels = np.arange(self.shape[2])
        top = np.where(left.any(axis=2), (left * (levels + 1)).max(axis=2) - 1, -1)
        padded = np.pad(top, 1, constant_values=-1)
        sides = [padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]]
        return ((top >= 0) & (np.maximum.reduce(sides) <= top)).ravel()

    def _top(self, x: int, y: int) -> int:
        return int(np.flatnonzero(self.inside[x, y] & ~self.mined[x, y])[-1])

    def _money(self, x: int, y: int, z: int) -> float:
        g = {name: grid[x, y, z] for name, grid in self.grids.items()}
        prices = self.economics
        metal = g["cu"] * prices.copper_price + g["mo"] * prices.molybdenum_price
        revenue = g["ton"] / 100 * metal * g["rec"] * POUNDS_PER_TONNE
        cost = prices.mining_cost + prices.processing_cost + prices.fixed_cost
        cost += prices.hardness_cost * max(0.0, g["bwi"] - 15)
        cost += prices.clay_cost * max(0.0, g["clays"] - 3)
        return float(revenue - g["ton"] * cost)

    def raw(self) -> dict[str, np.ndarray]:
        """The 17 channels in the predecessor's order, and the mask."""
        order = [*FULL_CHANNELS[:13], "mined", "day", "destination", "upl"]
        planes = self.grids | {"mined": self.mined, "day": self.days}
        volume = np.stack([planes[name] for name in order]).astype(np.float32)
        return {"volume": volume, "action_mask": self.mask()}


def z_scores(grid: np.ndarray) -> np.ndarray:
    """Standardised over positive values and clipped to +-3; the rest stays 0."""
    some = grid[grid > 0]
    if len(some) == 0:
        return grid
    scaled = np.clip((grid - some.mean()) / max(some.std(), 1e-12), -3, 3)
    return np.where(grid > 0, scaled, 0.0)
