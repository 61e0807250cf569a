"""The way of a frame: simulator, stored bytes, drawn when acting, drawn when learning."""

import numpy as np
import pytest
import torch

from frugal_rl.observation.mirror import TableMirror
from frugal_rl.observation.spec import ObservationSpec
from frugal_rl.observation.tables import StaticTable, TableField, Tables
from nclone.derive import frames as derive
from nclone.levels.format import pack_level
from nclone.levels.generators import draw_recipes, generate
from nclone.levels.level import load_level
from nclone.render.fields import (
    GlobalFrame,
    PlayerFrame,
    frame_fields,
    items_table_field,
)
from nclone.render.moment import write_moment
from nclone.render.scene import moment_widths, scene_items
from nclone.sim.simulate import simulate
from nclone.sim.world import World


def machine_room():
    """One of every changing and moving kind, the ninja on a floor between them."""
    tiles = np.zeros((25, 44), int)
    tiles[12] = 1
    kinds = (1, 2, 5, 10, 11, 14, 17, 20, 21, 24, 25, 26, 28)
    records = [[0, 40, 44, 0, 0], [3, 60, 44, 0, 0], [4, 44, 46, 0, 0]]
    records += [
        [kind, 20 + 9 * k, 46 - 3 * (k % 3), 2 * (k % 4), 0] for k, kind in enumerate(kinds)
    ]
    records += [[6, 100, 30, 0, 0], [7, 52, 46, 0, 0], [8, 120, 30, 2, 0], [9, 56, 46, 0, 0]]
    return load_level(pack_level(tiles, records))


def level_table(levels):
    table = StaticTable("level", (TableField("tiles", (25, 44), np.uint8), items_table_field()))
    for level in levels:
        rows = {"tiles": level.tiles, "items": scene_items(level).items}
        table.intern(level.key, lambda rows=rows: rows)
    return Tables(level=table)


def moments(world, widths):
    n = world.num_worlds
    rows = {
        "level_id": world.level.copy(),
        "ninja": np.empty((n, 3), np.int16),
        "codes": np.empty((n, widths[1]), np.uint8),
        "moving": np.empty((n, widths[2], 2), np.int16),
    }
    write_moment(world, np.arange(n), rows["ninja"], rows["codes"], rows["moving"])
    return rows


@pytest.fixture(scope="module")
def played():
    """Raw rows of 6 levels over 60 random steps, resets included."""
    levels = [machine_room(), *map(generate, draw_recipes("simple", 5))]
    world, widths = World(levels, threads=1), moment_widths(levels)
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(60):
        world.step(rng.integers(0, 6, 6), frames=4)
        rows.append(moments(world, widths))
        world.reset(world.ended)
    stacked = {name: np.concatenate([r[name] for r in rows]) for name in rows[0]}
    return levels, widths, level_table(levels), stacked


def test_drawn_when_acting_equals_drawn_when_learning(played):
    _, _, tables, rows = played
    mirrors = {name: TableMirror(table) for name, table in tables.items()}
    tensors = {name: torch.from_numpy(values) for name, values in rows.items()}
    tensors["level_id"] = tensors["level_id"].long()
    for frame, drawer, twin, size in (
        ("player_frame", PlayerFrame, derive.draw_player_frames, (84, 84)),
        ("player_frame", PlayerFrame, derive.draw_player_frames, (128, 128)),
        ("global_view", GlobalFrame, derive.draw_global_views, (100, 176)),
        ("global_view", GlobalFrame, derive.draw_global_views, (128, 256)),
    ):
        acting = drawer(*size)(rows, tables)
        named = getattr(derive, f"{frame}_{size[0]}x{size[1]}")(tensors, mirrors)
        assert acting.shape == (360, *size, 1)
        np.testing.assert_array_equal(acting, named.numpy())
        by_torch = derive.drawn_by_torch(twin, size, tensors, mirrors["level"])
        np.testing.assert_array_equal(acting, by_torch.numpy())
        assert len({row.tobytes() for row in acting}) > 200


