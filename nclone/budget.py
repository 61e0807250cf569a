"""Bytes of N++ environments, by name, from the arrays of one and of two worlds.

Every array of a game has a fixed part and a part per world, so two small games give the line on
which all larger ones lie, to the byte; the tables of levels do not depend on their number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.memory.part import Confidence, Part
from frugal_rl.observation.encoder import Encoder
from nclone.game import NppGame
from nclone.graph.size import graph_size

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from nclone.config import NppConfig
    from nclone.graph.interned import InternedGraphs


SHARED = ("levels", "path distances")
SAMPLED_LEVELS = 48
"""Levels whose graphs are counted to tell the size of all."""
MEANINGS = {
    "worlds": "ninja, entity grid and entities of each world",
    "levels": "segments, edges and templates of each level",
    "path distances": "one 8.8 kB table per level and goal",
    "raw rows": "what the observation kernel writes",
    "copies of worlds": "two for each action, which are simulated ahead",
    "rewards": "potentials, visited cells and component sums",
    "rows": "rows in stored form",
}


def parts(config: NppConfig, num_envs: int, level_copies: int, encoding: Encoding) -> list[Part]:
    """The plan's lines for `num_envs` environments whose level data exists `level_copies` times."""
    levels = config.open_levels("train")
    games = [NppGame(config, levels, n, threads=1) for n in (1, 2)]
    one, two = (_measured(game, encoding) for game in games)
    graphs = games[0].graphs
    lines = [] if graphs is None else [_graphs(graphs, config, level_copies)]
    for name, first in one.items():
        if name == "graphs":
            continue
        if name in SHARED:
            total, formula = first * level_copies, f"{first:,} B x {level_copies} copies"
        else:
            each = two[name] - first
            total = first + each * (num_envs - 1)
            formula = f"{each:,} B x {num_envs} worlds"
        shared = name in SHARED and level_copies == 1
        lines.append(Part(f"env {name}", f"{formula}: {MEANINGS[name]}", total, shared=shared))
    return lines


def _graphs(graphs: InternedGraphs, config: NppConfig, copies: int) -> Part:
    """All graphs of the levels, from the size of some of them, and at most the table's bound.

    Each level has two objectives, and one more set of open doors for each door that opens.
    """
    marks = graphs.distances.levels
    chosen = np.unique(np.linspace(0, len(marks) - 1, SAMPLED_LEVELS).astype(int))
    each = sum(graph_size(marks[k]).row_bytes for k in chosen) / len(chosen)
    count = sum(2 * (1 + len(m.door_entities)) for m in marks)
    total = min(int(each * count), int(config.graphs_mib * 2**20))
    formula = f"{count:,} graphs x {each:,.0f} B, at most {config.graphs_mib:g} MiB"
    if copies > 1:
        formula += f", x {copies} copies"
    return Part(
        "env graphs", formula, total * copies, shared=copies == 1, confidence=Confidence.calibrated
    )


def _measured(game: NppGame, encoding: Encoding) -> dict[str, int]:
    for number in np.unique(game.level_number):
        game.distances.reserve(int(number))
    rows = Encoder(encoding, game.tables, game.num_worlds).nbytes
    return game.parts() | {"rows": rows}
