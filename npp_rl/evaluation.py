"""Scores per category on levels never trained on, with intervals, and what the scores mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.run.evaluate import Player, Score, play_episodes
from frugal_rl.vec_env.interface import VectorEnv
from nclone.levels.generators import CATEGORIES
from nclone.levels.pool import Split, load_pool

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from nclone.config import NppConfig


Players = Callable[[VectorEnv], Player]
"""Makes the player for environments whose tables it must read."""


@dataclass(frozen=True)
class CategoryScore:
    """One player's result in one category.

    `time_share` is the mean number of frames of won episodes over those of the stored solution.
    """

    category: str
    score: Score
    time_share: float


def score_categories(
    config: NppConfig,
    encoding: Encoding,
    player: Players,
    categories: Sequence[str] = tuple(CATEGORIES),
    episodes_per_level: int = 1,
    seed: int = 1_000_003,
) -> list[CategoryScore]:
    """Play every test level of each category the same number of times."""
    return [
        _score(config, encoding, player, category, episodes_per_level, seed)
        for category in categories
    ]


def _score(
    config: NppConfig,
    encoding: Encoding,
    player: Players,
    category: str,
    episodes_per_level: int,
    seed: int,
) -> CategoryScore:
    members = load_pool().of([category], Split.test).members
    here = replace(config, eval_levels=(category,))  # rows stay as wide as those that were trained
    env = here.make_vec(len(members), encoding, MemoryProfile(), None, "eval")
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            stats = play_episodes(
                env, player(env), len(members) * episodes_per_level, seed, config.episode_steps
            )
    finally:
        env.close()
    solved = stats["success"] > 0
    expert = np.array([m.inputs.frames for m in members], np.float64)
    shares = stats["frames"][solved] / expert[stats["level"][solved].astype(int)]
    return CategoryScore(category, Score.of(stats), float(shares.mean()) if solved.any() else 0.0)


def markdown_table(rows: dict[str, Sequence[CategoryScore]]) -> str:
    """Players by name as rows, categories as columns; success in percent with its interval."""
    categories = [s.category for s in next(iter(rows.values()))]
    lines = [
        "| player | " + " | ".join(categories) + " | mean |",
        "|---" * (len(categories) + 2) + "|",
    ]
    for name, scores in rows.items():
        cells = [
            f"{100 * s.score.means['success']:.0f} "
            f"({100 * s.score.success_low:.0f}-{100 * s.score.success_high:.0f})"
            for s in scores
        ]
        mean = 100 * float(np.mean([s.score.means["success"] for s in scores]))
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {mean:.0f} |")
    return "\n".join(lines)
