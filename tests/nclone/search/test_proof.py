"""Proved levels are won by their inputs; levels that cannot be won are never proved."""

import numpy as np
import pytest

from nclone.levels.format import pack_level
from nclone.levels.generators import EASY, Recipe, draw_recipes, generate
from nclone.levels.level import load_level
from nclone.search.proof import Inputs, Prover, win_all, wins
from nclone.sim.simulate import simulate


@pytest.fixture(scope="module")
def prover():
    return Prover(entries=2000, budget_frames=100_000)


@pytest.mark.parametrize("category", EASY)
def test_easy_levels_are_proved_and_their_inputs_win(prover, category):
    levels = [generate(recipe) for recipe in draw_recipes(category, 12, base=5000)]
    proofs = [prover.prove(level) for level in levels]
    solved = [(lv, p.inputs) for lv, p in zip(levels, proofs, strict=True) if p.inputs is not None]
    assert len(solved) >= 10
    assert win_all([lv for lv, _ in solved], [inputs for _, inputs in solved]).all()


def test_the_inputs_win_at_every_frame_skip_and_in_the_recorded_simulation(prover):
    level = generate(Recipe("corridors", "mines", 3))
    inputs = prover.prove(level).inputs
    actions = inputs.per_step(1)
    assert (
        len(actions) == inputs.frames == 2 * len(inputs.per_step(2)) == 4 * len(inputs.per_step())
    )
    hor = np.choose(actions % 3, [0, -1, 1])

    states = simulate(level, hor, actions >= 3).i[0]

    assert states[-1] == 8
    with pytest.raises(ValueError, match="frame_skip=3"):
        inputs.per_step(3)


def test_the_same_seed_finds_the_same_inputs(prover):
    level = generate(Recipe("maze", "small", 1))
    first, second, other = (prover.prove(level, seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.inputs.actions, second.inputs.actions)
    np.testing.assert_array_equal(first.inputs.lengths, second.inputs.lengths)
    assert first.frames_spent == second.frames_spent != other.frames_spent


def room(door_height=1, switch=(40, 46), with_switch=True):
    """A closed corridor of one cell height: spawn, exit switch, locked door, exit."""
    tiles = np.ones((25, 44), int)
    tiles[11, 3:20] = 0
    records = [[0, 14, 46, 0, 0], [3, 74, 46, 0, 0], [4, 64, 46, 0, 0]]
    records += [[6, 48, 46, 0, 0], [7, *(switch if with_switch else (174, 98)), 0, 0]]
    return load_level(pack_level(tiles, records))


def test_a_locked_door_is_opened_on_the_way(prover):
    proof = prover.prove(room())
    assert proof.inputs is not None
    assert wins(room(), proof.inputs)


def test_a_level_without_a_way_is_not_proved(prover):
    assert prover.prove(room(with_switch=False)).inputs is None
    assert prover.solution(room(with_switch=False)) is None


def test_where_distances_lead_astray_the_solution_is_found_without_them(prover):
    level = generate(Recipe("arena", "plain", 5003))
    assert prover.prove(level).inputs is None

    assert wins(level, prover.solution(level))


def test_a_level_without_an_exit_is_not_proved(prover):
    level = load_level(pack_level(np.zeros((25, 44), int), [[0, 20, 20, 0, 0]]))
    assert prover.prove(level).inputs is None


def test_a_win_must_come_within_the_frame_limit():
    level = generate(Recipe("horizontal_corridor", "simpler", 4))
    free = Prover(entries=500, budget_frames=50_000).prove(level).inputs.frames
    assert Prover(entries=500, budget_frames=50_000, frame_limit=24).prove(level).inputs is None
    assert free > 24


def test_inputs_that_do_nothing_do_not_win():
    level = generate(Recipe("maze", "tiny", 0))
    assert not wins(level, Inputs(np.array([0], np.uint8), np.array([200], np.uint8)))
