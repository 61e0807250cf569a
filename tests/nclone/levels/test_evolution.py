"""Levels made while learning: small changes, proved, drawn by how uncertain their result is."""

from dataclasses import replace

import numpy as np
import pytest

from frugal_rl.errors import ConfigError, DataError
from frugal_rl.run.checkpoints import save_checkpoint
from frugal_rl.run.compose import compose_run
from nclone.config import NppConfig, RewardPreset
from nclone.errors import LevelError
from nclone.game import NppGame
from nclone.graph.routes import door_places
from nclone.levels import evolution
from nclone.levels import format as fmt
from nclone.levels.entity_types import EntityType
from nclone.levels.evolution import expected_rates
from nclone.levels.generators.dice import Dice
from nclone.levels.mutation import mutated
from nclone.levels.sources import check_names, open_grouped, open_levels, search_efforts
from nclone.search.proof import Proof, Prover
from nclone.spec import Observation

CONFIG = NppConfig(obs=Observation.state, levels=("simplest_few_mines",), evolved=6)
WORLDS = 8


@pytest.fixture(scope="module")
def levels():
    return open_levels(["simplest_few_mines", "complex"])[::80]


def begun(config=CONFIG, worlds=WORLDS, seed=0):
    game = NppGame(config, config.open_levels("train")[:40], worlds, threads=1)
    game.seed([np.random.default_rng([seed, n]) for n in range(worlds)])
    game.begin(np.arange(worlds))
    return game


