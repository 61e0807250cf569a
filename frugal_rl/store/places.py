"""Where a replay can lie, by its word."""

from __future__ import annotations

from frugal_rl.errors import ConfigError
from frugal_rl.memory.choices import RolloutLocation

WORDS = [place.value for place in RolloutLocation if place is not RolloutLocation.pinned]


def replay_location(wanted: RolloutLocation | str) -> RolloutLocation:
    """The place that a word names.

    Raises:
        ConfigError: there is no such place for a replay.
    """
    word = wanted.value if isinstance(wanted, RolloutLocation) else wanted
    if word not in WORDS:
        raise ConfigError(
            f"a replay does not lie in '{word}' (memory.rollout_location, location=): its rows are "
            f"decoded where they are drawn. Choose {', '.join(WORDS)}."
        )
    return RolloutLocation(word)
