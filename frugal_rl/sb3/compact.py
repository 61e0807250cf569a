"""Rollouts of stock Stable-Baselines3 in the smallest exact form, found on what arrives."""

from __future__ import annotations

from typing import Any

from frugal_rl.memory.profile import RolloutLocation
from frugal_rl.store.columns import Column
from frugal_rl.store.found.column import FoundColumn
from frugal_rl.store.layout import ColumnSpec
from frugal_rl.store.rollout import RolloutBuffer


class CompactRolloutBuffer(RolloutBuffer):
    """`rollout_buffer_class` of PPO and A2C for any environment; SB3's minibatches, bit for bit.

    Nothing is declared: each entry of the observation is looked at as it comes, and whatever
    repeats is kept once. Flat and Dict spaces alike.
    """

    def _column(self, spec: ColumnSpec, location: RolloutLocation, folder: str) -> Column:
        """Whatever the space declares, the rows tell."""
        if not spec.row_bytes:
            return super()._column(spec, location, folder)
        return FoundColumn(spec, self.buffer_size, self.n_envs)


def compact(env: Any, budget: str | None = None) -> dict[str, Any]:
    """Keywords of a stock SB3 model, `PPO("CnnPolicy", env, **compact(env))`."""
    return {"rollout_buffer_class": CompactRolloutBuffer, "rollout_buffer_kwargs": {}}
