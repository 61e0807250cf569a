"""Where numbers that are not finite came from: looked for once something failed of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.run.finite import LARGEST, finite, fits

if TYPE_CHECKING:
    from frugal_rl.observation.tables import Tables


def place_of(values: np.ndarray) -> tuple[int, ...]:
    """The index of the first value that is not finite in float32."""
    return tuple(int(i) for i in np.argwhere(~(np.abs(values) <= LARGEST))[0])


def told(value: Any) -> str:
    """A value that a network cannot be given, as an error says it."""
    return f"{value}, which is none in float32," if np.isfinite(value) else str(value)


def in_tables(tables: Tables) -> str:
    """Words about the first bad value of a static field; empty where all are finite."""
    for table_name, table in tables.items():
        for name in table.fields:
            values = table[name]
            if not fits(values):
                at = place_of(values)
                return (
                    f"The static field '{name}' of table '{table_name}' holds {told(values[at])} "
                    f"at {list(at)}."
                )
    return ""


def in_rollout(learner: Any, newest: int) -> str:
    """Words about what made a value or a reward of a rollout none; empty if all are finite.

    Args:
        learner: any; one that collects steps into a rollout keeps what each value was of.
        newest: number of the environments' newest step, which the rollout's last led to.
    """
    rollout = getattr(getattr(learner, "collector", None), "rollout", None)
    if rollout is None:
        return ""
    first = newest - rollout.buffer_size  # the step that the rollout's first observation is of
    if not finite(rollout.values):
        t, n = place_of(rollout.values)
        for name, seen in rollout.observations_at(np.array([t]), np.array([n])).items():
            if not finite(seen):
                at = list(place_of(seen[0].cpu().numpy()))
                return (
                    f"The observation '{name}' {at} of environment {n} is none in step {first + t}."
                )
    if not finite(rollout.rewards):
        t, n = place_of(rollout.rewards)
        return (
            f"In step {first + t + 1} a limit ended an episode of environment {n}, whose last "
            "observation has a value that is none."
        )
    return ""
