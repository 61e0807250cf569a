"""What algorithms have that learn from a replay, as values. Imports no torch."""

from __future__ import annotations

import importlib
import sys
from abc import ABC
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import Enum
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from gymnasium import spaces

from frugal_rl import remembered
from frugal_rl.errors import ConfigError
from frugal_rl.invocation import installing
from frugal_rl.late import Late
from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.hindsight import check_goals
from frugal_rl.learn.on_policy_config import Value
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.memory.machine import has_accelerator
from frugal_rl.memory.replay import ReplayNetworks, replay_parts, replay_size
from frugal_rl.memory.replay_data import MOST, expected
from frugal_rl.ranges import above, at_least, between, check_ranges
from frugal_rl.store.places import replay_location

if TYPE_CHECKING:
    from frugal_rl.learn.off_policy import OffPolicyLearner
    from frugal_rl.memory.part import Part
    from frugal_rl.run.config import RunConfig
    from frugal_rl.store.replay import DictReplayBuffer
    from frugal_rl.vec_env.interface import VectorEnv

off_policy = Late("frugal_rl.learn.off_policy")
replay = Late("frugal_rl.store.replay")
replay_file = Late("frugal_rl.memory.replay_file")
trace_replay = Late("frugal_rl.learn.trace_replay")
Count = Annotated[int, at_least(1)]
Factor = Annotated[float, between(0, 1)]


class Auto(Enum):
    """Decided by the plan."""

    auto = "auto"


class GoalStrategy(Enum):
    """Goals in hindsight, by SB3's names."""

    future = "future"
    final = "final"
    episode = "episode"