def played(game, episodes, rate=0.5):
    """Let episodes end on the drawn levels, won with a chance of `rate`."""
    dice = np.random.default_rng(7)
    for _ in range(episodes // WORLDS):
        ids = game.curriculum.next(dice.random(WORLDS))
        game.curriculum.record(ids, dice.random(WORLDS) < rate)
    return game


def test_a_changed_level_is_another_that_keeps_all_a_level_needs(levels):
    dice, changed = Dice("test", 3), 0
    for level in levels:
        for _ in range(30):
            child = mutated(level, dice)
            if child is None:
                continue
            changed += 1
            assert child.map_data[fmt.TILES_AT :] != level.map_data[fmt.TILES_AT :]
            kinds = list(child.map_data[fmt.RECORDS_AT :: fmt.RECORD_BYTES])
            for kind in (EntityType.NINJA, EntityType.EXIT, EntityType.EXIT_SWITCH):
                assert kinds.count(kind) == 1
            places = child.entities[:, 1:3]
            assert places.min() >= 24
            assert (places <= (43 * 24, 24 * 24)).all()
    assert changed > 25 * len(levels)


def around_the_spawn(level):
    """Tiles that are open towards the spawn, and all that touch them, by hand."""
    column, row = (int(place // 24) for place in level.spawn)
    seen, left = set(), [(row, column)]
    while left:
        r, c = left.pop()
        if (r, c) not in seen and level.tiles[r, c] != 1:
            seen.add((r, c))
            left += [(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)]
    return {(r + i, c + j) for r, c in seen for i in (-1, 0, 1) for j in (-1, 0, 1)}


def test_a_change_is_one_that_a_player_can_meet(levels):
    """Of 60 levels that a run evolved 10 were changed in rock only."""
    changed = 0
    for k in range(20):
        for level in levels:
            child = mutated(level, Dice("met", k))
            if child is None:
                continue
            changed += 1
            near = around_the_spawn(level) | around_the_spawn(child)
            tiles = any(level.tiles[at] != child.tiles[at] for at in near)
            one, other = (set(map(tuple, each.entities.tolist())) for each in (level, child))
            things = any((int(x[2] // 24), int(x[1] // 24)) in near for x in one ^ other)
            assert tiles or things or level.spawn != child.spawn
    assert changed > 18 * len(levels)


def test_the_same_dice_change_a_level_in_the_same_way(levels):
    twice = [
        [mutated(level, Dice("test", k)) for k in range(10) for level in levels] for _ in range(2)
    ]
    for one, other in zip(*twice, strict=True):
        assert (one and one.map_data) == (other and other.map_data)


def test_levels_that_join_are_new_proved_and_no_larger_than_the_largest():
    game = begun()
    held = game.parts()["levels"]
    played(game, 30 * evolution.EVERY_EPISODES)
    levels = game.level_table.level
    assert game.curriculum.evolved == CONFIG.evolved == len(levels) - game.curriculum.roots
    assert len({level.map_data[fmt.TILES_AT :] for level in levels}) == len(levels)
    for level in levels[game.curriculum.roots :]:
        assert any(Prover().prove(level, seed=k).inputs is not None for k in range(3))
    assert game.parts()["levels"] == held


def test_what_the_searcher_does_not_win_does_not_join(monkeypatch):
    asked = []

    def refuses_every_other(self, level, **options):
        asked.append(level.key)
        found = np.zeros(1, np.uint8) if len(asked) % 2 else None
        return Proof(found, 1)

    monkeypatch.setattr(Prover, "prove", refuses_every_other)
    game = played(begun(), 30 * evolution.EVERY_EPISODES)
    joined = [level.key for level in game.level_table.level[game.curriculum.roots :]]
    assert joined == asked[::2][: len(joined)]
    assert len(joined) == CONFIG.evolved


def test_a_level_that_is_known_or_larger_than_all_given_does_not_fit():
    game = begun()
    known, larger = game.level_table.level[0], open_levels(["marathon"])[0]
    changed = next(c for k in range(9) if (c := mutated(known, Dice("fit", k))) is not None)
    assert game.levels.fits(changed)
    assert not game.levels.fits(known)
    assert not game.levels.fits(larger)
    game.levels._widths = (1 << 20,) * 3  # its picture alone would fit
    assert not game.levels.fits(larger)
    game.levels.more = 0
    assert not game.levels.fits(changed)


def test_what_is_known_of_a_level_that_joins_is_what_all_levels_together_say():
    game = begun(replace(CONFIG, levels=("exploration",)))
    held = game.levels
    doors = [len(marks.door_entities) for marks in held.marks]
    parents = [held.table.level[k] for k in np.argsort(doors)[-3:]]  # with the most doors
    children = [mutated(parent, Dice("known", k)) for k, parent in enumerate(parents)]
    for child in filter(None, children):
        held.add(child)
    assert len(held) == 40 + sum(child is not None for child in children) > 40
    np.testing.assert_array_equal(held.places, [marks.exit_places for marks in held.marks])
    for kept, found in zip(held.doors, door_places(held.distances.levels), strict=True):
        np.testing.assert_array_equal(kept, found)
    assert held.doors.count[40:].min() > 0


def test_the_plan_counts_what_the_levels_that_join_will_hold():
    run = compose_run(["env=nclone", "env.levels=[simplest_few_mines]", "env.evolved=6"])
    env = run.env.make_vec(WORLDS, run.encoding(), run.memory, run.vec, "train")
    env.reset(0)
    planned = {
        part.name: part.ram_bytes
        for part in run.env.parts(WORLDS, run.encoding(), run.memory, run.vec)
    }
    played(env.game, 30 * evolution.EVERY_EPISODES)
    assert env.game.curriculum.evolved == 6
    env.game.begin(np.arange(WORLDS), np.full(WORLDS, len(env.game.levels) - 1))
    held = env.parts()
    assert planned["env levels"] == held["levels"]
    assert planned["env path distances"] >= held["path distances"]
    without = replace(run.env, evolved=0).parts(WORLDS, run.encoding(), run.memory, run.vec)
    assert planned["env levels"] > next(p.ram_bytes for p in without if p.name == "env levels")


def test_what_is_won_as_often_as_lost_is_drawn_most():
    game = begun(replace(CONFIG, evolved=1))
    chooser = game.curriculum
    for level in range(len(game.levels)):
        won = np.zeros(60, bool) if level % 2 else np.ones(60, bool)
        chooser.record(np.full(60, level), won)
    edge, dice = 4, np.random.default_rng(0)
    chooser.record(np.full(60, edge), np.arange(60) % 2 == 0)
    chooser.ended = 0  # nothing is to join
    half = evolution.ROOTS_SHARE
    drawn = np.bincount(chooser.next(half + (1 - half) * dice.random(4000)), minlength=40)
    assert drawn[edge] > 4 * np.delete(drawn, edge).max()
    drawn = np.bincount(chooser.next(half * dice.random(4000)), minlength=40)
    assert drawn.min() > 60  # the other half is on any level that was given


def test_harder_searches_are_expected_to_be_won_less_often():
    efforts = np.array([10, 1000, 100, 0])
    easy, hard, middle, unknown = expected_rates(efforts, efforts)
    assert easy > middle > hard
    assert unknown == middle == 0.5
    known = search_efforts(["simplest", "mine_heavy"])
    chooser = begun(replace(CONFIG, levels=("simplest", "mine_heavy"))).curriculum
    assert all(effort > 0 for effort in known.values())
    assert chooser.expected[: chooser.roots].std() > 0.2


def test_a_resumed_game_has_the_same_levels_and_draws_the_same():
    game = played(begun(), 20 * evolution.EVERY_EPISODES)
    game.begin(np.arange(WORLDS), np.full(WORLDS, len(game.levels) - 1))
    again = begun(seed=5)
    again.load(game.state())
    assert [level.key for level in again.level_table.level] == [
        level.key for level in game.level_table.level
    ]
    for _ in range(30):
        actions = np.arange(WORLDS) % 6
        one, other = game.advance(actions), again.advance(actions)
        np.testing.assert_array_equal(one.reward, other.reward)
        np.testing.assert_array_equal(one.terminated, other.terminated)
    played(game, 600)
    played(again, 600)
    assert game.curriculum.state().keys() == again.curriculum.state().keys()
    for name, value in game.curriculum.state().items():
        np.testing.assert_array_equal(value, again.curriculum.state()[name])


def test_levels_of_a_checkpoint_for_which_there_is_no_room_are_refused():
    kept = played(begun(), 30 * evolution.EVERY_EPISODES).curriculum.state()
    with pytest.raises(DataError, match=r"env\.evolved=2 has room for"):
        begun(replace(CONFIG, evolved=2)).curriculum.load(kept)


def test_what_a_run_evolved_can_be_named_as_levels(tmp_path):
    game = played(begun(), 30 * evolution.EVERY_EPISODES)
    state = {"learner": {"collector": {"common": game.curriculum.state()}}}
    save_checkpoint(tmp_path / "run.pt", state)
    names = [f"evolved:{tmp_path / 'run.pt'}"]
    check_names(names)
    found = open_grouped(names)
    made = game.level_table.level[game.curriculum.roots :]
    assert [level.map_data for _, level in found] == [level.map_data for level in made]
    assert {group for group, _ in found} == {"evolved"}
    assert all(level.name.endswith("changed") for level in made)
    save_checkpoint(tmp_path / "run.pt", {"learner": {"collector": {"common": None}}})
    with pytest.raises(LevelError, match=r"evolved no levels; train with env\.evolved"):
        open_grouped(names)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["env.curriculum=true", "env.levels=[simple]"], "both choose what is played next"),
        (["env.reward=speedrun"], "needs a best time of each level"),
        (["env.evolved=-1"], "env.evolved"),
    ],
)
def test_what_does_not_go_together_is_refused(words, told):
    with pytest.raises(ConfigError, match=told):
        compose_run(["env=nclone", "env.evolved=4", *words])


def test_single_environments_cannot_share_levels_that_join():
    run = compose_run(["env=nclone", "env.evolved=4", "vec=serial"])
    with pytest.raises(ConfigError, match="choose vec=batch"):
        run.env.make_vec(2, run.encoding(), run.memory, run.vec, "train")
    assert NppConfig(reward=RewardPreset.speedrun, evolved=0)
