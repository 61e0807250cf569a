"""What rows of a minibatch hold, where that decides how much a network computes.

An environment whose rows differ in length, or whose counts a network reads, tells it without being
made: then what its networks hold and take is measured without it (`frugal_rl.learn.blank`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Content:
    """What a rollout shows.

    Attributes:
        ragged: Field of varying length -> the row of a typical static row, [length, *item shape].
        rows: As many such static rows a rollout shows.
        fields: Field -> [K, *shape], its values in K moments, as often as a rollout has them.
    """

    ragged: Mapping[str, np.ndarray] = field(default_factory=dict)
    rows: float = 1.0
    fields: Mapping[str, np.ndarray] = field(default_factory=dict)

    def distinct(self, samples: int) -> float:
        """Static rows that so many samples of the rollout show."""
        return expected_distinct(self.rows, samples)


def expected_distinct(kinds: float, draws: float) -> float:
    """How many of some kinds are seen in so many draws, each kind as likely as another."""
    if kinds <= 1:
        return kinds
    return float(kinds * (1 - (1 - 1 / kinds) ** draws))
