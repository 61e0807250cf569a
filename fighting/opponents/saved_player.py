"""A frozen policy as a player: it sees one seat's bytes and draws a set of buttons."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fighting.choices import Actions, Rival
from fighting.spec import Camera, View, observation_spec
from frugal_rl.errors import ConfigError
from frugal_rl.learn.collect import to_tensors
from frugal_rl.observation.encoder import Encoder
from frugal_rl.observation.tables import Tables
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.saved import load_policy, saved_run, told_in_a_line

if TYPE_CHECKING:
    from fighting.config import DuelConfig
    from fighting.opponents.scripts import Rngs
    from frugal_rl.learn.policy import FrugalPolicy


class SnapshotPlayer:
    """Plays with a policy from the memory of one seat; draws its actions.

    `field` is the observation that the policy plays from, its only one.
    """

    def __init__(self, policy: FrugalPolicy, field: str = "signals") -> None:
        self.policy, self.field = policy, field
        self.encoder = Encoder(policy.decoder.encoding, Tables(), 0)

    @property
    def digest(self) -> str:
        """A hash of the weights, by which a resumed tournament knows the player again."""
        found = hashlib.sha1(usedforsecurity=False)
        for name, value in sorted(self.policy.state_dict().items()):
            found.update(name.encode() + value.detach().cpu().numpy().tobytes())
        return found.hexdigest()

    @torch.no_grad()
    def __call__(self, seen: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
        """As a `Script`; random numbers come from each place's own source."""
        rows = self.encoder.encode({self.field: seen}, lasting=True)
        tensors = to_tensors(rows, self.policy.device)
        chances = self.policy.actor_output(tensors).softmax(-1).cumsum(-1).numpy(force=True)
        drawn = np.array([rng.random() for rng in rngs])[:, None]
        return np.minimum((chances < drawn).sum(axis=1), chances.shape[1] - 1)


def rival_player(config: DuelConfig) -> SnapshotPlayer:
    """The policy that `env.rival` names."""
    return saved_player(config.rival)


def saved_player(path: str) -> SnapshotPlayer:
    """The policy in a checkpoint or run folder, as a player that sees one seat's bytes."""
    duel, policy = memory_policy(path)
    if duel.actions is not Actions.combos:
        raise ConfigError(
            f"{path} holds a policy with env.actions={duel.actions.value}; in the "
            "other seat only env.actions=combos can play."
        )
    return SnapshotPlayer(policy)


def memory_policy(path: str) -> tuple[Any, FrugalPolicy]:
    """The configuration of Duel and the policy in a checkpoint that plays from memory."""
    content = load_checkpoint(path)
    with told_in_a_line(path):
        return _loaded(content, path)


def _loaded(content: Mapping[str, Any], path: str) -> tuple[Any, FrugalPolicy]:
    run = saved_run(content, compose_run(["env=fighting", "evaluation.num_envs=1"]), path)
    duel: Any = run.env  # whoever declares Duel's memory has Duel's other options too
    if duel.spec() != observation_spec(Camera(View.ram)):
        raise ConfigError(f"{path} holds a policy that does not play from Duel's memory.")
    alone = replace(duel, opponent=Rival.still, rival="")  # its own rival is not needed, nor there
    env = alone.make_vec(1, run.encoding(), run.memory, None, "eval")
    try:
        return duel, load_policy(content, run, env, path)
    finally:
        env.close()
