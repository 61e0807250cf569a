"""Many worlds in one call: independence, ends, events, snapshots, growing tables."""

import numba
import numpy as np
import pytest

from frugal_rl.errors import ConfigError
from nclone.levels.bundled import bundled_level, bundled_names, winning_inputs
from nclone.levels.drawn import drawn_levels
from nclone.levels.entity_types import EntityType
from nclone.levels.format import pack_level
from nclone.levels.level import load_level
from nclone.sim import state as st
from nclone.sim import world as world_module
from nclone.sim.table import LevelTable
from nclone.sim.world import WORTH_A_THREAD, World, action_of

LEVELS = [bundled_level(name) for name in ("walk", "drone", "locked_door", "bounce_block")]

ALIVE = {"ONE_WAY", "REGULAR_DOOR", "BOUNCE_BLOCK", "THWUMP", "SHOVE_THWUMP", "DEATH_BALL",
         "ZAP_DRONE", "MINI_DRONE"}  # fmt: skip
PARTNERS = {
    EntityType.EXIT_SWITCH: EntityType.EXIT,
    EntityType.LOCKED_DOOR_SWITCH: EntityType.LOCKED_DOOR,
    EntityType.TRAP_DOOR_SWITCH: EntityType.TRAP_DOOR,
}
"""Kinds that only come with another."""


def sticky_actions(frames, worlds, seed=0):
    random = np.random.default_rng(seed)
    actions = random.integers(0, 6, (frames, worlds)).astype(np.uint8)
    for t in range(1, frames):
        keep = random.random(worlds) < 0.9
        actions[t, keep] = actions[t - 1, keep]
    return actions


def test_a_mix_of_levels_plays_as_each_world_alone():
    ids = np.arange(12) % len(LEVELS)
    actions = sticky_actions(200, 12)
    together = World(LEVELS, ids)
    together.step(actions, frames=1, on_end=st.RUN_ON)
    for w, level in enumerate(ids):
        alone = World([LEVELS[level]], threads=1)
        alone.step(actions[:, [w]], frames=1, on_end=st.RUN_ON)
        for name in set(st.WORLD.names) - {"level", "head", "crowd"}:
            assert together.worlds[name][w] == alone.worlds[name][0], name
        entities = alone.entities.shape[1]
        assert (together.entities[w, :entities] == alone.entities[0]).all()


@pytest.mark.skipif(world_module.MOST_THREADS < 2, reason="Numba starts one thread here")
def test_threads_change_nothing():
    count = 2 * WORTH_A_THREAD
    ids = np.arange(count) % len(LEVELS)
    actions = sticky_actions(100, count)
    one, two = World(LEVELS, ids, threads=1), World(LEVELS, ids, threads=2)
    for world in (one, two):
        world.step(actions, frames=4, on_end=st.RESTART)
    for name in one.arrays._fields:
        assert (getattr(one, name) == getattr(two, name)).all(), name


def test_where_nothing_moves_the_smaller_simulator_plays_as_the_whole():
    named = [bundled_level(name) for name in bundled_names()] + list(drawn_levels().values())
    levels = [level for level in named if LevelTable([level]).lively is None]
    kinds = {int(kind) for level in levels for kind in level.entities[:, 0]}
    small, whole = World(levels, threads=1), World(levels, threads=1)
    whole.table.lively = st.LIVELY
    actions = sticky_actions(400, len(levels))
    for world in (small, whole):
        world.step(actions, frames=4, on_end=st.RESTART)

    assert len(levels) > 50
    assert kinds >= {1, 2, 3, 4, 6, 10, 21, 24}  # mines, gold, exits, locked doors, pads
    assert small.table.lively is None
    for name in small.arrays._fields:
        assert (getattr(small, name) == getattr(whole, name)).all(), name


@pytest.mark.parametrize("kind", sorted(set(EntityType) - {EntityType.NINJA, *PARTNERS}))
def test_what_moves_thinks_or_pushes_needs_the_whole_simulator(kind):
    records = [(0, 80, 8, 0, 0), (kind, 40, 20, 0, 0)]
    if kind in PARTNERS.values():
        records.append((next(k for k, of in PARTNERS.items() if of == kind), 44, 20, 0, 0))
    table = LevelTable([bundled_level("walk")])
    assert table.lively is None
    table.add(load_level(pack_level(np.zeros((23, 42)), records)))

    assert (table.lively is not None) == (kind.name in ALIVE)


