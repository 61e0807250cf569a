"""A guard on numbers: the first that is not finite stops the run, and says where it came from."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.errors import EncodingError, FrugalError, NumbersError
from frugal_rl.learn.learner import settle
from frugal_rl.run.disk import write_whole
from frugal_rl.run.finite import finite, fits
from frugal_rl.run.suspects import in_rollout, in_tables, place_of, told

if TYPE_CHECKING:
    from frugal_rl.learn.learner import Learner
    from frugal_rl.vec_env.interface import Rows, Step, VectorEnv

EVERY_STEPS = 16
"""Steps of all environments between two looks at whole observations."""
BAD_STEP = "bad_step.npz"
"""The step in which a value was not finite, in the run folder."""
WATCHED = ("loss", "grad_norm")
"""Ends of the names of metrics that must be finite; a share may be of nothing, a loss never."""

Iterate = Callable[[], dict[str, float]]


class NumberGuard:
    """Looks at what the environments give, at losses and at weights; `every` looks at every row.

    Rewards and actions are looked at in each step, observations in one of 16 (those that a replay
    keeps: in each) and where episodes begin by a reset, weights and losses after each iteration.
    `since` says in an error what the steps are counted from.
    """

    def __init__(self, folder: Path, every: bool = False, since: str = "the run began") -> None:
        self.folder, self.look_every = folder, 1 if every else EVERY_STEPS
        self.since = since
        self.at = -1  # the number of the newest step, from 0
        self.actions: np.ndarray | None = None
        self.seen: Step | None = None
        self.watched: VectorEnv | None = None

    def watch(self, vec_env: VectorEnv) -> VectorEnv:
        """The same environments; whoever steps them lets the guard see what they give."""
        watched: VectorEnv = getattr(vec_env, "inner", vec_env)  # whole episodes step those inside
        real, real_reset = watched.step, watched.reset
        self.watched = watched

        def reset(seed: int) -> Rows:
            rows = real_reset(seed)
            self._look_at_first(rows, seed)
            return rows

        def step(actions: np.ndarray) -> Step:
            self._look_at_actions(actions)
            self.actions = actions
            self.at += 1
            try:
                self.seen = real(actions)
            except FrugalError as error:
                if isinstance(error, EncodingError):  # often of what is no number
                    error.add_note(f"In step {self.at} of the environments since {self.since}.")
                raise
            except Exception as error:
                error.add_note(f"In step {self.at} of the environments since {self.since}.")
                raise
            self._look(self.seen)
            return self.seen

        watched.step, watched.reset = step, reset  # type: ignore[method-assign]
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
            self._look_closely(learner)  # a network that was given NaN fails in words of its own
            raise
        self._check(metrics, learner)
        return metrics

    def settle(self, learner: Learner, phase: Any) -> None:
        """Learn from what waits to be learned from, before weights are judged or saved.

        Raises:
            NumbersError: they are not finite.
        """
        self.iterate(learner, lambda: settle(learner, phase))

    def _look(self, step: Step) -> None:
        """The checks of one step, in the order of their cost."""
        if not np.isfinite(step.reward).all():
            self._stop("reward", step.reward, step)
        if self.at % self.look_every == 0:
            self._look_at_rows(step)

    def _look_at_rows(self, step: Step) -> None:
        for rows in (step.rows, step.final_rows):
            for name, values in rows.items():
                if not fits(values):
                    self._stop(name, values, step)

    def _look_at_first(self, rows: Rows, seed: int) -> None:
        for name, values in rows.items():
            if not fits(values):
                env, *at = place_of(values)
                raise NumbersError(
                    f"The observation '{name}' {at} of environment {env} is "
                    f"{told(values[env, *at])} where its episode begins (reset with seed {seed})."
                )

    def _look_at_actions(self, actions: np.ndarray) -> None:
        """No environment is given what is no number: what it made of that would be blamed."""
        if not finite(np.asarray(actions)):
            self._look_closely()
            env, *_ = place_of(actions)
            raise NumbersError(
                f"The policy's action for environment {env} is {actions[env]} after step {self.at} "
                f"since {self.since}: its weights or what it saw are no numbers."
            )

    def _look_closely(self, learner: Learner | None = None) -> None:
        """Whether the last observation, a static field or the rollout explains a failure."""
        if self.seen is not None:
            self._look_at_rows(self.seen)
        words = in_tables(self.watched.tables) if self.watched is not None else ""
        words = words or in_rollout(learner, self.at)
        if words:
            raise NumbersError(words)

    def _check(self, metrics: Mapping[str, float], learner: Learner) -> None:
        for name, value in metrics.items():
            if name.endswith(WATCHED) and not np.isfinite(value):
                self._look_closely(learner)
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
        bad = place_of(values)
        env = int(step.final_index[bad[0]]) if values is step.final_rows.get(name) else bad[0]
        value = values[bad]
        kind = "reward" if values is step.reward else f"observation '{name}' {list(bad[1:])}"
        kept = self._keep(step)
        raise NumbersError(
            f"The {kind} of environment {env} is {told(value)} in step {self.at} since {self.since}"
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


def watched_trial(folder: Path, vec_env: VectorEnv) -> VectorEnv:
    """Environments of an evaluation, each row looked at: the best of bad numbers is not greater."""
    return NumberGuard(folder, every=True, since="evaluating began").watch(vec_env)
