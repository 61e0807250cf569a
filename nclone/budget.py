"""Bytes of N++ environments, by name, from the arrays of one and of two worlds.

Every array of a game has a fixed part and a part per world, so two small games give the line on
which all larger ones lie, to the byte; the tables of levels do not depend on their number. What
observations hold of graphs and doors is told without a game.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from frugal_rl.memory.part import Confidence, Part
from frugal_rl.observation.content import Content, expected_distinct
from frugal_rl.observation.encoder import Encoder
from nclone.game import NppGame
from nclone.graph.features import MAX_EDGES, MAX_NODES
from nclone.graph.fields import graph_table
from nclone.graph.goals import MAX_DOORS
from nclone.graph.landmarks import find_landmarks
from nclone.graph.size import graph_edges, graph_size
from nclone.levels.played import LEVEL_BYTES, SEARCHER_BYTES

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from nclone.config import NppConfig
    from nclone.graph.landmarks import Landmarks

Item = TypeVar("Item")

Measured: TypeAlias = "tuple[dict[str, int], dict[str, int], Sequence[Landmarks]]"
MOST_MEASURED = 4
_MEASURED: dict[str, Measured] = {}
"""The last few answers of `_of_two_sizes`."""
SHARED = ("levels", "path distances")
SAMPLED_LEVELS = 48
"""Levels whose graphs are counted to tell the size of all."""
STEPS_PER_GRAPH = 128
"""An environment comes to another graph (a switch, a door, another level) about so often. At random
32 environments showed 38 to 51 of 640 graphs in 128 steps; who has learned shows more."""
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
    one, two, marks = _of_two_sizes(config, encoding)
    lines = [_graphs(marks, config, level_copies)] if marks else []
    if config.evolved:
        formula = (
            f"{config.evolved:,} levels x {LEVEL_BYTES:,} B beside their tables, and a searcher"
        )
        total = config.evolved * LEVEL_BYTES + SEARCHER_BYTES
        lines.append(Part("env evolved", formula, total, confidence=Confidence.calibrated))
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


def _of_two_sizes(config: NppConfig, encoding: Encoding) -> Measured:
    """Bytes by name of one world and of two, and the levels whose graphs there will be.

    A plan asks for training, for evaluation and for demonstrations: the games are made once.
    """
    key = repr((config, encoding.choice))
    if key not in _MEASURED:
        levels = config.open_levels("train")
        games = [NppGame(config, levels, n, threads=1) for n in (1, 2)]
        one, two = (_measured(game, encoding) for game in games)
        graphs = games[0].graphs
        while len(_MEASURED) >= MOST_MEASURED:
            _MEASURED.pop(next(iter(_MEASURED)))
        _MEASURED[key] = one, two, graphs.distances.levels if graphs else ()
    return _MEASURED[key]


def _graphs(marks: Sequence[Landmarks], config: NppConfig, copies: int) -> Part:
    """All graphs of the levels, from the size of some of them, and at most the table's bound.

    See `_graphs_of`.
    """
    some = _sampled(marks)
    each = sum(graph_size(m).row_bytes for m in some) / len(some)
    count = sum(map(_graphs_of, marks))
    total = min(int(each * count), int(config.graphs_mib * 2**20))
    formula = f"{count:,} graphs x {each:,.0f} B, at most {config.graphs_mib:g} MiB"
    if copies > 1:
        formula += f", x {copies} copies"
    return Part(
        "env graphs", formula, total * copies, shared=copies == 1, confidence=Confidence.calibrated
    )


def content(config: NppConfig, num_envs: int, steps: int) -> Content:
    """What rollouts show of the levels' graphs and locked doors, by a sample of the levels."""
    levels = config.open_levels("train")
    some = [find_landmarks(level) for level in _sampled(levels)]
    doors = [min(len(m.door_entities), MAX_DOORS) for m in some]
    fields = {"num_locked_doors": np.array(doors)[:, None]}
    if not config.obs.has_graph:
        return Content(fields=fields)
    sizes = [graph_size(m) for m in some]
    middle = int(np.argsort([size.edges for size in sizes])[len(some) // 2])
    kinds = sum(map(_graphs_of, some)) * len(levels) / len(some)
    seen = expected_distinct(kinds, num_envs * (1 + steps / STEPS_PER_GRAPH))
    as_large = sum(size.edges for size in sizes) / len(some) / max(1, sizes[middle].edges)
    return Content(_graph(some[middle]), seen * as_large, fields)


def _graph(marks: Landmarks) -> dict[str, np.ndarray]:
    """The fields of a level's graph, of the right lengths; all but its edges zero."""
    size = graph_size(marks)
    lengths = {MAX_NODES: size.nodes, MAX_EDGES: size.edges}
    found = {
        f.name: np.zeros((lengths[f.shape[0]], *f.shape[1:]), f.dtype)
        for f in graph_table().fields.values()
        if f.ragged
    }
    found |= {name: np.ones_like(found[name]) for name in ("graph_node_mask", "graph_edge_mask")}
    return found | {"graph_edge_index": graph_edges(marks)}


def _sampled(items: Sequence[Item]) -> list[Item]:
    """At most `SAMPLED_LEVELS` of them, at even distances."""
    chosen = np.unique(np.linspace(0, len(items) - 1, SAMPLED_LEVELS).astype(int))
    return [items[k] for k in chosen]


def _graphs_of(marks: Landmarks) -> int:
    """Two objectives, and one more set of open doors for each door that opens."""
    return 2 * (1 + len(marks.door_entities))


def _measured(game: NppGame, encoding: Encoding) -> dict[str, int]:
    for number in np.unique(game.levels.number):
        game.distances.reserve(int(number))
    goals = [len(marks.goals) for marks in game.marks]
    for _ in range(game.levels.more):  # as many as the level that has most
        game.distances.reserve(int(np.argmax(goals)), again=True)
    rows = Encoder(encoding, game.tables, game.num_worlds).nbytes
    return game.parts() | {"rows": rows}