def test_frames_of_one_call_equal_single_frames():
    actions = sticky_actions(50, 8)
    held, single = World(LEVELS * 2), World(LEVELS * 2)
    held.step(actions, frames=4, on_end=st.RUN_ON)
    for action in np.repeat(actions, 4, axis=0):
        single.step(action, frames=1, on_end=st.RUN_ON)
    same = [name for name in st.WORLD.names if name != "events"]
    assert (held.worlds[same] == single.worlds[same]).all()


def test_a_step_stops_on_the_frame_of_the_end_and_stays_there():
    actions = winning_inputs("walk")
    world = World([bundled_level("walk")], threads=1)
    padded = np.concatenate([actions, np.zeros(3, np.uint8)])
    assert world.step(padded[:, None], frames=1)[0] == len(actions)
    assert world.won[0]
    assert world.frame[0] == len(actions)
    assert world.step([2])[0] == 0


def test_events_tell_switch_gold_doors_jumps_and_the_end():
    level = load_level(
        pack_level(
            np.pad(np.zeros((3, 40)), ((1, 19), (1, 1)), constant_values=1),
            [(0, 10, 18, 0, 0), (2, 20, 18, 0, 0), (3, 60, 18, 0, 0), (4, 30, 18, 0, 0)]
            + [(6, 100, 10, 0, 0), (7, 40, 18, 0, 0), (8, 104, 10, 0, 0), (9, 50, 18, 0, 0)],
        )
    )
    world = World([level], threads=1)
    seen = []
    for _ in range(300):
        world.step([2], frames=1)
        bits = int(world.events[0])
        seen += [bit for bit in (1, 2, 4, 8, 16, 32, 64, 128) if bits & bit]
    assert seen == [st.GOLD_TAKEN, st.SWITCH_HIT, st.DOOR_OPENED, st.DOOR_CLOSED, st.COMPLETED]
    assert world.gold[0] == 1
    assert world.door_closed[0].tolist() == [0, 1]


def test_a_press_in_the_air_is_reported_as_a_buffered_jump():
    world = World([bundled_level("walk")], threads=1)
    bits = 0
    for t in range(12):
        world.step([3 if t >= 3 else 0], frames=1)
        bits |= int(world.events[0])
    assert bits & st.BUFFERED_JUMP
    assert bits & st.JUMPED


@pytest.mark.parametrize(
    ("records", "cause"),
    [
        ([(1, 20, 18, 0, 0)], st.BY_MINE),
        ([(14, 20, 18, 0, 0)], st.BY_HAZARD),
        ([(25, 20, 18, 0, 0)], st.BY_HAZARD),
    ],
)
def test_the_cause_of_death_is_known(records, cause):
    tiles = np.pad(np.zeros((3, 40)), ((1, 19), (1, 1)), constant_values=1)
    level = load_level(pack_level(tiles, [(0, 10, 18, 0, 0), *records]))
    world = World([level], threads=1)
    world.step([2], frames=200)
    assert world.dead[0]
    assert world.death_cause[0] == cause


def test_a_long_fall_is_a_death_by_impact():
    level = load_level(pack_level(np.zeros((23, 42)), [(0, 80, 8, 0, 0)]))
    world = World([level], threads=1)
    world.step([0], frames=300)
    assert world.death_cause[0] == st.BY_IMPACT


def test_a_restored_snapshot_goes_on_as_before():
    actions = sticky_actions(60, 8)
    world = World(LEVELS * 2)
    world.step(actions[:30], frames=4, on_end=st.RESTART)
    kept = world.snapshot()
    world.step(actions[30:], frames=4, on_end=st.RESTART)
    first = world.snapshot()
    world.restore(kept)
    world.step(actions[30:], frames=4, on_end=st.RESTART)
    for name in first._fields:
        assert (getattr(first, name) == getattr(world, name)).all(), name


def test_one_snapshot_may_go_to_many_worlds():
    world = World(LEVELS * 2)
    world.step(sticky_actions(20, 8), frames=4)
    world.restore(world.snapshot([3]), [0, 1, 2])
    assert (world.worlds[:3] == world.worlds[3]).all()
    assert (world.entities[:3] == world.entities[3]).all()


def test_a_reset_of_some_worlds_leaves_the_others_alone():
    world = World(LEVELS * 2)
    world.step(sticky_actions(30, 8), frames=4)
    before = world.snapshot()
    world.reset(np.arange(8) % 2 == 0)
    assert (world.frame[::2] == 0).all()
    assert (world.worlds[1::2] == before.worlds[1::2]).all()
    fresh = World(LEVELS * 2)
    assert (world.entities[::2] == fresh.entities[::2]).all()


