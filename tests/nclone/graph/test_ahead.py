"""The path ahead against a slow walk over the hop table, on generated levels."""

import numpy as np
import pytest

from nclone.config import NppConfig
from nclone.game import NppGame
from nclone.graph.ahead import AHEAD, PATH_FIELD, PATH_VALUES
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH
from nclone.graph.lattice import UNREACHABLE, WIDTH
from nclone.graph.paths import path_distance
from nclone.spec import Observation

LEVELS = ("simple", "complex", "mine_heavy")


@pytest.fixture(scope="module")
def game():
    config = NppConfig(obs=Observation.routes, levels=LEVELS, start_frames=0)
    levels = config.open_levels("train")[::40]
    game = NppGame(config, levels, len(levels), order="in turn", threads=1)
    game.seed([np.random.default_rng(n) for n in range(len(levels))])
    game.begin(np.arange(len(levels)))
    return game


def slow_way(game, n):
    """Lattice nodes of a shortest way from world n's ninja, by looking at all four neighbours."""
    goal = EXIT_DOOR if game.switch_hit[n] else EXIT_SWITCH
    row = game.distances.hops[game.distances.goal_row[game.entry[n], goal]].astype(int)
    x, y = float(game.world.worlds["x"][n]), float(game.world.worlds["y"][n])
    places = np.flatnonzero(row != UNREACHABLE)
    away = (12.0 * (places % WIDTH) + 6 - x) ** 2 + (12.0 * (places // WIDTH) + 6 - y) ** 2
    if not len(places) or away.min() > 100:
        return None
    way = [int(places[away == away.min()][-1])]  # between two nodes: the lower, the right one
    while row[way[-1]] > 0:
        beside = [way[-1] + s for s in (1, -1, WIDTH, -WIDTH)]
        way.append(next(b for b in beside if row[b] == row[way[-1]] - 1))
    return way, x, y


def test_the_path_ahead_is_the_shortest_way_from_the_ninja(game):
    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(30):
        told = game.advance(rng.integers(0, 6, game.num_worlds))
        game.begin(np.flatnonzero(told.terminated | told.truncated))
        rows = game.observe()[PATH_FIELD.name]
        for n in range(game.num_worlds):
            found = slow_way(game, n)
            if found is None:
                continue
            way, x, y = found
            for k, hops in enumerate(AHEAD):
                node = way[min(hops, len(way) - 1)]
                expected = np.array([12 * (node % WIDTH) + 6 - x, 12 * (node // WIDTH) + 6 - y])
                expected = np.clip(expected / (12 * (hops + 1)), -1, 1)
                np.testing.assert_allclose(rows[n, 2 * k : 2 * k + 2], expected, atol=1e-6)
            compared += 1
    assert compared > 10 * game.num_worlds


def test_it_says_how_far_it_is_and_what_it_leads_to(game):
    rows = game.observe()[PATH_FIELD.name]
    kinds = rows[:, PATH_VALUES - 3 :]
    assert set(kinds.sum(axis=1)) <= {0.0, 1.0}
    for n in np.flatnonzero(kinds[:, 0] == 1):
        entry = game.entry[n]
        place = [float(game.world.worlds[name][n]) for name in "xy"]
        row = game.distances.goal_row[entry, EXIT_SWITCH]
        whole = path_distance(game.distances.hops, row, *place)
        share = rows[n, 2 * len(AHEAD)] * game.distances.reach_px[entry].max()
        assert abs(min(whole, game.distances.reach_px[entry].max()) - share) <= 10.0
    assert (np.abs(rows) <= 1).all()


def test_a_world_without_a_way_sees_zeros(game):
    """Without any goal row there is nothing to follow."""
    kept = game.distances.goal_row.copy()
    game.distances.goal_row[:] = -1
    try:
        assert not game.observe()[PATH_FIELD.name].any()
    finally:
        game.distances.goal_row[:] = kept
