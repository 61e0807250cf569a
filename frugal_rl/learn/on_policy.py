"""The on-policy learner: collect with the present policy, learn from that, and begin anew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, ClassVar

import torch

from frugal_rl.errors import ConfigError
from frugal_rl.learn.collect import Collector
from frugal_rl.learn.optimizer import FlatAdam
from frugal_rl.learn.policy import Actor, FrugalPolicy
from frugal_rl.learn.ranks import Ranks
from frugal_rl.learn.schedules import Constant, Linear, WarmUp, value_at
from frugal_rl.learn.update import ALONE, Rollout, Terms, Update, update_threads
from frugal_rl.memory.part import Phase
from frugal_rl.memory.profile import Precision
from frugal_rl.ranges import above, at_least, between, check_ranges
from frugal_rl.run.config import RunConfig
from frugal_rl.vec_env.interface import VectorEnv


class Engine(Enum):
    """What computes the perceptron's updates and actions."""

    exact = "exact"
    """Torch, equal to Stable-Baselines3 to the bit."""
    compiled = "compiled"
    """Kernels of our own on the CPU, equal to the exact one up to rounding."""


Value = float | Constant | Linear | WarmUp
Count = Annotated[int, at_least(1)]
Factor = Annotated[float, between(0, 1)]
Positive = above(0)


@dataclass(frozen=True)
class OnPolicyConfig(ABC):
    """What every algorithm that learns from its own fresh experience has."""

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
    adam_eps: Annotated[float, Positive] = 1e-5
    fused_adam: bool = False
    """Adam in one kernel; parameters differ in the last bits."""
    reward_normalisation: bool = False
    """Divide rewards by the running deviation of the discounted return."""
    batched_bootstrap: bool = True
    """Value truncated episodes together; one by one, as SB3 does, differs in the last bits."""
    compile: bool = False
    """Compile the network with torch.compile; pays off in long runs only."""
    engine: Engine = Engine.exact
    """`compiled` runs perceptrons on the CPU in kernels, equal up to rounding."""

    def __post_init__(self) -> None:
        check_ranges(self, "algo")

    @abstractmethod
    def terms(self, done: float) -> Terms:
        """The loss's numbers when a share `done` of the run is over."""

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


def choose_device(name: str) -> torch.device:
    """`auto` takes a CUDA device if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError("hardware.device=cuda, but torch finds no CUDA device; use cpu or auto.")
    return torch.device(name)


class OnPolicyLearner(ABC):
    """Collects, learns from what was collected; holds policy, optimiser and collector."""

    def __init__(self, config: OnPolicyConfig, run: RunConfig, vec_env: VectorEnv) -> None:
        self.config, self.vec_env, self.num_steps = config, vec_env, 0
        self.ranks = ALONE
        self.policy = config.build_policy(run, vec_env)
        at_once = min(run.memory.micro_batch or config.batch_size, config.batch_size)
        self.threads = update_threads(run.hardware.threads, self.policy, at_once)
        self.actor: Actor = self.policy
        self.optimizer, self.update = self.engine(run)
        self.collector = self.collector_for(run)

    def engine(self, run: RunConfig) -> tuple[FlatAdam, Update]:
        """What steps and what learns; the compiled engine acts as well."""
        config, policy = self.config, self.policy
        parameters, rate = policy.parameters(), value_at(config.learning_rate, 0.0)
        if config.engine is Engine.exact:
            exact = FlatAdam(parameters, rate, config.adam_eps, config.fused_adam)
            return exact, Update(policy, exact, run.memory.micro_batch)
        # Its kernels take memory and time to load, which other runs keep.
        from frugal_rl.learn.compiled.acting import CompiledActor
        from frugal_rl.learn.compiled.engine import CompiledPerceptron
        from frugal_rl.learn.compiled.refusal import refuse_what_has_no_kernel
        from frugal_rl.learn.compiled.update import CompiledAdam, CompiledUpdate

        refuse_what_has_no_kernel(config, run, policy)
        adam = CompiledAdam(parameters, rate, config.adam_eps, fused=False)
        compiled = CompiledPerceptron(policy, adam, self.threads)
        self.actor = CompiledActor(compiled)
        return adam, CompiledUpdate(policy, adam, compiled)

    @abstractmethod
    def collector_for(self, run: RunConfig) -> Collector:
        """Where the experience comes from."""

    def iterate(self, phase: Any) -> dict[str, float]:
        """One collection on one torch thread, one update on all."""
        with phase(Phase.rollout):
            torch.set_num_threads(1)  # more threads beside busy simulators slow inference down
            rollout = self.collector.collect(self.actor)
        self.num_steps += self.collector.collected * self.ranks.size
        with phase(Phase.update):
            torch.set_num_threads(self.threads)
            metrics = self.learn(rollout)
        return self.ranks.mean_of({**metrics, **self.collector.metrics()})

    def join(self, ranks: Ranks) -> None:
        """Learn together with other processes, from the first one's parameters."""
        self.ranks = self.update.ranks = ranks
        ranks.copy_from_first(self.optimizer.flat.data)

    def learn(self, rollout: Rollout) -> dict[str, float]:
        """All epochs over what was collected last."""
        config = self.config
        done = min(1.0, self.num_steps / config.total_steps)
        rate = value_at(config.learning_rate, done)
        self.optimizer.set_learning_rate(rate)
        metrics = self.update.run(rollout, config.batch_size, config.n_epochs, config.terms(done))
        norm = self.optimizer.take_largest_norm()
        return {**metrics, "train/learning_rate": rate, "train/grad_norm": norm}

    def parts(self) -> dict[str, int]:
        """Bytes held, by name."""
        return {
            **self.collector.parts(),
            **self.optimizer.parts(),
            **self.update.parts(),
            "tables_on_device": self.policy.decoder.nbytes,
        }

    def state(self) -> dict[str, Any]:
        """Weights, optimiser, step count, and what the collector goes on with."""
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
        # Older checkpoints of whole trajectories keep the collector's one number beside the rest.
        collector = state.get("collector", state)
        if collector is not None:  # a run on another number of processes begins new episodes
            self.collector.load(collector)
