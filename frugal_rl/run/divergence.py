"""Learning that runs away, warned about in words before its numbers stop being numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PATIENCE = 5
"""Updates in a row beyond a bound before a word is said."""


@dataclass(frozen=True)
class Bound:
    """A metric that stays below `most` in any run that learns, and what helps where it does not."""

    most: float
    advice: str


BOUNDS = {
    "train/approx_kl": Bound(
        0.5, "the policy jumps instead of learning: lower algo.learning_rate, or set algo.target_kl"
    ),
    "train/clip_fraction": Bound(
        0.8, "almost every sample is clipped: lower algo.learning_rate or algo.n_epochs"
    ),
    "train/value_loss": Bound(
        1e8, "returns are far from values: scale rewards, or set algo.reward_normalisation=true"
    ),
    "train/critic_loss": Bound(
        1e8, "estimated returns run away: lower algo.learning_rate, or scale rewards"
    ),
    "train/loss": Bound(1e8, "the loss runs away: lower algo.learning_rate"),
    "train/value_ratio": Bound(
        10.0, "values are larger than all rewards could ever add up to: lower algo.learning_rate"
    ),
}


@dataclass
class Divergence:
    """Counts updates beyond a bound; each bound warns once."""

    beyond: dict[str, int] = field(default_factory=dict)

    def note(self, metrics: Mapping[str, float]) -> list[str]:
        """What there is to say after one update."""
        words = []
        for name, bound in BOUNDS.items():
            value = metrics.get(name)
            if value is None:
                continue
            count = self.beyond[name] = self.beyond.get(name, 0) + 1 if value > bound.most else 0
            if count == PATIENCE:
                words.append(
                    f"{name} has been above {bound.most:g} for {PATIENCE} updates (now "
                    f"{value:.3g}); {bound.advice}."
                )
        return words
