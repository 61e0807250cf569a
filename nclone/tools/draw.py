"""What a player does on evaluation levels: its routes over the levels, won and not won apart."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.observation.history import History
from nclone.files import file_stem
from nclone.render.export import contact_sheet, save_picture
from nclone.vec_env import NppVecEnv

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv


SHOWN, COLUMNS, SCALE = 6, 3, 0.5
"""Levels per picture, beside each other, and pixels per px."""


@dataclass(frozen=True)
class Route:
    """One episode: its level's place in the table, how it ended, and where the ninja was.

    places  [T, 2] float64 px, one per step
    """

    level: int
    won: bool
    places: np.ndarray


def routes_of(env: NppVecEnv, player: Any, seed: int = 0) -> list[Route]:
    """Episodes of all worlds until each level had its turn."""
    history = History(env.encoding, env.num_envs, env.game.config.episode_steps)
    rows, world = history.reset(env.reset(seed)), env.game.world
    tracks: list[list[np.ndarray]] = [[] for _ in range(env.num_envs)]
    routes: list[Route] = []
    while len({route.level for route in routes}) < len(env.level_names):
        level, places = world.level.copy(), world.position.copy()
        for track, place in zip(tracks, places, strict=True):
            track.append(place)
        step = env.step(player(rows))
        rows, _ = history.push(step.rows, step.done)
        if step.ended is not None:
            success = step.ended.stats["success"] > 0
            for n, won in zip(step.ended.index, success, strict=True):
                routes.append(Route(int(level[n]), bool(won), np.array(tracks[n])))
                tracks[n] = []
    return routes


def draw(run: RunConfig, vec_env: VectorEnv, player: Any, folder: Path) -> list[Path]:
    """Write `<group>_won.png` and `<group>_not_won.png`, some levels of each; their paths."""
    if not isinstance(vec_env, NppVecEnv):
        return []
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[tuple[str, str], list[Route]] = {}
    for route in routes_of(vec_env, player):
        group = vec_env.level_names[route.level]
        found.setdefault((group, "won" if route.won else "not_won"), []).append(route)
    written = []
    for (group, outcome), routes in found.items():
        levels = [vec_env.game.level_table.level[route.level] for route in routes[:SHOWN]]
        sheet = contact_sheet(levels, COLUMNS, SCALE, [route.places for route in routes[:SHOWN]])
        written.append(folder / f"{file_stem(group)}_{outcome}.png")
        save_picture(written[-1], sheet)
    return written
