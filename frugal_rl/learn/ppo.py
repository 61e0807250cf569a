"""PPO: Stable-Baselines3's algorithm with our collection, our rollout and our update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch

from frugal_rl.errors import ConfigError
from frugal_rl.learn.collect import Collector
from frugal_rl.learn.episodic import EpisodeLearner
from frugal_rl.learn.optimizer import FlatAdam
from frugal_rl.learn.policy import FrugalPolicy
from frugal_rl.learn.rewards import RewardScale
from frugal_rl.learn.schedules import Constant, Linear, WarmUp, value_at
from frugal_rl.learn.update import Terms, Update, update_threads
from frugal_rl.memory.part import Phase
from frugal_rl.memory.profile import Buffers, Precision
from frugal_rl.observation.history import History
from frugal_rl.ranges import Range, above, at_least, between, check_ranges
from frugal_rl.run.config import RunConfig
from frugal_rl.store.rollout import RolloutBuffer
from frugal_rl.vec_env.episodes import EpisodesEnv
from frugal_rl.vec_env.interface import VectorEnv

Value = float | Constant | Linear | WarmUp
Count = Annotated[int, at_least(1)]
Factor = Annotated[float, between(0, 1)]
Positive = above(0)


@dataclass(frozen=True)
class PpoConfig:
    """Proximal policy optimisation; names and defaults as in Stable-Baselines3."""

    honours: ClassVar[frozenset[str]] = frozenset(
        {
            "shuffle",
            "rollout_location",
            "trajectories",
            "precision",
            "micro_batch",
            "gradient_checkpointing",
        }
    )
    """Switches of the memory profile that it reads."""
    num_envs: Count = 128
    n_steps: Count = 128
    """Steps of each environment per rollout."""
    batch_size: Count = 2048
    """Samples per minibatch."""
    n_epochs: Count = 4
    """Passes over each rollout."""
    total_steps: Count = 1_000_000
    """Environment steps of the whole run."""
    learning_rate: Annotated[Value, Positive] = 3e-4
    """A number, or a schedule: `Constant`, `Linear`, `WarmUp`."""
    gamma: Factor = 0.99
    gae_lambda: Factor = 0.95
    clip_range: Annotated[Value, Positive] = 0.2
    clip_range_vf: Annotated[Value | None, Positive] = None
    """Clips the change of values as well; None does not."""
    ent_coef: Annotated[float, Range()] = 0.0
    vf_coef: Annotated[float, at_least(0)] = 0.5
    max_grad_norm: Annotated[float, Positive] = 0.5
    normalize_advantage: bool = True
    target_kl: Annotated[float | None, Positive] = None
    """Ends an update whose divergence exceeds 1.5 times this."""
    adam_eps: Annotated[float, Positive] = 1e-5
    fused_adam: bool = False
    """Adam in one kernel; parameters differ in the last bits."""
    reward_normalisation: bool = False
    """Divide rewards by the running deviation of the discounted return."""
    batched_bootstrap: bool = True
    """Value truncated episodes together; one by one, as SB3 does, differs in the last bits."""
    compile: bool = False
    """Compile the network with torch.compile; pays off in long runs only."""

    def __post_init__(self) -> None:
        check_ranges(self, "algo")
        if self.normalize_advantage and self.num_envs * self.n_steps < 2:
            raise ConfigError(
                "One step of one environment has no deviation to normalise by; raise "
                "algo.n_steps or set algo.normalize_advantage=false."
            )

    def build(self, run: RunConfig, vec_env: VectorEnv) -> PpoLearner | EpisodeLearner:
        """The learner for these environments: step by step, or from whole trajectories."""
        if isinstance(vec_env, EpisodesEnv):
            return EpisodeLearner(self, run, vec_env)
        return PpoLearner(self, run, vec_env)

    def build_policy(self, run: RunConfig, vec_env: VectorEnv) -> FrugalPolicy:
        """The run's policy on its device, without a learner around it."""
        encoding = vec_env.encoding
        policy = FrugalPolicy(
            encoding.policy_space(run.env.episode_steps),
            vec_env.action_space,
            lambda _: value_at(self.learning_rate, 0.0),
            agent=run.agent,
            encoding=encoding,
            tables=vec_env.tables,
            plugins=tuple(run.resolved.get("plugins") or ()),
            bf16=run.memory.precision is Precision.bf16,
            recompute=run.memory.gradient_checkpointing,
            adam_eps=self.adam_eps,
        )
        if self.compile:
            policy.network.compile()
        return policy.to(choose_device(run.hardware.device))

    def terms(self, done: float) -> Terms:
        """The loss's numbers when a share `done` of the run is over."""
        clip_vf = self.clip_range_vf
        return Terms(
            value_at(self.clip_range, done),
            None if clip_vf is None else value_at(clip_vf, done),
            self.ent_coef,
            self.vf_coef,
            self.normalize_advantage,
            self.max_grad_norm,
            self.target_kl,
        )


