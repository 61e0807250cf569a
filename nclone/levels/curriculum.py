"""The curriculum: one state machine that decides from episode results which levels come next.

It has no clock and no randomness of its own: the same events give the same decisions, so a log of
events is enough to repeat and to explain them. Stages are level categories in their order; a
source is a pair "generator/preset" inside a stage.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

import numpy as np

from nclone.levels.categories import CATEGORIES, Category


class Decision(Enum):
    """Why the stage, or its threshold, changed."""

    advance = "advance"
    early_advance = "early_advance"
    trend_advance = "trend_advance"
    regress = "regress"
    lower_threshold = "lower_threshold"


@dataclass(frozen=True)
class CurriculumConfig:
    """Rules of the curriculum (specification 7.3)."""

    window: int = 50
    """Episodes over which success is measured, per stage and per source."""
    early_success: float = 0.90
    early_episodes: int = 50
    trend_slope: float = 0.15
    """Success of the window's later half minus that of its earlier half."""
    trend_share: float = 0.90
    """Share of the minimum of episodes that the trend rule asks for."""
    trend_margin: float = 0.02
    trend_floor: float = 0.60
    regress_episodes: int = 200
    lower_threshold: bool = False
    """Lower the threshold of a stage that is not left."""
    lower_factor: float = 0.95
    lower_every_steps: int = 50_000
    lowest_threshold: float = 0.40
    mix_below: tuple[float, ...] = (0.50, 0.65, 0.80)
    mix_shares: tuple[float, ...] = (0.40, 0.25, 0.15, 0.05)
    """Share of earlier stages' levels, by success in the present stage."""

    def __post_init__(self) -> None:
        for name in ("mix_below", "mix_shares"):  # OmegaConf returns tuples as lists
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.mix_shares) != len(self.mix_below) + 1:
            raise ValueError(
                f"curriculum.mix_shares needs one value more than mix_below; got "
                f"{self.mix_shares} and {self.mix_below}."
            )
        if self.window < 2:
            raise ValueError(f"curriculum.window is {self.window}; use at least 2 episodes.")


@dataclass(frozen=True)
class Episode:
    """The result of one episode, as an environment reports it."""

    stage: str
    source: str
    success: bool
    steps: int
    """Environment steps of the whole run when the episode ended."""


@dataclass(frozen=True)
class Change:
    """A decision: the stage after it, and the success that it was taken at."""

    decision: Decision
    stage: str
    success: float
    episodes: int
    steps: int


Sink = Callable[[dict[str, Any]], None]


