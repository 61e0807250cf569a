"""Generated levels: the same recipe, the same bytes; every level whole; sets that never meet."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone.graph.distance import DistanceTables
from nclone.graph.goals import EXIT_SWITCH
from nclone.graph.landmarks import find_landmarks
from nclone.levels.generators import (
    CATEGORIES,
    LIVELY,
    PLAIN,
    PRESETS,
    TEST_SEEDS,
    TRAIN_SEEDS,
    Recipe,
    draw_recipes,
    generate,
    level_content,
)
from nclone.levels.generators.dice import Dice
from nclone.levels.generators.mirror import mirror_level

PAIRS = [(g, p) for g, presets in PRESETS.items() for p in presets]


def test_there_are_14_generators_63_presets_and_twelve_categories():
    sizes = [len(presets) for presets in PRESETS.values()]
    assert sizes == [4, 5, 10, 6, 6, 3, 4, 2, 3, 2, 3, 9, 3, 3]
    assert list(CATEGORIES)[:2] == ["simplest", "simplest_few_mines"]
    assert len(PLAIN) == 9
    assert (*PLAIN, *LIVELY) == tuple(CATEGORIES)
    used = {source for category in CATEGORIES.values() for source in category.sources}
    assert used == set(PAIRS)


@pytest.mark.parametrize(("generator", "preset"), PAIRS)
def test_every_preset_makes_whole_levels_that_depend_on_the_seed_alone(generator, preset):
    contents = set()
    for seed in range(12):
        level = generate(Recipe(generator, preset, seed))
        assert level.map_data == generate(Recipe(generator, preset, seed)).map_data
        contents.add(level_content(level))
        kinds = level.entities[:, 0].tolist()
        assert kinds.count(3) == kinds.count(4) == 1
        places = [level.spawn, *((e[1], e[2]) for e in level.entities if e[0] in (3, 4))]
        assert len(set(places)) == 3
        for x, y in places:
            assert level.tiles[int(y // 24), int(x // 24)] == 0
    assert len(contents) > 6


@pytest.mark.parametrize("category", CATEGORIES)
def test_most_levels_of_a_category_have_a_way_from_spawn_to_switch_and_door(category):
    tables = DistanceTables()
    connected = 0
    for recipe in draw_recipes(category, 40):
        marks = find_landmarks(generate(recipe))
        entry = tables.acquire(tables.add_level(marks), 0xFFFF)
        goals = [tables.hops[tables.goal_row[entry, g]] for g in (EXIT_SWITCH, 1)]
        connected += all((hops == 0).any() for hops in goals)
        tables.release(entry)
    assert connected >= 38


def test_train_and_test_levels_never_meet():
    for category in CATEGORIES:
        train = {r.seed for r in draw_recipes(category, 1000, TRAIN_SEEDS)}
        test = {r.seed for r in draw_recipes(category, 1000, TEST_SEEDS)}
        assert not train & test


def test_recipes_go_on_where_the_last_ones_ended():
    whole = draw_recipes("simple", 30)
    assert draw_recipes("simple", 10) + draw_recipes("simple", 20, first=10) == whole
    assert len(set(whole)) == 30


@given(st.sampled_from(PAIRS), st.integers(0, 2**50))
@settings(max_examples=30)
def test_mirroring_twice_gives_the_level_back(pair, seed):
    recipe = Recipe(*pair, seed)
    data = generate(recipe).map_data
    mirrored = generate(Recipe(*pair, seed, mirrored=True))
    assert mirror_level(mirror_level(data)) == data
    assert mirrored.spawn == (1056 - generate(recipe).spawn[0], generate(recipe).spawn[1])
    assert (mirrored.tiles != 0).sum() == (generate(recipe).tiles != 0).sum()


def test_the_dice_are_fair_and_their_numbers_never_change():
    dice = Dice("maze/tiny", 7)
    assert [dice.between(0, 999) for _ in range(5)] == [667, 424, 517, 510, 69]
    dice._state = 1234567
    assert dice._next() == 6457827717110365317  # SplitMix64's published test vector
    values = [Dice("a", k).between(1, 6) for k in range(6000)]
    assert np.bincount(values)[1:] == pytest.approx(1000, abs=150)
    items = list(range(20))
    dice.shuffle(items)
    assert sorted(items) == list(range(20))
    assert dice.between(5, 2) == 5


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="maze"):
        generate(Recipe("mazes", "tiny", 0))
    with pytest.raises(ValueError, match="tiny"):
        generate(Recipe("maze", "huge", 0))
    with pytest.raises(ValueError, match="mine_heavy"):
        draw_recipes("hard", 1)
