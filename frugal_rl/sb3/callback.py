"""Predicted beside measured, in the log of a stock Stable-Baselines3 run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from frugal_rl.errors import NumbersError
from frugal_rl.memory import usage
from frugal_rl.memory.meter import MemoryMeter
from frugal_rl.sb3.rollout import CompactRolloutBuffer

if TYPE_CHECKING:
    from frugal_rl.sb3.stock_plan import StockPlan


class MemoryCallback(BaseCallback):
    """Logs the process's peak at each rollout's end, the plan beside it, and whether it leaks.

    With `finite`, an observation that is not finite ends the run by its name, before the policy
    fails on it in words that name nothing.
    """

    def __init__(
        self, plan: StockPlan | None = None, verbose: int = 0, finite: bool = False
    ) -> None:
        super().__init__(verbose)
        self.plan = plan
        self.finite = finite
        self.meter = MemoryMeter()

    def _on_training_start(self) -> None:
        """Peaks count from here on."""
        usage.reset_peak()

    def _on_step(self) -> bool:
        """Look at the newest observations, where asked to."""
        if self.finite and "new_obs" in self.locals:
            shown = self.locals["new_obs"]
            for name, rows in (shown if isinstance(shown, dict) else {"obs": shown}).items():
                self._look(name, rows)
        return True

    def _look(self, name: str, rows: np.ndarray) -> None:
        bad = np.argwhere(~np.isfinite(rows))
        if len(bad):
            env, *place = bad[0].tolist()
            raise NumbersError(
                f"Observation '{name}' {place} of environment {env} is {rows[tuple(bad[0])]} after "
                f"{self.num_timesteps:,} steps. Correct the environment, or put "
                "gymnasium.wrappers.TransformObservation with numpy.nan_to_num around it."
            )

    def _on_rollout_end(self) -> None:
        """Numbers of this rollout and of the update before it."""
        self.meter.note_rollout()
        self.logger.record("memory/held_bytes", usage.resident_bytes())
        self.logger.record("memory/peak_bytes", usage.peak_resident_bytes())
        if self.plan is not None:
            self.logger.record("memory/predicted_bytes", self.plan.compact)
        rollout = getattr(self.model, "rollout_buffer", None)
        if isinstance(rollout, CompactRolloutBuffer):
            self.logger.record("memory/rollout_bytes", rollout.nbytes)

    def _on_training_end(self) -> None:
        """The verdict."""
        if self.verbose:
            print(f"memory: {self.verdict}")

    @property
    def verdict(self) -> str:
        """Whether memory grew from rollout to rollout, in words."""
        return self.meter.growth.verdict
