"""The picture for people, and files that are complete or absent."""

import imageio.v2 as imageio
import numpy as np
import pytest
from PIL import Image

from frugal_rl.report.film import save_film
from frugal_rl.run.disk import finished_or_absent
from nclone.geometry import is_solid_in_level
from nclone.levels.generators import Recipe, generate
from nclone.render.export import (
    contact_sheet,
    film_run,
    picture_path,
    play,
)
from nclone.render.human import AIR, ROCK, HumanView
from nclone.search.proof import Prover
from nclone.sim.world import World


@pytest.fixture(scope="module")
def level():
    return generate(Recipe("hills", "simple", 3))


@pytest.fixture(scope="module")
def actions(level):
    return Prover(entries=500, budget_frames=50_000).prove(level).inputs.per_step(1)


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_rock_and_air_lie_where_the_geometry_says(level, scale):
    image = HumanView(level, scale)._tiles.astype(int)
    rng = np.random.default_rng(0)
    checked = 0
    for x, y in rng.uniform((2, 2), (1054, 598), (500, 2)):
        around = [(x + dx, y + dy) for dx in (-3, 0, 3) for dy in (-3, 0, 3)]
        solid = {is_solid_in_level(level.tiles, px, py) for px, py in around}
        if len(solid) == 1:
            expected = ROCK if solid.pop() else AIR
            found = image[int(y * scale), int(x * scale)]
            assert np.abs(found - expected).max() <= 1
            checked += 1
    assert checked > 350


def test_slopes_have_smooth_edges(level):
    image = HumanView(level)._tiles[..., 0]
    assert len(np.unique(image)) > 6


def test_every_frame_shows_where_the_ninja_is(level, actions):
    view = HumanView(level)
    empty = view._tiles.astype(int)
    for world in play(level, actions[:20]):
        x, y = world.position[0]
        changed = np.abs(view.draw(world).astype(int) - empty).sum(axis=2)
        assert changed[int(y) - 8 : int(y) + 8, int(x) - 8 : int(x) + 8].max() > 300


def test_what_is_collected_is_no_longer_drawn(level, actions):
    view, world = HumanView(level), World([level], threads=1)
    _, x, y, *_ = next(e for e in level.entities if e[0] == 4)
    before = view.draw(world)[int(y), int(x) + 4].copy()
    for world in play(level, actions):  # noqa: B007
        pass
    assert not world.entity_active[0, 1]
    away = np.hypot(*(world.position[0] - (x, y))) > 25
    assert away
    assert not np.array_equal(view.draw(world)[int(y), int(x) + 4], before)


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_a_film_has_the_frames_it_was_given(tmp_path, level, actions, suffix):
    path = tmp_path / f"run{suffix}"
    count = film_run(path, level, actions[:20], scale=0.25, every=5)
    assert count == 5
    assert sum(1 for _ in imageio.get_reader(path)) == 5
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_the_path_is_painted_over_the_level(tmp_path, level, actions):
    path = tmp_path / "path.png"
    picture_path(path, level, actions, scale=0.5)
    image = np.asarray(Image.open(path)).astype(int)
    assert image.shape == (300, 528, 3)
    orange = (image[..., 0] - image[..., 2]) > 90
    assert orange.sum() > 100


def test_a_failed_film_leaves_no_file(tmp_path):
    def frames():
        yield np.zeros((152, 264, 3), np.uint8)
        raise RuntimeError("the simulator broke")

    with pytest.raises(RuntimeError, match="broke"):
        save_film(tmp_path / "run.mp4", frames(), 60)
    with pytest.raises(ValueError, match="no frame"):
        save_film(tmp_path / "empty.gif", iter(()), 60)
    with pytest.raises(ValueError, match=r"\.gif"):
        save_film(tmp_path / "run.avi", frames(), 60)
    assert list(tmp_path.iterdir()) == []


def test_an_older_file_survives_a_failed_one(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"old")

    def write_half():
        with finished_or_absent(path) as part:
            part.write_bytes(b"half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk"):
        write_half()
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_scale_out_of_range_is_refused(level):
    with pytest.raises(ValueError, match=r"render\.scale"):
        HumanView(level, 10)


def test_a_contact_sheet_shows_every_level_in_its_place(level):
    sheet = contact_sheet([level] * 5, columns=2)
    height, width = 154, 268
    assert sheet.shape == (3 * height, 2 * width, 3)
    np.testing.assert_array_equal(sheet[:150, :264], sheet[2 * height : 2 * height + 150, :264])
    assert (sheet[2 * height :, width:] == 255).all()


def test_an_encoder_that_gives_up_is_reported_and_leaves_nothing(tmp_path):
    frames = (np.zeros((0, 0, 3), np.uint8) for _ in range(3))
    with pytest.raises(OSError, match=r"could not be encoded"):
        save_film(tmp_path / "run.mp4", frames, 60)
    assert list(tmp_path.iterdir()) == []
