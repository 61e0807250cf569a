"""PPO that begins from a clone, and a teacher for it, as values. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.memory.part import Part, Phase, human
from frugal_rl.ranges import SEED, Range, above, at_least, check_ranges
from nclone.config import NppConfig
from nclone.levels.inputs import HOLD_FRAMES
from npp_rl.teaching.solutions import solutions

if TYPE_CHECKING:
    from frugal_rl.learn.learner import Learner
    from frugal_rl.learn.on_policy_config import Terms
    from frugal_rl.learn.ranks import Ranks
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv

cloned_ppo = Late("npp_rl.teaching.cloned_ppo")
dagger_ppo = Late("npp_rl.teaching.dagger_ppo")


@dataclass(frozen=True)
class Cloning:
    """How long and how fast to imitate."""

    epochs: Annotated[int, at_least(0)] = 10
    """0 leaves cloning out."""
    batch_size: Annotated[int, at_least(1)] = 512
    learning_rate: Annotated[float, above(0)] = 1e-3
    weight_decay: Annotated[float, at_least(0)] = 1e-4
    value_coef: Annotated[float, at_least(0)] = 0.1
    """Weight of the value's error; returns are divided by their deviation."""
    max_grad_norm: Annotated[float, above(0)] = 1.0
    validation: Annotated[float, Range(0, 1, open_high=True)] = 0.1
    """Share of levels that are kept out to judge by."""
    patience: Annotated[int, at_least(1)] = 5
    """Epochs without a better validation loss before stopping; the best weights are kept."""
    seed: Annotated[int, SEED] = 0

    def __post_init__(self) -> None:
        check_ranges(self, "algo.cloning")


@dataclass(frozen=True)
class ClonedPpo(PpoConfig):
    """PPO after behaviour cloning; `total_steps=0` iterations of PPO leave the clone alone."""

    cloning: Cloning = field(default_factory=Cloning)
    critic_iterations: int = 4
    """Rollouts after cloning in which only the value learns, so that it fits the clone."""

    def goes_with(self, run: RunConfig) -> None:
        """Refuse environments without stored solutions."""
        super().goes_with(run)
        if not isinstance(run.env, NppConfig):
            raise ConfigError("algo=cloned_ppo needs stored solutions; choose env=nclone.")

    def build(self, run: RunConfig, vec_env: VectorEnv) -> Learner:
        """The learner for these environments, its policy cloned already."""
        learner: Learner = cloned_ppo.ClonedPpoLearner(self, run, vec_env)
        return learner

    def shared(self, ranks: Ranks) -> Self:
        """One rank's part; steps count for all ranks, so that the policy rests as long as alone."""
        own = super().shared(ranks)
        return replace(own, critic_iterations=self.critic_iterations * ranks.size)

    def shown(self, env: NppConfig) -> list[np.ndarray]:
        """The winning actions that are imitated, for each training level."""
        return solutions(env)

    def tiny(self) -> ClonedPpo:
        """Without cloning, which `parts` counts."""
        return replace(self, cloning=replace(self.cloning, epochs=0))

    def parts(self, run: RunConfig) -> list[Part]:
        """What the demonstrations hold before the first rollout."""
        if not self.cloning.epochs or not isinstance(run.env, NppConfig):
            return []
        lengths, encoding = [len(actions) for actions in self.shown(run.env)], run.encoding()
        blocks = np.array_split(np.array(lengths, np.int64), run.launch.size)  # each rank's levels
        steps, width = max(int(block.sum()) for block in blocks), encoding.row_bytes
        worlds = run.env.parts(len(blocks[0]), encoding, run.memory, None)
        simulators = sum(part.ram_bytes for part in worlds)
        formula = (
            f"{steps:,} steps x {width} B, as recorded and in order of levels, and "
            f"{human(simulators)} of simulators"
        )
        size = 2 * steps * width + simulators
        return [Part("demonstrations", formula, size, phases=frozenset({Phase.rollout}))]

    def rests(self, done: float) -> bool:
        """Whether only the value learns when a share `done` of the run is over."""
        collected = self.critic_iterations * self.num_envs * self.n_steps
        return self.cloning.epochs > 0 and done * self.total_steps < collected + 0.5

    def terms(self, done: float) -> Terms:
        """PPO's numbers; no entropy bonus while the policy rests, it would forget the clone."""
        terms = super().terms(done)
        return replace(terms, ent_coef=0.0) if self.rests(done) else terms


@dataclass(frozen=True)
class Teacher:
    """How often the searcher shows the learner how to win from where it got to."""

    rounds: Annotated[int, at_least(0)] = 3
    """Each plays the policy, searches from states of lost episodes, and clones; 0 leaves it out."""
    levels: Annotated[int, at_least(1)] = 512
    """Training levels, drawn anew, that a round plays once each."""
    budget_frames: Annotated[int, at_least(1)] = 40_000
    """Frames simulated per state before the search gives up."""
    epochs: Annotated[int, at_least(1)] = 2
    """Passes of cloning after each round, over stored solutions and lessons alike."""
    most_samples: Annotated[int, at_least(1)] = 200_000
    """Steps of lessons that are kept; the oldest go first."""
    seed: Annotated[int, SEED] = 0

    def __post_init__(self) -> None:
        check_ranges(self, "algo.teacher")


@dataclass(frozen=True)
class DaggerPpo(ClonedPpo):
    """Cloning, then lessons of the searcher from states that the policy reached, then PPO."""

    teacher: Teacher = field(default_factory=Teacher)

    def build(self, run: RunConfig, vec_env: VectorEnv) -> Learner:
        """The learner for these environments, cloned and taught already."""
        self._check(run)
        learner: Learner = dagger_ppo.DaggerPpoLearner(self, run, vec_env)
        return learner

    def _check(self, run: RunConfig) -> None:
        if not isinstance(run.env, NppConfig):
            raise ConfigError("algo=dagger_ppo needs the searcher; choose env=nclone.")
        if not self.teacher.rounds:
            return
        if run.env.obs.has_graph:
            raise ConfigError(
                f"algo=dagger_ppo joins the rows of several recordings, and env.obs="
                f"{run.env.obs.value} numbers graphs anew in each; choose agent=attention_fast "
                "(env.obs=routes), or algo.teacher.rounds=0."
            )
        if HOLD_FRAMES % run.env.frame_skip:
            raise ConfigError(
                f"The searcher's inputs change every {HOLD_FRAMES} frames, and env.frame_skip="
                f"{run.env.frame_skip} does not divide them; use 1, 2 or 4."
            )

    def parts(self, run: RunConfig) -> list[Part]:
        """As a clone's, and what the lessons hold."""
        found = super().parts(run)
        if not found or not self.teacher.rounds or not isinstance(run.env, NppConfig):
            return found
        encoding, teacher = run.encoding(), self.teacher
        levels = min(teacher.levels, len(run.env.open_levels("train")))
        worlds = run.env.parts(levels, encoding, run.memory, None)
        simulators = sum(part.ram_bytes for part in worlds)
        size = 2 * teacher.most_samples * encoding.row_bytes + simulators
        formula = (
            f"up to {teacher.most_samples:,} steps x {encoding.row_bytes} B, twice while they are "
            f"joined, and {human(simulators)} of simulators"
        )
        return [*found, Part("lessons", formula, size, phases=frozenset({Phase.rollout}))]
