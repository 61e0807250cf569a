"""Levels by name: pools, mirror images, drawings, replays, folders; mistakes are answered."""

import numpy as np
import pytest

from nclone.errors import LevelError
from nclone.levels.bundled import bundled_level, winning_inputs
from nclone.levels.files import read_level, write_level
from nclone.levels.generators import level_content
from nclone.levels.growing import grow_pool
from nclone.levels.level import load_level
from nclone.levels.pool import Split, load_pool
from nclone.levels.sources import open_levels, pool_members, pool_places, winning_actions
from nclone.replay import Replay, inputs_of_actions
from nclone.replay.files import write_replays
from nclone.search.proof import win_all
from nclone.sim.world import World


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    path = tmp_path_factory.mktemp("pool") / "pool.npz"
    grow_pool(path, 3, 2, ["simplest", "simple"], seed=7, show=False)
    return path


def test_a_pool_file_stands_for_its_training_levels_or_its_test_levels(pool):
    train, test = open_levels([str(pool)]), open_levels([str(pool)], "eval")
    assert (len(train), len(test)) == (6, 4)
    assert not {level_content(a) for a in train} & {level_content(a) for a in test}


def test_one_category_of_a_pool_file(pool):
    levels = open_levels([f"{pool}:simple"])
    wanted = load_pool(pool).of(["simple"], Split.train)
    assert [level.key for level in levels] == [m.key for m in wanted.members]


def test_a_curriculum_draws_from_pool_files_too(pool):
    places = pool_places([f"{pool}:simple", f"{pool}:simplest"])
    assert [category for category, _ in places] == ["simple"] * 3 + ["simplest"] * 3


def test_mirrored_levels_are_proved_and_exchange_left_and_right():
    members = pool_members("mirrored:simplest_with_mines")
    levels = open_levels(["mirrored:simplest_with_mines"])
    plain = {m.recipe: m for m in pool_members("simplest_with_mines")}
    assert len(levels) == len(members) > 300
    assert win_all(levels, [m.inputs for m in members]).all()
    first = members[0]
    twin = next(r for r in plain if (r.preset, r.seed) == (first.recipe.preset, first.recipe.seed))
    assert twin.mirrored != first.recipe.mirrored


def test_a_mirrored_bundled_level_is_won_by_mirrored_inputs():
    level, actions = open_levels(["mirrored:jump"])[0], winning_actions("mirrored:jump")[0]
    world = World([level], threads=1)
    world.step(actions[:, None], frames=1)
    assert world.won[0]
    np.testing.assert_array_equal(actions == 4, winning_inputs("jump") == 5)


def test_every_kind_of_file_gives_the_same_level(tmp_path):
    level = bundled_level("drone")
    replay = Replay(inputs_of_actions(winning_inputs("drone")), level.map_data, True)
    for name in ("a.map", "b.txt"):
        write_level(tmp_path / name, level)
    for name in ("c.replay", "d.attract"):
        write_replays(tmp_path / name, [replay])
    levels = open_levels([str(tmp_path)])
    assert len(levels) == 4
    for found in levels:
        np.testing.assert_array_equal(found.tiles, level.tiles)
        np.testing.assert_array_equal(found.entities, level.entities)
    np.testing.assert_array_equal(
        winning_actions(str(tmp_path / "c.replay"))[0], winning_inputs("drone")
    )
    assert winning_actions(str(tmp_path / "a.map")) is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wlak", "did you mean 'walk'"),
        ("none/pool.npz", "no level pool"),
        ("pool.npz:hard", "'hard' is no category"),
        ("mirrored:wlak", "did you mean 'walk'"),
        ("tests/nclone/levels", "holds no level file"),
        ("conf/train.yaml", "conf/train.yaml"),
    ],
)
def test_a_name_that_means_nothing_is_answered(name, words):
    with pytest.raises(LevelError, match=words):
        open_levels([name])


def test_a_broken_drawing_is_named_with_its_line(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("title: x\n#####\n#@!X#\n")
    with pytest.raises(LevelError, match=r"mine\.txt: Line 3, column 3"):
        read_level(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LevelError, match=r"mine\.txt is not text"):
        read_level(path)


def test_a_pool_without_the_wanted_category_says_what_to_do(pool):
    with pytest.raises(LevelError, match=r"no train level of category 'medium'.*generate\.py"):
        open_levels([f"{pool}:medium"])


def test_levels_of_a_replay_without_one_are_refused(tmp_path):
    path = tmp_path / "bare.inputs"
    path.write_bytes(b"\1\2")
    with pytest.raises(LevelError, match="inputs only"):
        read_level(path)
    with pytest.raises(LevelError, match=r"\.map"):
        write_level(tmp_path / "x.replay", load_level(bundled_level("walk").map_data))
