"""The on-policy learner: collect with the present policy, learn from that, and begin anew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import torch

from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from frugal_rl.learn.on_policy_config import Engine, OnPolicyConfig
from frugal_rl.learn.optimizer import FlatAdam
from frugal_rl.learn.policy import Actor, FrugalPolicy
from frugal_rl.learn.schedules import value_at
from frugal_rl.learn.update import ALONE, Rollout, Update, update_threads
from frugal_rl.memory.choices import Precision
from frugal_rl.memory.part import Phase
from frugal_rl.observation.untraced import before_compiling

if TYPE_CHECKING:
    from frugal_rl.learn.collect import Collector
    from frugal_rl.learn.ranks import Ranks
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv

compiled = Late("frugal_rl.learn.compiled.start")
"""Its kernels take memory and time to load, which other runs keep."""


def build_policy(config: OnPolicyConfig, run: RunConfig, vec_env: VectorEnv) -> FrugalPolicy:
    """The run's policy on its device, without a learner around it."""
    encoding = vec_env.encoding
    policy = FrugalPolicy(
        encoding.policy_space(run.env.episode_steps),
        vec_env.action_space,
        lambda _: value_at(config.learning_rate, 0.0),
        agent=run.agent,
        encoding=encoding,
        tables=vec_env.tables,
        plugins=tuple(run.resolved.get("plugins") or ()),
        bf16=run.memory.precision is Precision.bf16,
        recompute=run.memory.gradient_checkpointing,
        adam_eps=config.adam_eps,
    )
    if config.compile:
        before_compiling()
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
        config.goes_with(run)
        self.config, self.vec_env, self.num_steps = config, vec_env, 0
        self.ranks = ALONE
        self.policy = build_policy(config, run, vec_env)
        at_once = min(run.memory.micro_batch or config.batch_size, config.batch_size)
        wanted, processes = run.hardware.threads, run.launch.processes
        self.threads = update_threads(wanted, self.policy, at_once, processes)
        self.actor: Actor = self.policy
        self.optimizer, self.update = self.engine(run)
        self.collector = self.collector_for(run)

    def engine(self, run: RunConfig) -> tuple[FlatAdam, Update]:
        """What steps and what learns; the compiled engine acts as well."""
        config, policy = self.config, self.policy
        if config.engine is Engine.exact:
            parameters, rate = policy.parameters(), value_at(config.learning_rate, 0.0)
            exact = FlatAdam(parameters, rate, config.adam_eps, config.fused_adam)
            return exact, Update(policy, exact, run.memory.micro_batch)
        adam, update, self.actor = compiled.start(config, run, policy, self.threads)
        return adam, update

    @abstractmethod
    def collector_for(self, run: RunConfig) -> Collector:
        """Where the experience comes from."""

    def iterate(self, phase: Any) -> dict[str, float]:
        """One collection on one torch thread, one update on all."""
        with phase(Phase.rollout):
            torch.set_num_threads(1)  # more threads beside busy simulators slow inference down
            rollout = self.collector.collect(self.actor)
        self.collector.agree(self.ranks)
        self.num_steps += self.collector.collected * self.ranks.size
        with phase(Phase.update):
            torch.set_num_threads(self.threads)
            metrics = self.learn(rollout)
        return self.ranks.mean_of({**metrics, **self.collector.metrics()})

    def join(self, ranks: Ranks) -> None:
        """Learn together with other processes, from the first one's parameters."""
        self.ranks = self.update.ranks = ranks
        ranks.copy_from_first(self.optimizer.flat.data)
        self.collector.agree(ranks)

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
            "policy": {name: t.clone() for name, t in self.policy.state_dict().items()},
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
