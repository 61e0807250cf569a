"""A frozen policy that plays any cartridge from its profile's features."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fighting.choices import Rival
from fighting.opponents.snapshot import SnapshotPlayer
from fighting.spec import View
from frugal_rl.errors import ConfigError
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.saved import load_policy, saved_run, told_in_a_line

if TYPE_CHECKING:
    from fighting.cartridge.config import GameBoyConfig


def saved_player(path: str, config: GameBoyConfig) -> SnapshotPlayer:
    """The policy in a checkpoint or run folder that plays this cartridge from its features.

    Raises:
        ConfigError: it sees something else, or has other actions.
    """
    content = load_checkpoint(path)
    with told_in_a_line(path):
        run = saved_run(content, compose_run(["env=fighting_game_boy"]), path)
        saved: Any = run.env
        here = config.game.source.name
        sees = replace(config, obs=View.ram).spec()
        if not isinstance(saved, type(config)) or saved.spec() != sees:
            raise ConfigError(
                f"{path} holds a policy that does not play from the features of {here} "
                "(env.obs=ram)."
            )
        if saved.action_space() != config.action_space():
            raise ConfigError(
                f"{path} holds a policy with other actions than {here} with "
                f"env.actions={config.actions.value}."
            )
        # Its image and its own rival need not be at hand: the game here is the same.
        alone = replace(config, obs=View.ram, opponent=Rival.cpu, rival="")
        env = alone.make_vec(1, run.encoding(), run.memory, None, "eval")
        try:
            return SnapshotPlayer(load_policy(content, run, env, path), "features")
        finally:
            env.close()
