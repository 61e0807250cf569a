"""Every bundled level is its drawing, and its stored inputs win it on their last frame."""

import numpy as np
import pytest

from nclone.errors import LevelError
from nclone.levels.ascii import parse_drawing
from nclone.levels.bundled import FOLDER, bundled_level, bundled_names, winning_inputs
from nclone.levels.entity_types import EntityType
from nclone.levels.sources import check_names, open_grouped, winning_actions
from nclone.sim.world import World


def test_there_are_sixteen_skills():
    assert len(set(bundled_names())) == 16


@pytest.mark.parametrize("name", bundled_names())
def test_the_stored_inputs_win(name):
    world = World([bundled_level(name)], threads=1)
    inputs = winning_inputs(name)
    frames = world.step(inputs[:, None], frames=1)
    assert world.won[0]
    assert frames[0] == len(inputs)


@pytest.mark.parametrize("name", bundled_names())
def test_the_level_bytes_are_those_of_the_drawing(name):
    drawing = (FOLDER / f"{name}.txt").read_text()
    assert parse_drawing(drawing) == bundled_level(name).map_data


@pytest.mark.parametrize("name", bundled_names())
def test_the_exit_is_shut_until_its_switch_is_hit(name):
    level = bundled_level(name)
    world = World([level], threads=1)
    switch = np.nonzero(level.entities[:, 0] == EntityType.EXIT_SWITCH)[0][0]
    for action in winning_inputs(name):
        open_before = not world.entity_active[0, switch]
        world.step([action], frames=1)
        if world.won[0]:
            assert open_before


def test_doing_nothing_wins_no_level():
    names = bundled_names()
    world = World([bundled_level(name) for name in names])
    world.step(np.zeros(len(names), np.uint8), frames=2000)
    assert not world.won.any()


def test_an_unknown_name_suggests_a_known_one():
    with pytest.raises(LevelError, match="did you mean 'wall_jump'"):
        bundled_level("walljump")


def test_one_name_stands_for_all_of_them_and_their_wins():
    names = [name for name, _ in open_grouped(["bundled"])]

    assert names == [bundled_level(name).name for name in bundled_names()]
    wins = [winning_inputs(name) for name in bundled_names()]
    assert [w.tolist() for w in winning_actions("bundled")] == [w.tolist() for w in wins]
    check_names(["bundled", "mirrored:bundled"])
