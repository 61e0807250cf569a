"""Ratings: Elo while training, a fit over all results of a tournament."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

K = 16.0
SCALE = 400.0
"""A player rated 400 points higher is expected to score 10 of 11."""


def level_rating(level: int) -> float:
    """The fixed rating of the cartridge's player: 800 + 100 per level."""
    return 800.0 + 100.0 * level


def expected(own: float, his: float) -> float:
    """The score in [0, 1] that ratings predict (Elo 1978)."""
    return float(1.0 / (1.0 + 10.0 ** ((his - own) / SCALE)))


def updated(own: float, his: float, score: float) -> tuple[float, float]:
    """Both ratings after one fight in which `own` scored 1, 0.5 or 0."""
    change = K * (score - expected(own, his))
    return own + change, his - change


@dataclass(frozen=True)
class Payoff:
    """What everybody scored against everybody.

    score  (P, P) float64   points of the row player against the column player
    fights (P, P) int64     how many fights that took
    """

    names: tuple[str, ...]
    score: np.ndarray
    fights: np.ndarray

    @classmethod
    def empty(cls, names: tuple[str, ...]) -> Payoff:
        """Nobody has fought yet."""
        square = (len(names), len(names))
        return cls(names, np.zeros(square), np.zeros(square, np.int64))

    def shares(self) -> np.ndarray:
        """(P, P) shares of points in [0, 1]; NaN where nobody fought."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.fights > 0, self.score / self.fights, np.nan)

    def ratings(self, anchors: Mapping[str, float], prior: float = 1.0) -> dict[str, float]:
        """The ratings that explain the points best, anchored players kept fixed.

        Logistic maximum likelihood by Newton steps; `prior` drawn fights against a player rated
        1000 keep ratings finite where somebody always wins.
        """
        values = np.array([anchors.get(name, 1000.0) for name in self.names])
        free = np.array([name not in anchors for name in self.names])
        slope = np.log(10) / SCALE
        for _ in range(200):
            wanted = 1 / (1 + 10 ** ((values[None] - values[:, None]) / SCALE))
            weight = wanted * (1 - wanted)
            own = 1 / (1 + 10 ** ((1000.0 - values) / SCALE))
            gradient = (self.score - self.fights * wanted).sum(axis=1) + prior * (0.5 - own)
            curvature = (self.fights * weight).sum(axis=1) + prior * own * (1 - own)
            step = np.clip(gradient / (slope * curvature), -100, 100)
            values[free] += 0.5 * step[free]
            if np.abs(step[free]).max(initial=0) < 1e-6:
                break
        return dict(zip(self.names, values.tolist(), strict=True))

    def table(self, ratings: Mapping[str, float]) -> str:
        """Names, ratings and shares of points as text, best first."""
        order = sorted(range(len(self.names)), key=lambda i: -ratings[self.names[i]])
        width = max(len(n) for n in self.names)
        shares = self.shares()
        head = " " * (width + 7) + "".join(f"{self.names[i][:9]:>10}" for i in order)
        rows = [head]
        for i in order:
            cells = "".join("         -" if i == j else f"{shares[i, j]:>10.2f}" for j in order)
            rows.append(f"{self.names[i]:<{width}} {ratings[self.names[i]]:>5.0f} {cells}")
        return "\n".join(rows) + "\n"


def exploits(payoff: Payoff, name: str, weakest: Sequence[str], limit: float = 0.5) -> list[str]:
    """The players of `weakest` against whom `name` scores below `limit`: what it has forgotten."""
    own = payoff.names.index(name)
    shares = payoff.shares()
    return [n for n in weakest if not shares[own, payoff.names.index(n)] >= limit]
