"""Levels drawn by hand: each is won by its stored inputs, and none is a training level."""

from nclone.levels.drawn import FOLDER, drawn_levels, drawn_solutions
from nclone.levels.sources import open_grouped, open_levels, winning_actions
from nclone.search.proof import win_all


def test_there_are_at_least_sixty_and_each_is_won_by_its_inputs():
    levels, inputs = drawn_levels(), drawn_solutions()
    assert len(levels) >= 60
    assert list(inputs) == list(levels)
    assert win_all(list(levels.values()), list(inputs.values())).all()


def test_no_two_are_alike():
    tiles = {level.tiles.tobytes() for level in drawn_levels().values()}
    assert len(tiles) == len({level.name for level in drawn_levels().values()})
    assert len(tiles) == len(drawn_levels())


def test_they_are_named_drawn_and_judged_one_by_one():
    grouped = open_grouped(["drawn"])
    assert [name for name, _ in grouped] == [level.name for level in drawn_levels().values()]
    assert len(winning_actions("drawn")) == len(grouped)


def test_their_folder_is_a_folder_like_any_other():
    keys = {level.key for level in open_levels([str(FOLDER)])}
    assert keys == {level.key for level in drawn_levels().values()}