@dataclass(frozen=True)
class OffPolicyConfig(ABC):
    """What every algorithm that learns from a replay has; names as in Stable-Baselines3."""

    honours: ClassVar[frozenset[str]] = frozenset({"rollout_location"})
    """Switches of the memory profile that it reads."""
    num_envs: Count = 1
    n_steps: Count = 256
    """Steps of each environment between two lines of metrics."""
    batch_size: Count = 32
    """Transitions per minibatch."""
    total_steps: Count = 1_000_000
    """Environment steps of the whole run."""
    buffer_size: Annotated[int, at_least(1)] | Auto = 1_000_000
    """Transitions in the replay; `auto` takes the most that fit the budget, all steps at most."""
    learning_starts: Annotated[int, at_least(0)] = 1_000
    """Environment steps of random play before learning begins."""
    train_freq: Count = 4
    """Steps of all environments between two updates."""
    gradient_steps: Count = 1
    """Minibatches per update."""
    learning_rate: Annotated[Value, above(0)] = 3e-4
    gamma: Factor = 0.99
    return_steps: Count = 1
    """Steps whose rewards are summed up before a target's value (SB3's `n_steps`)."""
    tau: Factor = 0.005
    """Share of the networks that moves into their targets."""

    her: bool = False
    """Draw episodes with goals that they reached later (hindsight): environments with goals."""
    her_goals: Count = 4
    """Transitions with other goals for each one as it was (SB3's `n_sampled_goal`)."""
    her_strategy: GoalStrategy = GoalStrategy.future
    """Which goals: reached later in the episode, at its end, or at any step of it."""

    libraries_bytes: ClassVar[int] = 70 << 20
    """torch's compiler, which torch's own optimisers load."""
    room: ClassVar[str] = "stable_baselines3"
    kind: ClassVar[str]
    discrete: ClassVar[bool] = False
    joins_observations: ClassVar[bool] = False
    """Whether its update concatenates observations, which no dictionary stands."""
    networks: ClassVar[tuple[int, int]] = (1, 1)
    """Networks behind the features that learn, and targets beside them."""
    embeddings: ClassVar[tuple[int, int]] = (1, 1)
    """Of what is observed, in front of them: both critics share one."""
    quantiles: ClassVar[int] = 1
    """Numbers that stand for a value."""

    def __post_init__(self) -> None:
        check_ranges(self, "algo")
        if self.her and self.return_steps > 1:
            raise ConfigError(
                "algo.her=true draws other goals than those that were pursued, whose rewards "
                f"algo.return_steps={self.return_steps} would sum up. Leave one out."
            )

    def options(self) -> dict[str, Any]:
        """Arguments of the algorithm that are its own."""
        return {}

    def goes_with(self, run: RunConfig) -> None:
        """Refuse actions, agents and observations that it cannot learn with.

        Raises:
            ConfigError: naming what goes with them.
        """
        self.check(run.env.action_space())
        agent_of(run, self.kind)
        self._goes_where(run.memory.rollout_location, run.hardware.device)
        if self.her:
            size = self.buffer_size
            check_goals(run, size // self.num_envs if isinstance(size, int) else None)

    def _goes_where(self, location: RolloutLocation, device: str) -> None:
        """Refuse places that a replay cannot be drawn from, or where it would lie twice."""
        if replay_location(location) is not RolloutLocation.device:
            return
        if not has_accelerator(device):
            raise ConfigError(
                "memory.rollout_location=device would hold the replay twice in memory: there is no "
                "accelerator. Leave it out."
            )
        if self.her:
            raise ConfigError(
                "algo.her=true changes the goals of what it draws, in memory: "
                "memory.rollout_location=device would hold the replay twice. Leave one out."
            )

    def replay_class(self) -> Callable[..., DictReplayBuffer]:
        """What keeps the transitions."""
        if self.her:
            goals = {"n_sampled_goal": self.her_goals}
            strategy = self.her_strategy.value
            return partial(replay.HerReplayBuffer, goal_selection_strategy=strategy, **goals)
        kept: type[DictReplayBuffer] = replay.DictReplayBuffer
        return kept

    def explore(
        self, model: Any, best: np.ndarray, drawn: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Actions that are taken while learning, from the policy's own and random ones."""
        return best

    def algorithm(self) -> Any:
        """SB3's class."""
        try:
            return getattr(importlib.import_module(self.room), self.kind)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"{self.kind} comes with {self.room.replace('_', '-')}: {installing('contrib')}"
            ) from error

    def tiny(self) -> OffPolicyConfig:
        """The same with a replay of a few transitions, in which no episode need end."""
        few = replace(self, buffer_size=64, learning_starts=8, train_freq=1, gradient_steps=1)
        return replace(few, her=False)

    def learner_parts(self, run: RunConfig) -> list[Part]:
        """The learner's bytes by arithmetic."""
        if self.her:
            check_goals(run, self.size(run) // self.num_envs)
        return replay_parts(run, self.size(run), self.traced(run))

    def size(self, run: RunConfig) -> int:
        """Transitions in the replay."""
        if isinstance(self.buffer_size, int):
            return self.buffer_size
        return replay_size(run, self.total_steps, self.traced(run))

    def file_bytes(
        self, run: RunConfig, episode_steps: int | None, limit_steps: int | None
    ) -> tuple[int, int, str]:
        """The replay's segments beside the checkpoints, at most, and where the like was seen.

        The most is what they take where nothing repeats and every step ends an episode.

        Args:
            run: the run.
            episode_steps: the longest typical episode, where that is known.
            limit_steps: after how many steps one is cut off, if it is.
        """
        size, data = self.size(run), expected(run, episode_steps, limit_steps)
        found, most = (replay_file.file_bytes(run, size, d) for d in (data, MOST))
        return found, max(found, most), data.source

    def traced(self, run: RunConfig) -> ReplayNetworks:
        """The networks by arithmetic on their operations."""
        self.check(run.env.action_space())
        agent = agent_of(run, self.kind)
        name = f"replay_{self._fingerprint(run, agent)}"
        kept = remembered.read(name)
        if kept:
            return ReplayNetworks(**kept)
        found: ReplayNetworks = trace_replay.replay_networks(run, self, agent)
        remembered.write(name, asdict(found))
        return found

    def _fingerprint(self, run: RunConfig, agent: MlpAgent) -> str:
        """What decides the networks and what an update of them holds."""
        shown = [(f.name, f.shape, f.dtype) for f in run.env.spec().fields]
        shown += [(r.name, r.shape, r.window) for r in run.encoding().rows]
        sizes = (self.networks, self.embeddings, self.quantiles, self.batch_size)
        values = (shown, run.env.action_space(), agent, *sizes, run.memory.allocator)
        code = remembered.code_digest("frugal_rl.learn", "frugal_rl.observation")
        versions = (sys.version, metadata.version("torch"))
        return remembered.fingerprint(type(self), repr(values), code, *versions)

    def build(self, run: RunConfig, vec_env: VectorEnv) -> OffPolicyLearner:
        """The learner for these environments."""
        self.check(vec_env.action_space)
        if self.her:
            check_goals(run, self.size(run) // self.num_envs)
        learner: OffPolicyLearner = off_policy.OffPolicyLearner(self, run, vec_env)
        return learner

    def check(self, space: spaces.Space[Any]) -> None:
        """Refuse actions that the algorithm cannot choose among."""
        if isinstance(space, spaces.Discrete if self.discrete else spaces.Box):
            self.check_bounds(space)
            return
        kind = "one of a number" if self.discrete else "vectors of numbers"
        other = "sac, td3, tqc or crossq" if self.discrete else "dqn or qr_dqn"
        raise ConfigError(
            f"{self.kind} chooses actions that are {kind}; these are {space}. "
            f"Choose algo={other} where they fit, or algo=ppo."
        )

    def check_bounds(self, space: spaces.Space[Any]) -> None:
        """Refuse vectors without bounds, to which actions are scaled, or of whole numbers."""
        if not isinstance(space, spaces.Box):
            return
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            raise ConfigError(
                f"{self.kind} scales its actions to their bounds, and {space} has none: put a "
                "wrapper into env.wrappers that bounds them, or choose algo=ppo."
            )
        if not np.issubdtype(space.dtype, np.floating):
            raise ConfigError(
                f"{self.kind} chooses fractions, and {space} takes whole numbers: put a wrapper "
                "into env.wrappers that rounds them, or that makes them a MultiDiscrete for "
                "algo=ppo."
            )


def agent_of(run: RunConfig, kind: str) -> MlpAgent:
    """The run's agent, refused where it has no features for another's networks."""
    if isinstance(run.agent, MlpAgent):
        return run.agent
    raise ConfigError(
        f"{kind} puts its own networks behind the agent's features, which agent={run.agent.name} "
        "does not offer; choose agent=mlp, agent=cnn or agent=nature_cnn."
    )
