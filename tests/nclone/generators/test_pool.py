"""Pools: the bundled one keeps its promises, files survive a round trip, bad files say why."""

import numpy as np
import pytest

from nclone.errors import LevelError
from nclone.levels.generators import EASY, level_content
from nclone.levels.growing import generate_pool
from nclone.levels.pool import BUNDLED, LevelPool, Split, load_pool
from nclone.search.proof import win_all


@pytest.fixture(scope="module")
def bundled():
    return load_pool()


def test_the_bundled_pool_holds_256_levels_per_easy_category_and_is_small(bundled):
    for category in EASY:
        assert len(bundled.of([category])) >= 256
    assert BUNDLED.stat().st_size < 5e6


def test_every_tenth_bundled_level_is_won_by_its_inputs(bundled):
    part = LevelPool(bundled.members[::10])
    levels = part.make_levels()
    assert win_all(levels, [m.inputs for m in part.members]).all()


@pytest.mark.slow
def test_every_bundled_level_is_won_by_its_inputs(bundled):
    for begin in range(0, len(bundled), 256):
        part = LevelPool(bundled.members[begin : begin + 256])
        assert win_all(part.make_levels(), [m.inputs for m in part.members]).all()


def test_train_and_test_split_share_no_level(bundled):
    contents = [
        {level_content(level) for level in bundled.of(split=split).make_levels()} for split in Split
    ]
    assert not contents[0] & contents[1]
    assert [len(c) for c in contents] == [len(bundled.of(split=split)) for split in Split]


def test_a_pool_is_the_same_after_saving_and_loading(tmp_path):
    pool, reports = generate_pool(4, ["simplest", "simple"], show=False)
    pool.save(tmp_path / "pool.npz")
    loaded = load_pool(tmp_path / "pool.npz")

    assert [(m.recipe, m.key, m.category, m.split) for m in loaded.members] == [
        (m.recipe, m.key, m.category, m.split) for m in pool.members
    ]
    for a, b in zip(loaded.members, pool.members, strict=True):
        np.testing.assert_array_equal(a.inputs.per_step(), b.inputs.per_step())
    assert [r.proved for r in reports] == [4, 4]
    assert [p.name for p in tmp_path.iterdir()] == ["pool.npz"]


def test_levels_of_another_pool_are_not_drawn_again():
    train, _ = generate_pool(4, ["simplest"], show=False)
    more, reports = generate_pool(4, ["simplest"], exclude=train, show=False)
    assert reports[0].duplicates >= 4
    assert not {m.key for m in train.members} & {m.key for m in more.members}


def test_mirrored_levels_are_proved_on_their_own():
    pool, _ = generate_pool(3, ["simplest_with_mines"], mirrored=True, show=False)
    assert all(m.recipe.mirrored for m in pool.members)
    assert win_all(pool.make_levels(), [m.inputs for m in pool.members]).all()


def test_a_changed_generator_is_noticed(bundled):
    member = bundled.members[0]
    wrong = LevelPool([type(member)(**{**vars(member), "key": "0" * 16})])
    with pytest.raises(LevelError, match="generators have changed"):
        wrong.make_levels()


@pytest.mark.parametrize("content", [b"", b"no zip", BUNDLED.read_bytes()[:5000]])
def test_a_broken_pool_file_is_refused_with_its_name(tmp_path, content):
    path = tmp_path / "bad.npz"
    path.write_bytes(content)
    with pytest.raises(LevelError, match=r"bad\.npz"):
        load_pool(path)


def test_a_missing_pool_and_an_unknown_category_are_named(bundled, tmp_path):
    with pytest.raises(LevelError, match="no level pool"):
        load_pool(tmp_path / "none.npz")
    with pytest.raises(ValueError, match="mine_heavy"):
        bundled.of(["hard"])