def test_levels_may_join_the_table_later():
    table = LevelTable([bundled_level("walk")])
    world = World(table, [0, 0, 0], threads=1)
    world.step([2, 2, 2])
    running = world.worlds[0].copy()
    added = [table.add(bundled_level(name)) for name in bundled_names()]
    world.reset([1], levels=[added[-1]])
    world.reset([2], levels=[added[-3]])
    assert world.worlds[0] == running
    assert world.level.tolist() == [0, added[-1], added[-3]]
    assert world.position[2].tolist() == list(table.level[added[-3]].spawn)
    assert table.add(bundled_level("walk")) == 0


def test_a_world_is_small():
    tiles = np.zeros((23, 42))
    records = [(0, 90, 50, 0, 0)]
    records += [(kind, 8 + 4 * i, 40, 0, 0) for i in range(10) for kind in (14, 17, 25, 28)]
    assert World([load_level(pack_level(tiles, records))]).bytes_per_world <= 8 * 1024


def test_wrong_actions_and_levels_are_refused():
    world = World(LEVELS)
    with pytest.raises(ValueError, match=r"pass \[4\]"):
        world.step([0, 1])
    with pytest.raises(ValueError, match="values up to 6"):
        world.step([0, 1, 2, 6])
    with pytest.raises(IndexError, match="table of 4"):
        world.reset(levels=[9, 0, 0, 0])


def test_a_world_on_one_thread_leaves_one_to_the_kernels_that_observe_it():
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    World(LEVELS, threads=1).step(np.zeros(len(LEVELS), np.uint8))

    assert numba.get_num_threads() == 1


def test_more_threads_than_numba_starts_are_refused(monkeypatch):
    monkeypatch.setattr(world_module, "MOST_THREADS", 1)
    assert World(LEVELS).threads == 1
    with pytest.raises(ConfigError, match=r"World\(threads=2\).*NUMBA_NUM_THREADS=2"):
        World(LEVELS, threads=2)


def test_horizontal_and_jump_inputs_become_actions():
    assert action_of([0, -1, 1, 0, -1, 1], [0, 0, 0, 1, 1, 1]).tolist() == [0, 1, 2, 3, 4, 5]


def test_views_show_the_arrays():
    world = World(LEVELS)
    world.step([2, 2, 2, 2])
    assert (world.position[:, 1] == world.worlds["y"]).all()
    assert (world.velocity[:, 0] == world.worlds["vx"]).all()
    assert (world.velocity_before[:, 1] == world.worlds["vy_before"]).all()
    assert (world.floor_normal[:, 1] == world.worlds["floor_y"]).all()
    assert (world.ceiling_normal[:, 1] == world.worlds["ceiling_y"]).all()
    names = [f"{name}_buffer" for name in ("jump", "floor", "wall", "launch")]
    assert (world.buffers == np.stack([world.worlds[name] for name in names], axis=1)).all()


def test_varied_beginnings_play_the_listed_worlds_frame_by_frame():
    ids = np.arange(8) % len(LEVELS)
    which = np.array([0, 3, 4, 7])
    actions, frames = np.array([2, 5, 1, 3]), np.array([30, 0, 17, 200])
    world = World(LEVELS, ids)
    world.step(sticky_actions(9, 8), frames=1)
    others = np.setdiff1d(np.arange(8), which)
    before = world.snapshot(others)
    world.reset(which)
    world.warm_up(which, actions, frames)
    for array, old in zip(world.snapshot(others), before, strict=True):
        assert (array == old).all()
    for w, action, count in zip(which, actions, frames, strict=True):
        alone = World([LEVELS[ids[w]]], threads=1)
        for _ in range(count):
            alone.step([action], frames=1)
        if alone.state[0] >= st.DEAD:
            alone.reset()
        assert world.worlds["frame"][w] == 0
        for name in set(st.WORLD.names) - {"level", "head", "crowd", "frame", "events", "restarts"}:
            assert world.worlds[name][w] == alone.worlds[name][0], name


def test_a_beginning_that_ends_the_episode_is_the_levels_own():
    level = bundled_level("mines") if "mines" in bundled_names() else LEVELS[1]
    for action in range(6):
        world, fresh = World([level]), World([level])
        world.warm_up([0], [action], [2000])
        probe = World([level])
        probe.step(np.full((2000, 1), action, np.uint8), frames=1)
        if probe.state[0] >= st.DEAD:
            assert (world.position == fresh.position).all()
            return
    raise AssertionError("no held input ends this level: choose another one")