@pytest.mark.parametrize("padding", [0, 20])
def test_a_stack_shows_each_moment_as_it_was_and_zeros_before_the_first(played, padding):
    _, _, tables, rows = played
    mirrors = {name: TableMirror(table) for name, table in tables.items()}
    single = PlayerFrame(48, 64)(rows, tables)
    stacked = {n: v[:300].reshape(100, 3, *v.shape[1:]) for n, v in rows.items() if n != "level_id"}
    stacked["level_id"] = rows["level_id"][:300:3]
    same = np.repeat(stacked["level_id"], 3) == rows["level_id"][:300]
    for name in ("ninja", "codes", "moving"):
        stacked[name][:padding, :2] = 0
    tensors = {name: torch.from_numpy(values) for name, values in stacked.items()}
    tensors["level_id"] = tensors["level_id"].long()

    frames = PlayerFrame(48, 64)(stacked, tables)
    whole = GlobalFrame(50, 88)(stacked, tables)

    assert frames.shape == (100, 3, 48, 64, 1)
    assert not frames[:padding, :2].any()
    kept = np.broadcast_to(np.arange(3) == 2, (100, 3)).copy()
    kept[padding:] = True
    kept &= same.reshape(100, 3)
    np.testing.assert_array_equal(frames[kept], single[:300].reshape(frames.shape)[kept])
    for drawn, twin, size in (
        (frames, derive.draw_player_frames, (48, 64)),
        (whole, derive.draw_global_views, (50, 88)),
    ):
        by_torch = derive.drawn_by_torch(twin, size, tensors, mirrors["level"])
        np.testing.assert_array_equal(drawn, by_torch.numpy())


def test_codes_and_places_are_those_of_the_recorded_simulation():
    level = machine_room()
    rng = np.random.default_rng(1)
    actions = np.repeat(rng.integers(0, 6, 60), 5)
    recorded = simulate(level, np.choose(actions % 3, [0, -1, 1]), actions >= 3)
    scene, widths = scene_items(level), moment_widths([level])
    world = World([level], threads=1)
    kinds = level.entities[scene.changing, 0]
    for t, action in enumerate(actions):
        world.step([action], frames=1, on_end=0)
        rows = moments(world, widths)
        codes = recorded.es[scene.changing, t + 1]
        np.testing.assert_array_equal(rows["codes"][0, : len(kinds)], codes & 7)
        place = np.floor(recorded.f[:2, t + 1] + 0.5)
        np.testing.assert_array_equal(rows["ninja"][0, :2], place)
        for v, e in enumerate(recorded.mov):
            slot = int(np.flatnonzero(scene.moving == e)[0])
            expected = np.floor(recorded.ep[v, :, t + 1] + 0.5)
            np.testing.assert_array_equal(rows["moving"][0, slot], expected)


def test_a_frame_costs_a_few_bytes_per_step(played):
    _, widths, _, rows = played
    spec = ObservationSpec(frame_fields(widths))
    stored = sum(rows[name][0].nbytes for name in ("ninja", "codes", "moving"))
    drawn = sum(spec.by_name[name].nbytes for name in ("player_frame", "global_view"))
    assert drawn == 84 * 84 + 100 * 176
    assert stored < 120
    plain = moment_widths([generate(r) for r in draw_recipes("simplest", 20)])
    assert 6 + plain[1] // 4 + 4 * plain[2] <= 12


def test_frames_can_be_left_out_and_odd_windows_are_refused():
    names = {f.name for f in frame_fields((4, 4, 1), player_frame=None)}
    assert names == {"ninja", "codes", "moving", "items", "global_view"}
    assert frame_fields((4, 4, 1), None, None) == ()
    with pytest.raises(ValueError, match="even sizes"):
        frame_fields((4, 4, 1), (83, 84))
    with pytest.raises(AttributeError, match="no attribute"):
        derive.player_frame_big  # noqa: B018
