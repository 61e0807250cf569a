"""The priority network without torch: a hidden layer beside a linear path, one weight vector."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PriorityNet:
    """Scores blocks from features: score = f . w + tanh(f A + c) . v.

    The weights are one flat vector [w, A, c, v], so that an evolution strategy can search it.
    """

    features: int
    hidden: int = 8

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.features + self.hidden * (self.features + 2)

    def start(self, names: tuple[str, ...]) -> np.ndarray:
        """Weights that rank by LP expected period when it is known, else by capacity pit."""
        weights = np.zeros(self.size)
        guide = "expected_period" if "expected_period" in names else "filled"
        weights[names.index(guide)] = -1.0
        rng = np.random.default_rng(0)
        inner = slice(self.features, self.features * (1 + self.hidden))
        weights[inner] = rng.normal(0, self.features**-0.5, self.features * self.hidden)
        return weights

    def scores(self, weights: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Return priority (m,) float64 from weights (size,) and features (m, F) float32."""
        f, h = self.features, self.hidden
        weights = weights.astype(np.float32)
        linear = weights[:f]
        inner = weights[f : f + f * h].reshape(f, h)
        bias = weights[f + f * h : f + f * h + h]
        outer = weights[f + f * h + h :]
        return (features @ linear + np.tanh(features @ inner + bias) @ outer).astype(np.float64)
