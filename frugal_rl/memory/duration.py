"""How long a run takes: seconds of an iteration, hours of all of them.

Rates come from this machine: the last run of the same kind where there was one, else updates of
this very network that were timed while it was traced. What an environment takes is known once it
has run; until then the hours are without it, and say so.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from frugal_rl import remembered
from frugal_rl.errors import ConfigError
from frugal_rl.memory.machine import device_here
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
    processor_seconds: float | None = None
    """Of the run's own process in one iteration, all threads; None where none was timed."""

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
        part = "" if self.timed else " for its network alone"
        whole = f"takes about {spelled(self.hours * HOUR)}{part}"
        whole += f": {spelled(self.iteration_seconds)}"
        whole += f" per iteration, {self.iterations:,} iterations"
        how = "as the last run of this kind"
        return f"{whole} ({how if self.timed else 'the environment was not timed yet'})"

    def as_dict(self) -> dict[str, float | int | bool]:
        """Plain values for JSON."""
        return {**vars(self), "iteration_seconds": self.iteration_seconds, "hours": self.hours}


@dataclass(frozen=True)
class Cost:
    """Seconds, by the clock or of the processor, on average."""

    step: float
    """Of one step of all environments."""
    minibatch: float
    """Of learning from one minibatch, with its share of what an update does once."""


@dataclass(frozen=True)
class Timed:
    """What the last run of a kind took, and the sizes that it had."""

    num_envs: int
    batch_size: int
    clock: Cost
    """Without the time that it waited for a core: what others did then says nothing of a run."""
    processor: Cost
    """Of its own process, all threads together."""
    episode: float
    """Seconds of an episode of an evaluation, by the clock as above."""

    @classmethod
    def of_json(cls, values: Mapping[str, Any]) -> Timed:
        """From `asdict()`."""
        costs = {name: Cost(**values[name]) for name in ("clock", "processor")}
        return cls(**{**values, **costs})

    def iteration(
        self, run: RunConfig, pace: Pace | None, take: Callable[[Timed], Cost]
    ) -> tuple[float, float]:
        """Seconds of collecting and of learning in one iteration of `run`, of either cost."""
        algo: Any = run.algo
        steps, cost = steps_of(algo), take(self)
        batch = _batch_of(algo, steps * algo.num_envs)
        minibatch = self.minibatch_of(cost, batch, pace, run.memory.micro_batch)
        collecting = steps * self.step_of(cost, algo.num_envs, pace)
        return collecting, _minibatches(algo, steps * algo.num_envs) * minibatch

    def step_of(self, cost: Cost, num_envs: int, pace: Pace | None) -> float:
        """Seconds of one step of so many environments."""
        inside = min(cost.step, pace.acting.at(self.num_envs)) if pace else 0.0
        outside = (cost.step - inside) * middle(num_envs, self.num_envs)
        if pace is None or not inside:
            return outside
        return outside + inside * pace.acting.at(num_envs) / pace.acting.at(self.num_envs)

    def minibatch_of(
        self, cost: Cost, samples: int, pace: Pace | None, micro_batch: int | None
    ) -> float:
        """Seconds of learning from a minibatch of so many samples."""
        if pace is None:
            return cost.minibatch * middle(samples, self.batch_size)
        ours, theirs = (_in_pieces(pace, n, micro_batch) for n in (samples, self.batch_size))
        return cost.minibatch * (ours / theirs if theirs else 1.0)


def middle(size: int, timed: int) -> float:
    """By how much something takes longer of which nobody knows how it grows with a size.

    It may not grow at all, or in proportion: the middle of both, in factors.
    """
    return math.sqrt(size / max(timed, 1))


