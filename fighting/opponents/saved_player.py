"""Policies in checkpoints as players of Duel: they see one seat's bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fighting.choices import Actions, Rival
from fighting.opponents.snapshot import SnapshotPlayer
from fighting.spec import Camera, View, observation_spec
from frugal_rl.errors import ConfigError
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.saved import load_policy, saved_run, told_in_a_line

if TYPE_CHECKING:
    from fighting.config import DuelConfig
    from frugal_rl.learn.policy import FrugalPolicy


def saved_player(path: str, config: DuelConfig | None = None) -> SnapshotPlayer:
    """The policy in a checkpoint or run folder, as a player that sees one seat's bytes.

    Whatever the options of the Duel at hand (`config`) are, it acts by its own.
    """
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
