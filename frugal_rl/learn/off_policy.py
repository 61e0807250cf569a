"""Off-policy learners: stable-baselines3's own algorithms over our environments and our replay."""

from __future__ import annotations

import math
from copy import deepcopy
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.logger import Logger

from frugal_rl.errors import DataError
from frugal_rl.learn.filling import filling
from frugal_rl.learn.hindsight import reward_goals
from frugal_rl.learn.networks import LAYERS
from frugal_rl.learn.off_policy_config import OffPolicyConfig, agent_of
from frugal_rl.learn.on_policy import choose_device
from frugal_rl.learn.schedules import value_at
from frugal_rl.learn.stored_rows import (
    PackedDraws,
    RowsExtractor,
    Source,
    StoredRowsPolicy,
    mask_values,
    read_stored_rows,
)
from frugal_rl.learn.transitions import Rows, TransitionCollector
from frugal_rl.learn.value_size import largest_return, mean_value
from frugal_rl.memory.part import Phase
from frugal_rl.observation.decoder import Decoder, to_tensors
from frugal_rl.observation.fields import EPISODE
from frugal_rl.observation.history import History

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv


class OffPolicyLearner:
    """Plays, keeps what happened, and lets SB3's algorithm learn from it."""

    def __init__(self, config: OffPolicyConfig, run: RunConfig, vec_env: VectorEnv) -> None:
        self.config, self.vec_env, self.num_steps, self.rounds = config, vec_env, 0, 0
        encoding, episode = vec_env.encoding, run.env.episode_steps
        self.episode_steps = episode
        device = choose_device(run.hardware.device)
        plugins = tuple(run.resolved.get("plugins") or ())
        space = encoding.policy_space(episode)
        source = Source(Decoder(encoding, vec_env.tables, plugins), space)
        self.replay = config.replay_class()(
            config.size(run),
            space,
            vec_env.action_space,
            device=device,
            n_envs=vec_env.num_envs,
            frame_stack=stacks_of(encoding),
            n_steps=config.return_steps,
            gamma=config.gamma,
            location=run.memory.rollout_location,
            folder=run.run_dir,
        )
        if config.her:
            reward_goals(self.replay, run, vec_env)
        self.model = self._model(run, space, source, device)
        self.policy = StoredRowsPolicy(self.model.policy, source)
        history = History(encoding, vec_env.num_envs, episode)
        self.collector = TransitionCollector(vec_env, self.replay, history, source)
        self.collector.reset(run.seed)

    def _model(self, run: RunConfig, space: spaces.Dict, source: Source, device: Any) -> Any:
        """SB3's algorithm around its own networks and our replay, without an environment."""
        config, agent = self.config, agent_of(run, self.config.kind)
        embed = partial(agent.embedding, self.vec_env.encoding)
        model = config.algorithm()(
            "MlpPolicy",
            None,
            learning_rate=value_at(config.learning_rate, 0.0),
            batch_size=config.batch_size,
            gamma=config.gamma,
            policy_kwargs={
                "features_extractor_class": RowsExtractor,
                "features_extractor_kwargs": {"source": source, "embed": embed},
                "net_arch": list(agent.actor),
                "activation_fn": LAYERS[agent.activation],
            },
            device=device,
            _init_setup_model=False,
            **config.options(),
        )
        model.observation_space, model.action_space = space, self.vec_env.action_space
        model.env = SimpleNamespace(action_space=model.action_space)  # all that set-up asks of it
        model.n_envs, model.replay_buffer = self.vec_env.num_envs, self.replay
        if config.joins_observations:
            model.replay_buffer = PackedDraws(self.replay, source)
        model._setup_model()
        model.set_logger(Logger(None, []))
        read_stored_rows(model.policy)
        mask = self.vec_env.encoding.spec.action_mask
        if mask and config.discrete:
            names = ("q_net", "q_net_target", "quantile_net", "quantile_net_target")
            found = [n for n in (getattr(model.policy, name, None) for name in names) if n]
            mask_values(found, source, mask)
        return model

    def iterate(self, phase: Any) -> dict[str, float]:
        """Some rounds of steps, each followed by SB3's update."""
        config = self.config
        for _ in range(max(1, config.n_steps // config.train_freq)):
            with phase(Phase.rollout):
                for _ in range(config.train_freq):
                    self.step()
            if self.num_steps > config.learning_starts:
                with phase(Phase.update):
                    self.model.train(config.gradient_steps, config.batch_size)
        written = {k: float(v) for k, v in self.model.logger.name_to_value.items()}
        self.model.logger.name_to_value.clear()
        if written:
            written |= self.value_metrics(written.get("train/ent_coef", 0.0))
        return written | self.collector.metrics() | filling(self.replay, config.total_steps)

    def value_metrics(self, entropy_worth: float) -> dict[str, float]:
        """How large values are, and beside what rewards and entropy can add up to."""
        replay, space = self.replay, self.vec_env.action_space
        size = mean_value(self.policy.inner, to_tensors(self.collector.obs, self.policy.device))
        most = largest_return(replay.rewards, self.config.gamma, self.episode_steps)
        ratio = size / (most * (1 + entropy_worth * math.prod(space.shape or ())))
        return {"train/mean_value": size, "train/value_ratio": ratio}

    def step(self) -> None:
        """One step of all environments, and what SB3 does after each."""
        self.policy.set_training_mode(False)
        self.collector.step(self.choose)
        model, config = self.model, self.config
        self.num_steps += self.vec_env.num_envs
        model.num_timesteps = self.num_steps
        done = min(1.0, self.num_steps / config.total_steps)
        model._current_progress_remaining = 1.0 - done
        rate = value_at(config.learning_rate, done)
        model.lr_schedule = lambda _: rate
        model._on_step()

    @torch.no_grad()
    def choose(self, obs: Rows, drawn: np.ndarray) -> np.ndarray:
        """Random actions at first, then the policy's with the algorithm's exploration."""
        if self.num_steps < self.config.learning_starts:
            return drawn
        rows = to_tensors(obs, self.policy.device)
        best = self.policy.inner._predict(rows, deterministic=self.config.discrete)
        actions = best.numpy(force=True).reshape(drawn.shape)
        return self.config.explore(self.model, actions, drawn, self.collector.rng)

    def parts(self) -> dict[str, int]:
        """Bytes held, by name."""
        weights = sum(p.nbytes for p in self.policy.parameters())
        moments = sum(
            t.nbytes
            for optimizer in self._optimizers().values()
            for entry in optimizer.state.values()
            for t in entry.values()
            if isinstance(t, torch.Tensor)
        )
        learned = {"parameters": weights, "optimizer": moments}
        return self.replay.parts() | learned | {"history": self.collector.history.nbytes}

    def _optimizers(self) -> dict[str, Any]:
        names = [n for n in self.model._get_torch_save_params()[0] if n != "policy"]
        return {n: _at(self.model, n) for n in names if _at(self.model, n) is not None}

    def _variables(self) -> dict[str, torch.Tensor]:
        names = self.model._get_torch_save_params()[1]
        return {n: _at(self.model, n) for n in names if _at(self.model, n) is not None}

    def state(self) -> dict[str, Any]:
        """Networks, optimisers, counters, replay and environments."""
        counters = {n: getattr(self.model, n) for n in COUNTERS if hasattr(self.model, n)}
        return {
            "num_steps": self.num_steps,
            "policy": dict(self.policy.state_dict()),
            "optimizers": [{n: o.state_dict() for n, o in self._optimizers().items()}],
            "variables": {n: t.detach().clone() for n, t in self._variables().items()},
            "counters": counters,
            "collector": self.collector.state(),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state()`.

        Raises:
            DataError: its replay is one of another run.
        """
        self.num_steps = int(state["num_steps"])
        self.policy.load_state_dict(state["policy"])
        saved = state["optimizers"][0]
        if set(saved) != set(self._optimizers()):
            raise DataError(f"the optimisers that were saved are {sorted(saved)}.")
        for name, optimizer in self._optimizers().items():
            optimizer.load_state_dict(deepcopy(saved[name]))  # else both would step one
        for name, tensor in self._variables().items():
            tensor.data.copy_(state["variables"][name])
        for name, value in state["counters"].items():
            if name in COUNTERS:
                setattr(self.model, name, value)
        self.collector.load(state["collector"])


def stacks_of(encoding: Encoding) -> dict[str, int]:
    """Frames of each row: as many as its window shows, one where that is a whole episode."""
    return {r.name: 1 if r.window == EPISODE else r.window for r in encoding.rows}


COUNTERS = ("num_timesteps", "_n_updates", "_n_calls", "exploration_rate")
"""What SB3's algorithms count beside their tensors."""


def _at(thing: Any, path: str) -> Any:
    """An attribute by a dotted path."""
    for name in path.split("."):
        thing = getattr(thing, name, None)
    return thing