def steps_of(algo: Any) -> int:
    """Steps of each environment in one iteration: a replay is learned from in whole rounds."""
    every: int = getattr(algo, "train_freq", 0)
    steps: int = algo.n_steps
    return max(1, steps // every) * every if every else steps


def estimate(run: RunConfig, probe: Probe | None) -> Duration | None:
    """The run's duration; None where nothing was timed."""
    algo: Any = run.algo
    steps = steps_of(algo) * algo.num_envs
    iterations = -(-algo.total_steps // (steps * run.split))
    pace = probe.pace if probe else None
    kept = remembered.read(name_of(run))
    if kept:
        timed = Timed.of_json(kept)
        collecting, updating = timed.iteration(run, pace, lambda timed: timed.clock)
        processor = sum(timed.iteration(run, pace, lambda timed: timed.processor))
        tried_out = _evaluations(run) * run.evaluation.episodes * timed.episode
        return Duration(collecting, updating, tried_out, iterations, True, processor)
    if pace is None or device_here(run.hardware.device) != run.hardware.device:
        return None  # a CPU's seconds say nothing of a GPU
    pieces = _in_pieces(pace, _batch_of(algo, steps), run.memory.micro_batch)
    acting = steps_of(algo) * pace.acting.at(algo.num_envs)
    return Duration(acting, _minibatches(algo, steps) * pieces, 0.0, iterations, False)


def keep_pace(
    run: RunConfig,
    clock: Mapping[Phase, float],
    processor: Mapping[Phase, float],
    steps: float,
) -> None:
    """Remember what a run took.

    Args:
        run: whose kind is remembered.
        clock: seconds of collecting once, of the updates behind it, of one evaluation, without
            those in which it waited for a core; 0 where there was none.
        processor: the same of the processor.
        steps: environment steps that were collected at once.
    """
    algo: Any = run.algo
    learned = _minibatches(algo, steps)

    def cost(seconds: Mapping[Phase, float]) -> Cost:
        step = seconds[Phase.rollout] * algo.num_envs / steps
        return Cost(step, seconds[Phase.update] / learned)

    episode = clock[Phase.evaluation] / max(1, run.evaluation.episodes)
    costs = cost(clock), cost(processor)
    timed = Timed(algo.num_envs, _batch_of(algo, int(steps)), *costs, episode)
    remembered.write(name_of(run), asdict(timed))


def _batch_of(algo: Any, steps: int) -> int:
    """Samples of a minibatch; all of them for algorithms that know none."""
    size = getattr(algo, "batch_size", 0)
    return size if getattr(algo, "train_freq", 0) else min(size or steps, steps)


def _minibatches(algo: Any, steps: float) -> float:
    """How many minibatches are learned from after so many environment steps."""
    every = getattr(algo, "train_freq", 0)
    if every:
        return float(steps / algo.num_envs / every * algo.gradient_steps)
    return float(getattr(algo, "n_epochs", 1) * max(1.0, steps / _batch_of(algo, int(steps))))


def _in_pieces(pace: Pace, samples: int, micro_batch: int | None) -> float:
    """Seconds of an update on so many samples, each micro-batch on its own."""
    pieces = -(-samples // (micro_batch or samples))
    return pieces * pace.update.at(samples // pieces)


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
    steps = run.algo.n_steps * run.algo.num_envs * run.split
    todo = f"algo.total_steps={fitting}" if fitting >= steps else "a smaller agent or rollout"
    raise ConfigError(
        f"This run {duration.words}, {duration.hours:.3g} h, above memory.max_hours={most:g}. Most "
        f"of it is {slower} ({max(share, 1 - share):.0%}). Try {todo}, or raise memory.max_hours."
    )


def name_of(run: RunConfig) -> str:
    """What seconds per step depend on: environment, network, learning, machine; scales of sizes."""
    algo: Any = run.algo
    sizes = [getattr(algo, k, 0) for k in ("num_envs", "batch_size")]
    scale = [int(s).bit_length() if isinstance(s, int) else s for s in sizes]
    memory = (run.memory.storage, run.memory.precision, run.memory.micro_batch)
    kind = (run.env, run.agent, type(algo).__name__, run.vec, *memory, run.launch.size)
    more = [
        getattr(algo, name, "") for name in ("engine", "overlap", "compile", "prioritised", "her")
    ]
    machine = (run.hardware.device, run.hardware.threads, os.cpu_count())
    form = (*Timed.__annotations__, *Cost.__annotations__)  # another version keeps other values
    return f"seconds_{remembered.fingerprint(*map(repr, (*kind, *scale, *more, *machine, *form)))}"


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
