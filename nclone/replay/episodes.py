"""Replays and solutions as a Minari data set: each played from its level's start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from frugal_rl.errors import DataError
from frugal_rl.store.episodes import EpisodeWriter, play_out
from frugal_rl.vec_env.game_env import FIRST, GameEnv
from nclone.game import NppGame
from nclone.replay.dataset import Demonstration, per_step

if TYPE_CHECKING:
    from nclone.config import NppConfig


class DemonstrationEnv(GameEnv):
    """One world of the levels of some demonstrations; `demonstration` chooses the next one."""

    game: NppGame

    def __init__(self, config: NppConfig, demonstrations: Sequence[Demonstration]) -> None:
        levels = list({d.level.key: d.level for d in demonstrations}.values())
        still = replace(config, start_frames=0, curriculum=False)
        super().__init__(NppGame(still, levels, 1, threads=1), config.spec(), config.episode_steps)
        self.demonstration = demonstrations[0]

    def start(self) -> None:
        """Start an episode on the level of the demonstration."""
        level = self.game.level_table.id_of(self.demonstration.level)
        self.game.begin(FIRST, FIRST + level)


def write_demonstrations(
    config: NppConfig, demonstrations: Sequence[Demonstration], folder: Path
) -> str:
    """Play all demonstrations and write them; a line that says how much was written.

    Raises:
        ConfigError: Minari is not installed.
        DataError: there is none, inputs change inside a step, or the folder holds something.
    """
    if not demonstrations:
        raise DataError("There is no replay to collect from.")
    env = DemonstrationEnv(config, demonstrations)
    writer = EpisodeWriter(
        folder, "nclone/demonstrations-v0", env.observation_space, env.action_space
    )
    ended = 0
    for demonstration in demonstrations:
        env.demonstration = demonstration
        inputs = iter(per_step(demonstration, config.frame_skip))
        episode = play_out(env, lambda _, inputs=inputs: next(inputs, None), seed=0)
        writer.add(episode)
        ended += episode.terminated
    steps = int(writer.storage.total_steps)
    return f"Data set: {folder} ({writer.episodes} episodes, {ended} to their end, {steps:,} steps)"
