"""Growing pools: interrupted searches go on, splits share nothing, nothing half-written stays."""

import json

import numpy as np
import pytest

from frugal_rl.errors import ConfigError, DiskError
from frugal_rl.run.compose import compose_run
from nclone.errors import LevelError
from nclone.levels import growing
from nclone.levels.generators import CATEGORIES, TEST_SEEDS, draw_recipes, level_content
from nclone.levels.growing import PoolMaker, grow_pool
from nclone.levels.pool import BUNDLED, Split, load_pool
from nclone.search.proof import win_all
from nclone.tools.generate import generate

NAMES = ["simplest", "mine_heavy"]


def recipes(path):
    return [(m.split, m.recipe, m.key) for m in load_pool(path).members]


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    path = tmp_path_factory.mktemp("grown") / "pool.npz"
    return path, grow_pool(path, 6, 2, NAMES, seed=3, show=False)


def test_a_grown_pool_is_proved_and_counted(grown):
    path, maker = grown
    pool = load_pool(path)
    assert win_all(pool.make_levels(), [m.inputs for m in pool.members]).all()
    for split, wanted in ((Split.train, 6), (Split.test, 2)):
        for name in NAMES:
            tally = maker.tally(name, split)
            assert tally.proved == wanted == len(pool.of([name], split))
            assert tally.searched == tally.proved + tally.unsolved + tally.duplicates


def test_the_listing_names_every_level(grown):
    path, _ = grown
    listing = json.loads(path.with_suffix(".json").read_text())
    keys = [k for splits in listing["levels"].values() for part in splits.values() for k in part]
    assert sorted(keys) == sorted(m.key for m in load_pool(path).members)
    assert {t["category"] for t in listing["search"]} == set(NAMES)


def test_an_interrupted_search_goes_on_to_the_same_pool(grown, tmp_path, monkeypatch):
    path, _ = grown
    monkeypatch.setattr(growing, "SAVE_SECONDS", 0.0)
    prove, count = growing._prove_all, 0

    def interrupted(*args):
        nonlocal count
        for member in prove(*args):
            yield member
            count += 1
            if count == 9:
                raise KeyboardInterrupt

    monkeypatch.setattr(growing, "_prove_all", interrupted)
    with pytest.raises(KeyboardInterrupt):
        grow_pool(tmp_path / "pool.npz", 6, 2, NAMES, seed=3, show=False)
    assert len(load_pool(tmp_path / "pool.npz")) == 9
    monkeypatch.setattr(growing, "_prove_all", prove)
    grow_pool(tmp_path / "pool.npz", 6, 2, NAMES, seed=3, show=False)

    assert recipes(tmp_path / "pool.npz") == recipes(path)


def test_a_finished_pool_is_made_larger_and_keeps_what_it_has(grown, tmp_path):
    path, _ = grown
    larger = tmp_path / "pool.npz"
    larger.write_bytes(path.read_bytes())
    grow_pool(larger, 8, 2, NAMES, seed=3, show=False)
    assert set(recipes(path)) < set(recipes(larger))
    assert len(load_pool(larger)) == 20


def test_another_seed_gives_other_levels_and_is_refused_in_the_same_file(grown, tmp_path):
    path, _ = grown
    grow_pool(tmp_path / "pool.npz", 6, 2, NAMES, seed=4, show=False)
    assert not {k for *_, k in recipes(path)} & {k for *_, k in recipes(tmp_path / "pool.npz")}
    with pytest.raises(LevelError, match="another seed"):
        grow_pool(path, 6, 2, NAMES, seed=4, show=False)


def test_the_seeds_of_the_bundled_pool_lead_to_the_bundled_pool(tmp_path):
    grow_pool(tmp_path / "pool.npz", 5, 2, ["simplest"], show=False)
    ours = load_pool(tmp_path / "pool.npz")
    for split in Split:
        bundled = load_pool(BUNDLED).of(["simplest"], split).members
        small = ours.of(["simplest"], split).members
        assert [m.recipe for m in small] == [m.recipe for m in bundled[: len(small)]]


def test_a_training_level_is_never_a_test_level_of_the_bundled_pool():
    test = load_pool(BUNDLED).of(["simplest"], Split.test).members[:4]
    maker = PoolMaker(first_seed=TEST_SEEDS)
    maker.avoid[Split.train] = growing.contents(test)
    found = list(maker.prove("simplest", Split.train, 4))
    assert maker.tally("simplest", Split.train).duplicates >= 4
    assert not growing.contents(found) & growing.contents(test)


def test_mirrored_levels_are_grown_under_their_category(tmp_path):
    grow_pool(tmp_path / "pool.npz", 2, 1, ["mirrored:simplest"], show=False)
    members = load_pool(tmp_path / "pool.npz").members
    assert {m.category for m in members} == {"simplest"}
    assert all(m.recipe.mirrored for m in members)


def test_generators_that_lead_one_way_are_mirrored_every_second_time():
    sides = [r.mirrored for r in draw_recipes("mine_heavy", 8)]
    assert sides == [False, False, True, True] * 2
    assert not any(r.mirrored for r in draw_recipes("simplest", 20))
    assert [r.mirrored for r in draw_recipes("mine_heavy", 8, mirrored=True)] == [
        not side for side in sides
    ]


def test_the_command_takes_categories_from_env_levels(tmp_path):
    run = compose_run(["env=nclone", "env.levels=[simplest]"])
    paths = generate(run, str(tmp_path), 2, 0)
    assert [p.name for p in paths] == ["pool.npz", "pool.json"]
    assert {m.category for m in load_pool(paths[0]).members} == {"simplest"}
    mixed = compose_run(["env=nclone", "env.levels=[simplest,walk]"])
    with pytest.raises(ConfigError, match="walk"):
        generate(mixed, str(tmp_path), 2, 0)
    for count, seed in ((0, 0), (1, -1), (1, 1 << 16)):
        with pytest.raises(ConfigError):
            generate(run, str(tmp_path), count, seed)


def test_a_full_disk_leaves_the_older_pool(grown, tmp_path, monkeypatch):
    path, maker = grown
    target = tmp_path / "pool.npz"
    target.write_bytes(path.read_bytes())

    def full(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(DiskError, match=r"pool\.npz cannot be written: No space left"):
        maker.save(target)
    assert target.read_bytes() == path.read_bytes()
    assert [p.name for p in tmp_path.iterdir()] == ["pool.npz"]


@pytest.mark.slow
def test_a_thousand_levels_per_category_share_nothing_between_train_and_test():
    for category in CATEGORIES:
        parts = []
        for base in (0, TEST_SEEDS):
            found = {level_content(growing.generate(r)) for r in draw_recipes(category, 1000, base)}
            parts.append(found)
        assert len(parts[0]) > 900
        assert len(parts[0] & parts[1]) < 30  # equal by chance; pools leave them out
