"""Episodes of a trained policy as a Minari data set: what `record dataset=... checkpoint=...` does.

Imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from frugal_rl.doing import doing
from frugal_rl.observation.encoder import Encoder
from frugal_rl.observation.history import History
from frugal_rl.run.evaluate import PolicyPlayer
from frugal_rl.run.saved import Saved, open_saved
from frugal_rl.store.episodes import EpisodeWriter, play_out
from frugal_rl.vec_env.plain import SpecEnv

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig


def export_policy(path: str, folder: str | Path, episodes: int, asked: RunConfig) -> str:
    """Play a policy in training environments and write what it saw; a line that says how much.

    Each episode has a seed of its own, from `evaluation.seed` on. Actions are drawn where
    `evaluation.deterministic=false`.

    Raises:
        CheckpointError: missing, damaged, or of another configuration.
        ConfigError: Minari is not installed.
        DataError: the folder holds something already.
    """
    with open_saved(path, asked, single=True) as saved:
        run = saved.run
        env: Any = run.env.make(run.evaluation.seed)
        writer = EpisodeWriter(
            folder, f"{run.env.name}/policy-v0", env.observation_space, env.action_space
        )
        earned: list[float] = []
        torch.manual_seed(run.evaluation.seed)
        with doing("playing", episodes, "episodes") as work:
            for number in range(episodes):
                seed = run.evaluation.seed + number
                episode = play_out(env, chooser(saved, env), seed=seed)
                writer.add(episode)
                earned.append(sum(episode.rewards))
                work.done = number + 1
        env.close()
    steps = int(writer.storage.total_steps)
    return (
        f"Data set: {folder} ({writer.episodes} episodes, {steps:,} steps, "
        f"mean return {np.mean(earned):.3g})"
    )


def chooser(saved: Saved, env: Any) -> Callable[[Any], Any]:
    """What the policy does in one episode of an environment, by what it observes."""
    encoding = saved.vec_env.encoding
    tables = env.tables if isinstance(env, SpecEnv) else saved.vec_env.tables
    encoder = Encoder(encoding, tables, 1)
    history = History(encoding, 1, saved.run.env.episode_steps)
    player = PolicyPlayer(saved.policy, saved.run.evaluation.deterministic, tables)
    begins = np.array([True])

    def choose(seen: Mapping[str, np.ndarray]) -> Any:
        raw = env.raw() if isinstance(env, SpecEnv) else seen
        rows, _ = history.push(
            encoder.encode({n: np.asarray(v)[None] for n, v in raw.items()}), begins
        )
        begins[0] = False
        return player(rows)[0]

    return choose
