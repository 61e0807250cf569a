"""Agent and learners of whole schedules, as values. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self

from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from frugal_rl.memory.part import Part, Phase
from frugal_rl.ranges import above, at_least
from mine_rl_npv.rules.choices import Actions, Kind
from mine_rl_npv.rules.features import VIEW

if TYPE_CHECKING:
    from frugal_rl.learn.learner import Learner
    from frugal_rl.learn.networks import Network
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.learn.ranks import Ranks
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv
    from mine_rl_npv.rules.layout import MineLayout

learners = Late("mine_rl_npv.priority.learners")


def network_size(hidden: int) -> int:
    """Weights of a `PriorityNetwork`."""
    return len(VIEW) * (1 + hidden) + 2 * hidden


@dataclass(frozen=True)
class PriorityAgent:
    """One score per block; for algo=evolution and algo=schedule_gradient."""

    name: str = "priority"
    hidden: Annotated[int, at_least(1)] = 8

    def check(self, encoding: Any, action_space: Any) -> None:
        """Refuse actions that are no columns."""
        if "columns" not in encoding.spec.by_name:
            raise ConfigError(
                "agent=priority ranks the blocks of a mine; choose env=mine_cpit "
                "env.actions=column, or agent=mlp here."
            )

    def goes_with(self, run: RunConfig) -> None:
        """Refuse learners of single steps: it has no value of a state."""
        if not isinstance(run.algo, ScheduleAlgo):
            raise ConfigError(
                "agent=priority is learned on whole schedules: choose algo=evolution or "
                "algo=schedule_gradient for it, or another agent for this algo, as agent=column2d."
            )

    def build(self, encoding: Any, tables: Any, action_space: Any) -> Network:
        """The network."""
        self.check(encoding, action_space)
        network: Network = learners.PriorityNetwork(self.hidden)
        return network


@dataclass(frozen=True)
class ScheduleAlgo:
    """What both learners share. One environment step is one block placed by the decoder."""

    num_envs: Annotated[int, at_least(1)] = 8
    """Environments of the evaluation; learning decodes schedules."""
    n_steps: Annotated[int, at_least(1)] = 1
    batch_size: Annotated[int, at_least(1)] = 8
    total_steps: Annotated[int, at_least(1)] = 2_000_000
    threads: Annotated[int, at_least(1)] = 2
    mines_per_update: Annotated[int, at_least(1)] = 4
    """Mines that one update looks at, drawn anew each time."""

    def goes_with(self, run: RunConfig) -> None:
        """Refuse other environments than whole schedules have, and other agents."""
        env: Any = run.env
        if getattr(env, "kind", None) is not Kind.cpit or env.actions is not Actions.column:
            raise ConfigError("Whole schedules are learned with env=mine_cpit env.actions=column.")
        if not isinstance(run.agent, PriorityAgent):
            raise ConfigError("Whole schedules are learned by agent=priority; choose it.")

    def layouts(self, run: RunConfig) -> list[MineLayout]:
        """The pits that a run learns on."""
        self.goes_with(run)
        env: Any = run.env
        mines = env.mines()
        return [mines.layouts[k] for k in mines.chosen("train")]

    def build_policy(self, run: RunConfig, vec_env: VectorEnv) -> FrugalPolicy:
        """The run's policy without a learner around it."""
        policy: FrugalPolicy = learners.build_policy(self, run, vec_env)
        return policy

    def shared(self, ranks: Ranks) -> Self:
        """As it is: ranks draw the same candidates, and each decodes its own of them."""
        return self

    def search_floats(self, weights: int) -> int:
        """64-bit numbers that the search holds for so many weights."""
        return 0

    def learner_parts(self, run: RunConfig) -> list[Part]:
        """The learner's bytes by arithmetic; `_ScheduleLearner.parts` are the same."""
        self.goes_with(run)
        env: Any = run.env
        sizes = env.sizes()
        pits = sizes.blocks[: sizes.training]
        blocks, arcs = sum(pits), sum(sizes.arcs[: sizes.training])
        weights = network_size(getattr(run.agent, "hidden", 0))
        search = 8 * self.search_floats(weights) or 12 * weights
        decoding = self.threads * 24 * max(pits)
        return [
            Part("parameters", f"{weights} weights, float32", 4 * weights),
            Part("search", f"state for {weights} weights", search),
            Part("features", f"{blocks} blocks x {len(VIEW)} float32", 4 * blocks * len(VIEW)),
            Part("schedule graphs", f"{arcs} arcs, int32, both ways", 8 * arcs),
            Part(
                "decoding",
                f"{self.threads} threads, a schedule each",
                decoding,
                phases=frozenset({Phase.rollout, Phase.update}),
            ),
        ]


@dataclass(frozen=True)
class EvolutionAlgo(ScheduleAlgo):
    """Covariance matrix adaptation of the network's weights."""

    population: Annotated[int, at_least(2)] = 24
    sigma: Annotated[float, above(0)] = 0.3

    def search_floats(self, weights: int) -> int:
        """Mean, two paths, and the covariance with its root and its inverse root."""
        return 3 * weights + 3 * weights**2

    def build(self, run: RunConfig, vec_env: VectorEnv) -> Learner:
        """The learner for these environments."""
        learner: Learner = learners.EvolutionLearner(self, run, vec_env)
        return learner


@dataclass(frozen=True)
class ScheduleGradientAlgo(ScheduleAlgo):
    """REINFORCE on noisy scores with mirrored baselines."""

    pairs: Annotated[int, at_least(1)] = 12
    sigma: Annotated[float, above(0)] = 0.15
    learning_rate: Annotated[float, above(0)] = 0.01

    def build(self, run: RunConfig, vec_env: VectorEnv) -> Learner:
        """The learner for these environments."""
        learner: Learner = learners.GradientLearner(self, run, vec_env)
        return learner