def choose_device(name: str) -> torch.device:
    """`auto` takes a CUDA device if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError("hardware.device=cuda, but torch finds no CUDA device; use cpu or auto.")
    return torch.device(name)


class PpoLearner:
    """Collects a rollout, learns from it; holds policy, rollout, optimiser and histories."""

    def __init__(self, config: PpoConfig, run: RunConfig, vec_env: VectorEnv) -> None:
        self.config, self.vec_env, self.num_steps = config, vec_env, 0
        self.policy = config.build_policy(run, vec_env)
        at_once = min(run.memory.micro_batch or config.batch_size, config.batch_size)
        self.threads = update_threads(run.hardware.threads, self.policy, at_once)
        self.optimizer = FlatAdam(
            self.policy.parameters(),
            value_at(config.learning_rate, 0.0),
            config.adam_eps,
            config.fused_adam,
        )
        encoding, memory, steps = vec_env.encoding, run.memory, run.env.episode_steps
        self.rollout = RolloutBuffer(
            config.n_steps,
            self.policy.observation_space,
            vec_env.action_space,
            device=self.policy.device,
            gae_lambda=config.gae_lambda,
            gamma=config.gamma,
            n_envs=vec_env.num_envs,
            encoding=encoding,
            episode_steps=steps,
            location=memory.rollout_location,
            shuffle=memory.shuffle,
            reuse=memory.buffers is Buffers.reused,
            folder=run.run_dir,
        )
        scale = RewardScale(vec_env.num_envs, config.gamma) if config.reward_normalisation else None
        history = History(encoding, vec_env.num_envs, steps)
        self.collector = Collector(vec_env, history, config.gamma, scale, config.batched_bootstrap)
        self.update = Update(self.policy, self.optimizer, memory.micro_batch)
        self.collector.reset(run.seed)

    def iterate(self, phase: Any) -> dict[str, float]:
        """One rollout on one torch thread, one update on all."""
        with phase(Phase.rollout):
            torch.set_num_threads(1)  # more threads beside busy simulators slow inference down
            self.collector.fill(self.rollout, self.policy)
        self.num_steps += self.config.n_steps * self.vec_env.num_envs
        with phase(Phase.update):
            torch.set_num_threads(self.threads)
            metrics = self.learn()
        return {**metrics, **self.collector.tally.read()}

    def learn(self) -> dict[str, float]:
        """All epochs over the rollout that was collected last."""
        config = self.config
        done = min(1.0, self.num_steps / config.total_steps)
        rate = value_at(config.learning_rate, done)
        self.optimizer.set_learning_rate(rate)
        metrics = self.update.run(
            self.rollout, config.batch_size, config.n_epochs, config.terms(done)
        )
        return {**metrics, "train/learning_rate": rate}

    def parts(self) -> dict[str, int]:
        """Bytes held, by name."""
        return {
            **self.rollout.parts(),
            **self.optimizer.parts(),
            "history": self.collector.history.nbytes,
            "tables_on_device": self.policy.decoder.nbytes,
        }

    def state(self) -> dict[str, Any]:
        """Weights, optimiser, environments, histories, scale and step count."""
        return {
            "num_steps": self.num_steps,
            "policy": dict(self.policy.state_dict()),
            "optimizer": self.optimizer.state(),
            "collector": self.collector.state(),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state()`."""
        self.num_steps = int(state["num_steps"])
        self.policy.load_state_dict(state["policy"])
        self.optimizer.load(state["optimizer"])
        self.collector.load(state["collector"])
