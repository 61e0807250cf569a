"""Covariance matrix adaptation: the evolution strategy that learns priority weights.

Hansen, "The CMA Evolution Strategy: A Tutorial" (2016), with weighted recombination, cumulative
step-size adaptation and rank-one plus rank-mu updates; samples come in mirrored pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class EvolutionConfig:
    """Size and first step of the search."""

    population: int = 24
    sigma: float = 0.1


class CovarianceAdaptation:
    """Maximises a function of d weights by ask and tell."""

    def __init__(self, start: np.ndarray, config: EvolutionConfig, seed: int) -> None:
        d = len(start)
        self.rng = np.random.default_rng(seed)
        self.mean = start.astype(float).copy()
        self.sigma = config.sigma
        self.population = config.population
        half = config.population // 2
        ranks = np.log(half + 0.5) - np.log(np.arange(1, half + 1))
        self.weights = ranks / ranks.sum()
        effective = 1.0 / (self.weights**2).sum()
        self.effective = effective
        self.path_rate = (4 + effective / d) / (d + 4 + 2 * effective / d)
        self.step_rate = (effective + 2) / (d + effective + 5)
        self.one_rate = 2 / ((d + 1.3) ** 2 + effective)
        self.mu_rate = min(
            1 - self.one_rate,
            2 * (effective - 2 + 1 / effective) / ((d + 2) ** 2 + effective),
        )
        self.damping = 1 + 2 * max(0.0, np.sqrt((effective - 1) / (d + 1)) - 1) + self.step_rate
        self.expected_norm = np.sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d))
        self.covariance = np.eye(d)
        self.root = np.eye(d)
        self.inverse_root = np.eye(d)
        self.path = np.zeros(d)
        self.step_path = np.zeros(d)
        self.generation = 0
        self._rooted_at = 0

    def ask(self) -> np.ndarray:
        """Candidates (population, d); rows 2k and 2k + 1 mirror each other around the mean."""
        half = self.rng.standard_normal((self.population // 2, len(self.mean))) @ self.root.T
        steps = np.stack((half, -half), axis=1).reshape(-1, len(self.mean))
        return self.mean + self.sigma * steps

    def tell(self, candidates: np.ndarray, values: np.ndarray) -> None:
        """Moves the distribution towards the candidates with the highest values (population,)."""
        d = len(self.mean)
        best = candidates[np.argsort(-values, kind="stable")[: len(self.weights)]]
        steps = (best - self.mean) / self.sigma
        move = self.weights @ steps
        self.mean = self.mean + self.sigma * move
        self.step_path = (1 - self.step_rate) * self.step_path + np.sqrt(
            self.step_rate * (2 - self.step_rate) * self.effective
        ) * (self.inverse_root @ move)
        self.generation += 1
        norm = np.linalg.norm(self.step_path)
        warmed = np.sqrt(1 - (1 - self.step_rate) ** (2 * self.generation))
        steady = norm / warmed / self.expected_norm < 1.4 + 2 / (d + 1)
        self.path = (1 - self.path_rate) * self.path
        if steady:
            self.path += np.sqrt(self.path_rate * (2 - self.path_rate) * self.effective) * move
        lost = 0.0 if steady else self.one_rate * self.path_rate * (2 - self.path_rate)
        self.covariance *= 1 - self.one_rate - self.mu_rate + lost
        self.covariance += self.one_rate * np.outer(self.path, self.path)
        self.covariance += self.mu_rate * (steps.T * self.weights) @ steps
        self.sigma *= np.exp(
            min(1.0, (self.step_rate / self.damping) * (norm / self.expected_norm - 1))
        )
        if self.generation - self._rooted_at > 1 / (self.one_rate + self.mu_rate) / d / 10:
            self._refresh_roots()

    def _refresh_roots(self) -> None:
        self._rooted_at = self.generation
        self.covariance = (self.covariance + self.covariance.T) / 2
        squares, axes = np.linalg.eigh(self.covariance)
        lengths = np.sqrt(np.maximum(squares, 1e-20))
        self.root = axes * lengths
        self.inverse_root = (axes / lengths) @ axes.T

    def state(self) -> dict[str, np.ndarray | float | int | dict]:
        """All that `load` needs to go on exactly where it was."""
        names = (
            "mean",
            "sigma",
            "covariance",
            "root",
            "inverse_root",
            "path",
            "step_path",
            "generation",
            "_rooted_at",
        )
        kept = {name: np.copy(getattr(self, name)) for name in names}
        return kept | {"rng": self.rng.bit_generator.state}

    def load(self, state: dict) -> None:
        """Takes over what `state` returned."""
        for name, value in state.items():
            if name == "rng":
                self.rng.bit_generator.state = value
            else:
                setattr(self, name, value.item() if value.ndim == 0 else np.copy(value))
