"""The rasteriser and its torch twin against a picture that is painted whole, pixel by pixel."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone.derive.frames import TorchScene, draw_global_views
from nclone.derive.frames import draw_player_frames as torch_player_frames
from nclone.geometry import is_solid, solid_mask
from nclone.levels.format import pack_level
from nclone.levels.level import load_level
from nclone.render.atlas import GLYPHS, NINJA_SPRITE_OF, SPRITE_OF, SPRITES
from nclone.render.raster import GlobalView, draw_player_frames, reduction
from nclone.render.scene import Moment, build_stage, scene_items

KINDS = (1, 2, 5, 10, 11, 14, 17, 20, 21, 24, 25, 26, 28)


def crowded_level(seed):
    """Random tiles and every kind of entity, some of them on top of each other."""
    rng = np.random.default_rng(seed)
    tiles = rng.integers(0, 38, (25, 44))
    records = [[0, 20, 20, 0, 0], [3, 60, 40, 0, 0], [4, 63, 42, 0, 0]]
    for kind in rng.choice(KINDS, rng.integers(0, 40)):
        x, y = (30, 30) if rng.random() < 0.3 else rng.integers((0, 0), (176, 100))
        records.append([kind, x, y, rng.integers(0, 8), rng.integers(0, 4)])
    for kind in (6, 8):
        records += [[kind, 80, 40, rng.integers(0, 8), 0], [kind + 1, 90, 44, 0, 0]]
    return load_level(pack_level(tiles, records))


def random_moment(scenes, frames, seed):
    rng = np.random.default_rng(seed)
    level = rng.integers(0, len(scenes), frames)
    entities = max(1, max(len(s.changing) for s in scenes))
    moving = max(1, max(len(s.moving) for s in scenes))
    ninja = np.stack(
        [rng.integers(0, 1057, frames), rng.integers(0, 601, frames), rng.integers(0, 10, frames)],
        1,
    )
    return Moment(
        level.astype(np.int64),
        ninja.astype(np.int16),
        rng.integers(0, 8, (frames, entities)).astype(np.uint8),
        rng.integers((-20, -20), (1076, 620), (frames, moving, 2)).astype(np.int16),
    )


def painted_whole(stage, moment, n):
    """Slow twin: the 600 x 1056 picture of one frame, with 24 px of margin around it."""
    level = moment.level[n]
    picture = np.zeros((648, 1104), np.uint8)
    rows = [[GLYPHS[min(t, 37)] for t in row] for row in stage.tiles[level]]
    picture[24:-24, 24:-24] = np.block(rows)
    shown = []
    for item in stage.items[stage.offsets[level] : stage.offsets[level + 1]]:
        kind, orientation, x, y, slot, moving = item
        code = moment.codes[n, slot] & 7 if slot >= 0 else 0
        if moving >= 0:
            x, y = moment.moving[n, moving]
        shown.append((SPRITE_OF[kind, orientation, code], x, y))
    shown.append((NINJA_SPRITE_OF[moment.ninja[n, 2]], *moment.ninja[n, :2]))
    for sprite, x, y in shown:
        if sprite >= 0 and -12 <= y <= 612 and -12 <= x <= 1068:
            window = picture[y + 12 : y + 36, x + 12 : x + 36]
            window[SPRITES[sprite] > 0] = SPRITES[sprite][SPRITES[sprite] > 0]
    return picture[24:-24, 24:-24]


def window(picture, x, y, height, width):
    margin = 200
    padded = np.pad(picture, margin)
    top, left = y - height // 2 + margin, x - width // 2 + margin
    return padded[top : top + height, left : left + width]


def block_means(picture, factor):
    blocks = picture.reshape(600 // factor, factor, 1056 // factor, factor).sum((1, 3), dtype=int)
    return np.floor(blocks / factor**2 + 0.5).astype(np.uint8)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=8)
def test_the_global_view_is_the_block_average_of_the_whole_picture(seed):
    scenes = [scene_items(crowded_level(seed + k)) for k in range(2)]
    stage, moment = build_stage(scenes), random_moment(scenes, 4, seed)
    out = np.empty((4, 100, 176), np.uint8)

    GlobalView().draw(stage, moment, out)

    for n in range(4):
        np.testing.assert_array_equal(out[n], block_means(painted_whole(stage, moment, n), 6))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=8)
def test_the_player_frame_is_a_window_of_the_whole_picture(seed):
    scenes = [scene_items(crowded_level(seed))]
    stage, moment = build_stage(scenes), random_moment(scenes, 6, seed)
    for height, width in ((84, 84), (128, 128), (100, 176)):
        out = np.empty((6, height, width), np.uint8)

        draw_player_frames(stage, moment, out)

        for n in range(6):
            whole = painted_whole(stage, moment, n)
            expected = window(whole, *moment.ninja[n, :2], height, width)
            np.testing.assert_array_equal(out[n], expected)


def torch_scene(stage, moment, device="cpu"):
    counts = np.diff(stage.offsets)[moment.level]
    frame = np.repeat(np.arange(len(counts)), counts)
    order = np.arange(len(frame)) - np.repeat(np.cumsum(counts) - counts, counts)
    items = stage.items[stage.offsets[moment.level][frame] + order]
    parts = (stage.tiles[moment.level], *moment[1:], items, frame, order)
    return TorchScene(*(torch.from_numpy(part).to(device) for part in parts))


@given(st.integers(0, 2**32 - 1), st.integers(1, 20))
@settings(max_examples=10)
def test_kernel_and_torch_twin_agree_in_every_byte(seed, frames):
    scenes = [scene_items(crowded_level(seed + k)) for k in range(3)]
    stage, moment = build_stage(scenes), random_moment(scenes, frames, seed)
    scene = torch_scene(stage, moment)

    for shape in ((84, 84), (128, 128), (100, 176)):
        out = np.empty((frames, *shape), np.uint8)
        draw_player_frames(stage, moment, out)
        np.testing.assert_array_equal(out, torch_player_frames(scene, *shape).numpy())
    for shape in ((100, 176), (128, 256), (50, 88)):
        out = np.empty((frames, *shape), np.uint8)
        GlobalView(*shape).draw(stage, moment, out)
        np.testing.assert_array_equal(out, draw_global_views(scene, *shape).numpy())


@pytest.mark.gpu
def test_the_torch_twin_draws_the_same_bytes_on_a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    scenes = [scene_items(crowded_level(k)) for k in range(3)]
    stage, moment = build_stage(scenes), random_moment(scenes, 64, 0)
    scene = torch_scene(stage, moment, "cuda")
    frames, views = np.empty((64, 84, 84), np.uint8), np.empty((64, 100, 176), np.uint8)
    draw_player_frames(stage, moment, frames)
    GlobalView().draw(stage, moment, views)
    np.testing.assert_array_equal(frames, torch_player_frames(scene).cpu().numpy())
    np.testing.assert_array_equal(views, draw_global_views(scene).cpu().numpy())


def test_the_ninja_is_always_in_the_centre_even_in_a_corner():
    scenes = [scene_items(crowded_level(1))]
    stage, moment = build_stage(scenes), random_moment(scenes, 2, 1)
    moment.ninja[:] = [[12, 12, 0], [1044, 588, 0]]
    out = np.empty((2, 84, 84), np.uint8)
    draw_player_frames(stage, moment, out)
    sprite = SPRITES[NINJA_SPRITE_OF[0]]
    for frame in out:
        np.testing.assert_array_equal(frame[30:54, 30:54][sprite > 0], sprite[sprite > 0])
    assert not out[0, :30].any()
    assert not out[1, 54:].any()


@pytest.mark.parametrize(
    ("shape", "factor"), [((100, 176), 6), ((128, 256), 6), ((600, 1056), 1), ((25, 44), 24)]
)
def test_the_reduction_is_the_finest_that_fits(shape, factor):
    assert reduction(*shape) == factor


def test_a_view_smaller_than_the_tiles_is_refused_in_words():
    with pytest.raises(ValueError, match="100 x 176"):
        GlobalView(20, 20)


def test_glyphs_follow_the_geometry():
    grid = np.arange(24) + 0.5
    for tile in range(38):
        solid = np.array([[is_solid(tile, x, y) for x in grid] for y in grid])
        np.testing.assert_array_equal(solid, solid_mask(tile, grid[None, :], grid[:, None]))
        sure = (GLYPHS[tile] == 208) | (GLYPHS[tile] == 96)
        np.testing.assert_array_equal(solid[sure], (GLYPHS[tile] == 96)[sure])


def test_every_state_that_matters_has_a_picture_of_its_own():
    def picture(kind, code):
        number = SPRITE_OF[kind, 0, code]
        return b"" if number < 0 else SPRITES[number].tobytes()

    for kind, codes in {1: (0, 1, 2), 21: (0, 1, 2), 2: (0, 1), 3: (0, 1), 4: (0, 1)}.items():
        assert len({picture(kind, c) for c in codes}) == len(codes)
    assert len({picture(14, c) for c in range(4)}) == 4
    assert SPRITE_OF[29, 0, 3] >= 0
    assert SPRITE_OF[29, 0, 0] == -1
    assert len({SPRITES[NINJA_SPRITE_OF[s]].tobytes() for s in (0, 1, 2, 3, 4, 5, 6, 8)}) == 8
