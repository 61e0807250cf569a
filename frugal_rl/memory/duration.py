"""How long a run takes: seconds of an iteration, hours of all of them.

Rates come from this machine: the last run of the same kind where there was one, else updates of
this very network that were timed while it was traced. What an environment takes is known once it
has run; until then the hours are without it, and say so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from frugal_rl import remembered
from frugal_rl.errors import ConfigError
from frugal_rl.memory.part import Phase

if TYPE_CHECKING:
    from frugal_rl.memory.probe import Probe
    from frugal_rl.run.config import RunConfig

HOUR = 3600.0


@dataclass(frozen=True)
class Line:
    """Seconds as a straight line in the number of samples."""

    fixed: float
    per_sample: float

    def at(self, samples: int) -> float:
        """Seconds of one call with this many samples."""
        return self.fixed + self.per_sample * samples


@dataclass(frozen=True)
class Pace:
    """What was timed of a learner: an update on B samples, and acting on B observations."""

    update: Line
    acting: Line


@dataclass(frozen=True)
class Duration:
    """Seconds of one iteration by phase, and how many iterations a run has."""

    collect_seconds: float
    update_seconds: float
    evaluation_seconds: float
    """All evaluations of the run together; 0 where none was timed."""
    iterations: int
    timed: bool
    """Whether a run of this kind was timed; else the environment is left out."""

    @property
    def iteration_seconds(self) -> float:
        """Collecting and learning once."""
        return self.collect_seconds + self.update_seconds

    @property
    def hours(self) -> float:
        """The whole run."""
        return (self.iterations * self.iteration_seconds + self.evaluation_seconds) / HOUR

    @property
    def words(self) -> str:
        """As in "takes about 3 min: 0.7 s per iteration, 245 iterations"."""
        size = "takes about" if self.timed else "takes at least"
        whole = f"{size} {spelled(self.hours * HOUR)}: {spelled(self.iteration_seconds)}"
        whole += f" per iteration, {self.iterations:,} iterations"
        how = "as the last run of this kind"
        return f"{whole} ({how if self.timed else 'the environment was not timed yet'})"

    def as_dict(self) -> dict[str, float | int | bool]:
        """Plain values for JSON."""
        return {**vars(self), "iteration_seconds": self.iteration_seconds, "hours": self.hours}


def estimate(run: RunConfig, probe: Probe | None) -> Duration | None:
    """The run's duration; None where nothing was timed."""
    algo: Any = run.algo
    steps = algo.n_steps * algo.num_envs
    iterations = -(-algo.total_steps // steps)
    kept = remembered.read(name_of(run))
    if kept:
        seconds = {phase: kept.get(phase, 0.0) for phase in ("rollout", "update", "evaluation")}
        tried_out = _evaluations(run) * seconds["evaluation"]
        each = seconds["rollout"] * steps, seconds["update"] * steps
        return Duration(*each, tried_out, iterations, True)
    if probe is None or probe.pace is None:
        return None
    batch = min(algo.batch_size, steps)
    pieces = -(-batch // (run.memory.micro_batch or batch))
    minibatch = pieces * probe.pace.update.at(batch // pieces)
    updating = algo.n_epochs * (steps // batch) * minibatch
    collecting = algo.n_steps * probe.pace.acting.at(algo.num_envs)
    return Duration(collecting, updating, 0.0, iterations, False)


def keep_pace(run: RunConfig, seconds: Mapping[Phase, float], steps: float) -> None:
    """Remember what a run took.

    Args:
        run: whose kind is remembered.
        seconds: of one rollout, one update, one evaluation; 0 where there was none.
        steps: environment steps of one iteration.
    """
    rates = {p.value: seconds[p] / steps for p in (Phase.rollout, Phase.update)}
    remembered.write(name_of(run), {**rates, Phase.evaluation.value: seconds[Phase.evaluation]})


def stop_when_too_long(run: RunConfig, duration: Duration | None) -> None:
    """Refuse a run that takes longer than `memory.max_hours`.

    Raises:
        ConfigError: names the hours, the slower half and the steps that would fit.
    """
    most = run.memory.max_hours
    if most is None or duration is None or duration.hours <= most:
        return
    share = duration.update_seconds / max(duration.iteration_seconds, 1e-12)
    slower = "updating" if share > 0.5 else "collecting"
    fitting = int(run.algo.total_steps * most / duration.hours)
    steps = run.algo.n_steps * run.algo.num_envs
    todo = f"algo.total_steps={fitting}" if fitting >= steps else "a smaller agent or rollout"
    raise ConfigError(
        f"This run {duration.words}, {duration.hours:.3g} h, above memory.max_hours={most:g}. Most "
        f"of it is {slower} ({max(share, 1 - share):.0%}). Try {todo}, or raise memory.max_hours."
    )


def name_of(run: RunConfig) -> str:
    """What seconds per step depend on: environment, network, learning, machine; scales of sizes."""
    algo: Any = run.algo
    sizes = [getattr(algo, k, 0) for k in ("num_envs", "batch_size", "n_steps")]
    scale = [int(s).bit_length() if isinstance(s, int) else s for s in sizes]
    kind = (run.env, run.agent, type(algo).__name__, run.vec, run.memory.precision)
    more = (getattr(algo, "n_epochs", 0), getattr(algo, "engine", ""), run.memory.micro_batch)
    machine = (run.hardware.device, run.hardware.threads, os.cpu_count())
    return f"pace_{remembered.fingerprint(*map(repr, (*kind, *scale, *more, *machine)))}"


def _evaluations(run: RunConfig) -> int:
    """How often a run evaluates its policy, random play at the end included."""
    if not run.evaluation.episodes:
        return 0
    every = run.evaluation.every_steps
    return 2 + (run.algo.total_steps - 1) // every if every else 2


def spelled(seconds: float) -> str:
    """Seconds as people say them: "0.7 s", "4 min", "31 h"."""
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    hours = seconds / HOUR
    if hours >= 1.5:
        return f"{hours:.2g} h" if hours < 10 else f"{hours:,.0f} h"
    return f"{seconds / 60:.0f} min"
