"""What each action would lead to, against worlds that really went there."""

import numpy as np
import pytest

from nclone.config import NppConfig
from nclone.game import NppGame
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH
from nclone.graph.paths import path_distance
from nclone.levels.bundled import bundled_level
from nclone.levels.pool import LevelPool, load_pool
from nclone.observation.foresight import FORESIGHT_FIELD, HELD_FRAMES, REACH_PX, TAPPED_FRAMES
from nclone.sim import state as st
from nclone.sim.world import World
from nclone.spec import ACTIONS, Observation


@pytest.fixture(scope="module")
def game():
    config = NppConfig(obs=Observation.foresight, levels=("simple", "mine_heavy", "complex"))
    levels = config.open_levels("train")[::60] + [bundled_level("locked_door")]
    game = NppGame(config, levels, len(levels), order="in turn", threads=1)
    game.seed([np.random.default_rng(n) for n in range(len(levels))])
    game.begin(np.arange(len(levels)))
    return game


def goal_of(game, n):
    """The exit switch, then the door; while that is out of reach, the nearest door's switch."""
    x, y = game.world.position[n]
    rows = game.distances.goal_row[game.entry[n]]
    goal = EXIT_DOOR if game.switch_hit[n] else EXIT_SWITCH
    if np.isfinite(path_distance(game.distances.hops, rows[goal], x, y)):
        return rows[goal]
    switches = game.marks[game.world.level[n]].door_entities
    closed = [2 + 2 * d for d, e in enumerate(switches) if game.world.entity_active[n, e]]
    ways = [path_distance(game.distances.hops, rows[goal], x, y) for goal in closed]
    return rows[closed[int(np.argmin(ways))]] if np.isfinite(ways).any() else -1


def switches_left(game, world):
    """How many switches of locked doors each world still has."""
    marks = [game.marks[level] for level in world.level]
    return np.array([world.entity_active[n, m.door_entities].sum() for n, m in enumerate(marks)])


def lived(game, action, tapped):
    """The rows of one action, frame by frame in worlds of their own."""
    world = World(game.level_table, game.world.level, threads=1)
    world.restore(game.world.snapshot())
    begun, hit = world.position.copy(), game.switch_hit
    frames, reached = np.zeros(len(hit)), np.zeros(len(hit), bool)
    for frame in range(HELD_FRAMES):
        held = 0 if tapped and frame >= TAPPED_FRAMES else action
        alive = ~world.ended
        frames += world.step(np.full(len(hit), held), 1)
        reached |= alive & ~hit & (world.events & st.SWITCH_HIT != 0)
    reached |= world.won | (switches_left(game, world) < switches_left(game, game.world))
    rows = [goal_of(game, n) for n in range(len(hit))]
    ways = [
        [
            path_distance(game.distances.hops, row, *place)
            for row, place in zip(rows, places, strict=True)
        ]
        for places in (begun, world.position)
    ]
    gained = np.array(
        [a - b if np.isfinite([a, b]).all() else 0.0 for a, b in zip(*ways, strict=True)]
    )
    moved = (world.position - begun) / REACH_PX
    survived = np.where(world.dead, frames / HELD_FRAMES, 1.0)
    gained = np.where(reached, 1.0, gained / REACH_PX)
    return np.clip(np.column_stack([survived, moved, gained, reached]), -1, 1)


def test_every_action_is_foreseen_as_it_would_be_lived(game):
    rng, deaths = np.random.default_rng(0), 0
    for step in range(60):
        told = game.advance(rng.integers(0, ACTIONS, game.num_worlds))
        game.begin(np.flatnonzero(told.terminated | told.truncated))
        rows = game.observe()[FORESIGHT_FIELD.name]
        deaths += int((rows[..., 0] < 1).sum())
        for k in range(2 * ACTIONS if step % 6 == 0 else 0):
            expected = lived(game, k % ACTIONS, k >= ACTIONS)
            np.testing.assert_allclose(rows[:, k], expected, atol=1e-6)
    assert deaths > 50


def test_looking_ahead_leaves_the_worlds_as_they_are(game):
    before = game.world.snapshot()
    rows = game.observe()[FORESIGHT_FIELD.name].copy()
    for name, array in before._asdict().items():
        np.testing.assert_array_equal(getattr(game.world, name), array)
    some = np.array([3, 1])
    np.testing.assert_array_equal(game.observe(some)[FORESIGHT_FIELD.name], rows[some])


def test_the_way_to_a_locked_doors_switch_is_foreseen():
    members = load_pool().of(["exploration"]).members[:24]
    levels = LevelPool(members).make_levels()
    config = NppConfig(obs=Observation.foresight, start_frames=0, frame_skip=1)
    game = NppGame(config, levels, len(levels), order="in turn", threads=1)
    game.seed([np.random.default_rng(n) for n in range(len(levels))])
    game.begin(np.arange(len(levels)))
    rows_of = game.distances.goal_row[game.entry]
    locked = [n for n in range(len(levels)) if goal_of(game, n) in set(rows_of[n, 2:]) - {-1}]
    n, gains, seen = locked[0], [], []
    for action in members[n].inputs.per_step(1):
        if game.door_bits[n]:
            break
        row = game.observe(np.array([n]))[FORESIGHT_FIELD.name][0]
        gains.append(row[:, 3].max())
        seen.append(bool(row[:, 4].any()))
        game.advance(np.full(len(levels), action))
    assert np.mean(np.array(gains) > 0) > 0.8
    assert seen[-1]
    assert not seen[0]


def test_the_exit_is_foreseen():
    config = NppConfig(obs=Observation.foresight, levels=("walk",), start_frames=0)
    game = NppGame(config, config.open_levels("train"), 1, threads=1)
    game.seed([np.random.default_rng(0)])
    game.begin(np.arange(1))
    seen = []
    while not game.world.won[0]:
        seen.append(game.observe()[FORESIGHT_FIELD.name][0, :, 4].any())
        assert not game.advance(np.array([2])).truncated[0]
    assert not seen[0]
    assert seen[-1]
