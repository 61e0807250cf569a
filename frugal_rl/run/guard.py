"""A guard on numbers: the first that is not finite stops the run, and says where it came from."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.errors import FrugalError, NumbersError
from frugal_rl.run.disk import write_whole
from frugal_rl.run.finite import finite

if TYPE_CHECKING:
    from frugal_rl.learn.learner import Learner
    from frugal_rl.vec_env.interface import Step, VectorEnv

EVERY_STEPS = 16
"""Steps of all environments between two looks at whole observations."""
BAD_STEP = "bad_step.npz"
"""The step in which a value was not finite, in the run folder."""
WATCHED = ("loss", "grad_norm")
"""Ends of the names of metrics that must be finite; a share may be of nothing, a loss never."""

Iterate = Callable[[], dict[str, float]]


class NumberGuard:
    """Looks at what the environments give, at losses and at weights; `every` looks at every row.

    Rewards are looked at in each step, observations in one of 16 (those that a replay keeps: in
    each), weights and losses after each iteration.
    """

    def __init__(self, folder: Path, every: bool = False) -> None:
        self.folder, self.look_every = folder, 1 if every else EVERY_STEPS
        self.at = -1  # the number of the newest step, from 0
        self.actions: np.ndarray | None = None
        self.seen: Step | None = None

    def watch(self, vec_env: VectorEnv) -> VectorEnv:
        """The same environments; whoever steps them lets the guard see what they give."""
        watched: VectorEnv = getattr(vec_env, "inner", vec_env)  # whole episodes step those inside
        real = watched.step

        def step(actions: np.ndarray) -> Step:
            self.actions = actions
            self.at += 1
            try:
                self.seen = real(actions)
            except FrugalError:
                raise
            except Exception as error:
                error.add_note(f"In step {self.at} of the environments since the run began.")
                raise
            self._look(self.seen)
            return self.seen

        watched.step = step  # type: ignore[method-assign]
        return vec_env

    def adapt(self, learner: Learner) -> None:
        """Look at every row that goes into a replay: learning may meet it long after its step."""
        if hasattr(learner, "replay"):
            self.look_every = 1

    def iterate(self, learner: Learner, iterate: Iterate) -> dict[str, float]:
        """One iteration, with metrics and weights that are finite.

        Raises:
            NumbersError: naming environment, step, action and field where they can be known.
        """
        try:
            metrics = iterate()
        except (ValueError, RuntimeError) as error:
            if isinstance(error, FrugalError):
                raise
            self._look_closely()  # a network that was given NaN fails in words of its own
            raise
        self._check(metrics, learner)
        return metrics

    def _look(self, step: Step) -> None:
        """The checks of one step, in the order of their cost."""
        if not np.isfinite(step.reward).all():
            self._stop("reward", step.reward, step)
        if self.at % self.look_every == 0:
            self._look_at_rows(step)

    def _look_at_rows(self, step: Step) -> None:
        for rows in (step.rows, step.final_rows):
            for name, values in rows.items():
                if not finite(values):
                    self._stop(name, values, step)

    def _look_closely(self) -> None:
        """Whether the last observation explains a failure."""
        if self.seen is not None:
            self._look_at_rows(self.seen)

    def _check(self, metrics: Mapping[str, float], learner: Learner) -> None:
        for name, value in metrics.items():
            if name.endswith(WATCHED) and not np.isfinite(value):
                self._look_closely()
                raise NumbersError(f"{name} is {value:g} after {learner.num_steps:,} steps.")
        for name, weights in learner.policy.named_parameters():
            if not finite(weights):
                raise NumbersError(
                    f"The update at {learner.num_steps:,} steps made weights of '{name}' that are "
                    "not finite; they are not kept."
                )

    def _stop(self, name: str, values: np.ndarray, step: Step) -> None:
        """Keep the step and name its first bad value.

        Raises:
            NumbersError: always.
        """
        bad = np.argwhere(~np.isfinite(values))[0]
        env = int(step.final_index[bad[0]]) if values is step.final_rows.get(name) else int(bad[0])
        value = values[tuple(bad)]
        kind = "reward" if values is step.reward else f"observation '{name}' {bad[1:].tolist()}"
        kept = self._keep(step)
        raise NumbersError(
            f"The {kind} of environment {env} is {value} in step {self.at} since the run began"
            f"{self._action_of(env)}. {kept}"
        )

    def _action_of(self, env: int) -> str:
        return "" if self.actions is None else f", after action {np.asarray(self.actions)[env]}"

    def _keep(self, step: Step) -> str:
        """Write the step down; what there is to say about it."""
        arrays: dict[str, Any] = {f"row/{name}": values for name, values in step.rows.items()}
        arrays |= {f"final/{name}": values for name, values in step.final_rows.items()}
        arrays |= {"reward": step.reward, "done": step.done, "truncated": step.truncated}
        arrays |= {"step": np.int64(self.at), "final_index": step.final_index}
        if self.actions is not None:
            arrays["action"] = np.asarray(self.actions)
        packed = io.BytesIO()
        np.savez_compressed(packed, **arrays)
        try:
            write_whole(self.folder / BAD_STEP, [packed.getvalue()])
        except OSError as error:
            return f"It could not be kept in {self.folder / BAD_STEP} ({error.strerror})."
        return f"All of that step is in {self.folder / BAD_STEP}."