class Curriculum:
    """Decides the stage, how earlier stages are mixed in, and which sources come more often.

    Args:
        config: The rules.
        stages: Categories by name, in order.
        log: Receives every event as a dictionary of plain values: episodes and changes.
        start: The first stage; by default the first category.
    """

    def __init__(
        self,
        config: CurriculumConfig | None = None,
        stages: Mapping[str, Category] = CATEGORIES,
        log: Sink | None = None,
        start: str | None = None,
    ) -> None:
        self.config = config or CurriculumConfig()
        self.stages = dict(stages)
        self._names = list(stages)
        self._log = log
        if start is not None and start not in self.stages:
            raise ValueError(f"There is no stage '{start}'; use one of {self._names}.")
        self._enter(self._names.index(start) if start else 0, 0)
        self._sources: dict[str, dict[str, deque[bool]]] = {name: {} for name in self._names}

    @property
    def stage(self) -> str:
        """The present stage."""
        return self._names[self._stage]

    @property
    def success(self) -> float:
        """Success in the present stage over the window; 0 before its first episode."""
        return sum(self._window) / len(self._window) if self._window else 0.0

    @property
    def mix(self) -> float:
        """Share of levels that come from earlier stages."""
        if self._stage == 0:
            return 0.0
        below = sum(self.success >= bound for bound in self.config.mix_below)
        return self.config.mix_shares[below]

    def record(self, episode: Episode) -> Change | None:
        """Take in one result; tells whether it changed the stage or the threshold."""
        if episode.stage not in self.stages:
            raise ValueError(f"There is no stage '{episode.stage}'; use one of {self._names}.")
        self._report({"event": "episode", **asdict(episode)})
        results = self._sources[episode.stage].setdefault(
            episode.source, deque(maxlen=self.config.window)
        )
        results.append(bool(episode.success))
        if episode.stage != self.stage:
            return None
        self._window.append(bool(episode.success))
        self._episodes += 1
        decision = self._decide(episode.steps)
        return None if decision is None else self._carry_out(decision, episode.steps)

    def weights(self, stage: str) -> dict[str, float]:
        """Probability of each source of a stage: the less it is solved, the more often it comes."""
        lacking = {}
        for generator, preset in self.stages[stage].sources:
            source = f"{generator}/{preset}"
            results = self._sources[stage].get(source)
            lacking[source] = 1.1 - (sum(results) / len(results) if results else 0.5)
        total = sum(lacking.values())
        return {source: value / total for source, value in lacking.items()}

    def draw(self, rng: np.random.Generator, count: int = 1) -> list[tuple[str, str]]:
        """Stage and source of the next `count` levels."""
        drawn = []
        for earlier in rng.random(count) < self.mix:
            stage = self._names[rng.integers(self._stage)] if earlier else self.stage
            weights = self.weights(stage)
            drawn.append((stage, str(rng.choice(list(weights), p=list(weights.values())))))
        return drawn

    def state(self) -> dict[str, Any]:
        """Plain values that `load` continues from."""
        return {
            "stage": self.stage,
            "window": list(self._window),
            "episodes": self._episodes,
            "entered_at": self._entered_at,
            "lowered": self._lowered,
            "sources": {
                stage: {source: list(results) for source, results in sources.items()}
                for stage, sources in self._sources.items()
            },
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`."""
        if state["stage"] not in self.stages:
            raise ValueError(
                f"The curriculum's state is at stage '{state['stage']}', which this run does not "
                f"have; its stages are {self._names}."
            )
        self._enter(self._names.index(state["stage"]), state["entered_at"])
        self._window.extend(state["window"])
        self._episodes, self._lowered = state["episodes"], state["lowered"]
        for stage, sources in state["sources"].items():
            self._sources[stage] = {
                source: deque(results, maxlen=self.config.window)
                for source, results in sources.items()
            }

    def _decide(self, steps: int) -> Decision | None:
        rules, stage = self.config, self.stages[self.stage]
        success, episodes = self.success, self._episodes
        if self._stage + 1 < len(self._names):
            if episodes >= stage.min_episodes and success >= self.threshold:
                return Decision.advance
            if episodes >= rules.early_episodes and success >= rules.early_success:
                return Decision.early_advance
            near = success >= max(self.threshold - rules.trend_margin, rules.trend_floor)
            enough = episodes >= rules.trend_share * stage.min_episodes
            if near and enough and self._slope() > rules.trend_slope:
                return Decision.trend_advance
        falls = stage.regress is not None and success < stage.regress
        if self._stage > 0 and falls and episodes >= rules.regress_episodes:
            return Decision.regress
        due = (steps - self._entered_at) // rules.lower_every_steps
        can_lower = self.threshold > rules.lowest_threshold
        if rules.lower_threshold and due > self._lowered and can_lower:
            return Decision.lower_threshold
        return None

    @property
    def threshold(self) -> float:
        """Success at which the present stage is left."""
        lowered = self.stages[self.stage].advance * self.config.lower_factor**self._lowered
        floor = min(self.config.lowest_threshold, self.stages[self.stage].advance)
        return max(lowered, floor)

    def _slope(self) -> float:
        results: Sequence[bool] = list(self._window)
        half = len(results) // 2
        if half == 0:
            return 0.0
        return sum(results[-half:]) / half - sum(results[:half]) / half

    def _carry_out(self, decision: Decision, steps: int) -> Change:
        success, episodes = self.success, self._episodes
        if decision is Decision.lower_threshold:
            self._lowered += 1
        else:
            self._enter(self._stage + (-1 if decision is Decision.regress else 1), steps)
        change = Change(decision, self.stage, success, episodes, steps)
        self._report({"event": "change", **asdict(change), "decision": decision.value})
        return change

    def _enter(self, stage: int, steps: int) -> None:
        self._stage = stage
        self._window: deque[bool] = deque(maxlen=self.config.window)
        self._episodes = 0
        self._entered_at = steps
        self._lowered = 0

    def _report(self, event: dict[str, Any]) -> None:
        if self._log is not None:
            self._log(event)


def replay_log(
    events: Iterable[Mapping[str, Any]],
    config: CurriculumConfig | None = None,
    stages: Mapping[str, Category] = CATEGORIES,
    start: str | None = None,
) -> list[Change]:
    """The decisions that follow from a log's episodes; equal to the changes in the log."""
    curriculum = Curriculum(config, stages, start=start)
    changes = []
    for event in events:
        if event["event"] == "episode":
            values = {name: event[name] for name in ("stage", "source", "success", "steps")}
            change = curriculum.record(Episode(**values))
            if change is not None:
                changes.append(change)
    return changes
