"""Bytes of N++ environments, by name, from the arrays of one and of two worlds.

Every array of a game has a fixed part and a part per world, so two small games give the line on
which all larger ones lie, to the byte; the tables of levels do not depend on their number.
"""

from __future__ import annotations

import numpy as np

from frugal_rl.memory.part import Part
from frugal_rl.observation.edge import Edge
from frugal_rl.observation.encoding import Encoding
from nclone.config import NppConfig
from nclone.game import Game

SHARED = ("levels", "path distances")
MEANINGS = {
    "worlds": "ninja, entity grid and entities of each world",
    "levels": "segments, edges and templates of each level",
    "path distances": "one 8.8 kB table per level and goal",
    "raw rows": "what the observation kernel writes",
    "rewards": "potentials, visited cells and component sums",
    "rows": "rows in stored form",
}


def parts(config: NppConfig, num_envs: int, level_copies: int, encoding: Encoding) -> list[Part]:
    """The plan's lines for `num_envs` environments whose level data exists `level_copies` times."""
    levels = config.open_levels("train")
    one, two = (_measured(Game(config, levels, n, threads=1), encoding) for n in (1, 2))
    lines = []
    for name, first in one.items():
        if name in SHARED:
            total, formula = first * level_copies, f"{first:,} B x {level_copies} copies"
        else:
            each = two[name] - first
            total = first + each * (num_envs - 1)
            formula = f"{each:,} B x {num_envs} worlds"
        shared = name in SHARED and level_copies == 1
        lines.append(Part(f"env {name}", f"{formula}: {MEANINGS[name]}", total, shared=shared))
    return lines


def _measured(game: Game, encoding: Encoding) -> dict[str, int]:
    for number in np.unique(game.level_number):
        game.distances.release(game.distances.acquire(int(number), 0))
    rows = Edge(encoding, game.tables, game.num_worlds).nbytes
    return game.parts() | {"rows": rows}
