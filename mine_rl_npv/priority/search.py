"""Evolution of priority weights with restarts, against the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mine_rl_npv.priority.evolution import CovarianceAdaptation, EvolutionConfig
from mine_rl_npv.priority.features import feature_names
from mine_rl_npv.priority.policy import PriorityNet
from mine_rl_npv.priority.watch import Watch, going_on

if TYPE_CHECKING:
    from mine_rl_npv.priority.task import Mine

STALLED_SIGMA = 2e-3
MAX_POPULATION = 192


class Judge(Protocol):
    """What a search asks of its task: the values of weights on some of the mines."""

    mines: list[Mine]

    def values(self, score: object, candidates: np.ndarray, chosen: list[int]) -> np.ndarray:
        """Mean relative value (C,) of each candidate over the chosen mines."""


@dataclass
class Evolution:
    """Restarting covariance adaptation over the weights of one network.

    A search whose steps have shrunk starts again around the best weights with twice the
    candidates, which trades speed for a wider view.
    """

    task: Judge
    net: PriorityNet
    start: np.ndarray
    config: EvolutionConfig
    seed: int = 0
    best_value: float = -np.inf
    best: np.ndarray = field(init=False)
    decodes: int = 0
    restarts: int = 0

    def __post_init__(self) -> None:
        self.best = self.start.copy()
        self.search = CovarianceAdaptation(self.start, self.config, self.seed)
        self.rng = np.random.default_rng([self.seed, 1])

    def value_start(self) -> None:
        """Counts the weights that the search starts from, so that it never ends below them."""
        mines = list(range(len(self.task.mines)))
        self.best_value = float(
            self.task.values(
                lambda weights, mine: self.net.scores(weights, mine.features),
                self.best[None],
                mines,
            )[0]
        )
        self.decodes += len(mines)

    def generation(self, chosen: list[int] | None = None) -> dict[str, float]:
        """One ask and tell; the statistics of its candidates."""
        mines = chosen if chosen is not None else list(range(len(self.task.mines)))
        candidates = self.search.ask()
        values = self.task.values(
            lambda weights, mine: self.net.scores(weights, mine.features), candidates, mines
        )
        self.search.tell(candidates, values)
        self.decodes += len(candidates) * len(mines)
        if chosen is None and values.max() > self.best_value:
            self.best_value = float(values.max())
            self.best = candidates[int(values.argmax())].copy()
        if self.search.sigma < STALLED_SIGMA * self.config.sigma:
            self._restart()
        return {
            "best": float(values.max()),
            "mean": float(values.mean()),
            "sigma": float(self.search.sigma),
        }

    def _restart(self) -> None:
        self.restarts += 1
        wide = min(self.config.population * 2**self.restarts, MAX_POPULATION)
        around = self.best if self.restarts % 2 else self.start
        config = EvolutionConfig(wide, self.config.sigma)
        self.search = CovarianceAdaptation(around, config, int(self.rng.integers(2**31)))


@dataclass(frozen=True)
class Learned:
    """What a learner leaves: weights, and the schedule they give on the mine they learned on."""

    net: PriorityNet
    weights: np.ndarray
    value: float
    """Relative to the bound, in the decoder that was trained on."""
    decodes: int
    seconds: float


def evolve(
    mines: list[Mine],
    task: Judge,
    seconds: float,
    seed: int,
    hidden: int = 6,
    config: EvolutionConfig | None = None,
    minibatch: int = 0,
    watch: Watch | None = None,
    clock: Callable[[], float] = time.perf_counter,
    decodes: int = 0,
) -> Learned:
    """Learns priority weights for `seconds`, or for a number of `decodes`; Ctrl-C keeps the best.

    Args:
        mines: the deposits of `task`; with several, the mean relative value counts.
        task: decoder and threads.
        seconds: the clock.
        seed: of the search.
        hidden: width of the network's hidden layer.
        config: population and first step.
        minibatch: mines per generation; 0 means all. With minibatches the mean of the final
            distribution is returned, else the best candidate.
        watch: called after each generation with seconds, decodes and the best relative value.
        clock: wall time, or `time.process_time` where the machine is busy with other work.
        decodes: schedules to decode at least; the same everywhere, whatever the clock says.
    """
    features = mines[0].features.shape[1]
    names = feature_names(relaxation=features == len(feature_names(True)))
    net = PriorityNet(features, hidden)
    run = Evolution(task, net, net.start(names), config or EvolutionConfig(), seed)
    rng = np.random.default_rng([seed, 2])
    started = clock()
    if not minibatch:
        run.value_start()
    try:
        while going_on(clock() - started, seconds, run.decodes, decodes):
            chosen = None
            if minibatch:
                chosen = rng.choice(len(mines), minibatch, replace=False).tolist()
            run.generation(chosen)
            if watch is not None:
                watch(clock() - started, run.decodes, run.best_value)
    except KeyboardInterrupt:
        if watch is not None:
            watch(float("nan"), run.decodes, run.best_value)
    weights = run.search.mean if minibatch else run.best
    return Learned(net, weights, run.best_value, run.decodes, clock() - started)
