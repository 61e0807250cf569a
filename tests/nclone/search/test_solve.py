"""The searcher as a player: every win it yields wins, and each is shorter than the one before."""

import numpy as np
import pytest

from nclone.levels.bundled import bundled_level, winning_inputs
from nclone.levels.format import pack_level
from nclone.levels.inputs import Inputs
from nclone.levels.level import load_level
from nclone.search.solve import shortened, solutions, solve
from nclone.sim.world import World


def win_frame(level, actions):
    """The frame of the win; -1 where the actions do not win on their last frame."""
    world = World([level], threads=1)
    frames = int(world.step(actions[:, None], frames=1)[0])
    return frames if world.won[0] and frames == len(actions) else -1


@pytest.mark.parametrize("name", ["walk", "jump", "switch_first"])
def test_every_solution_wins_on_its_last_frame_and_is_shorter_than_the_last(name):
    level = bundled_level(name)
    found = list(solutions(level, budget_frames=60_000))
    assert found
    lengths = [win_frame(level, s.actions) for s in found]
    assert lengths == [s.frames for s in found]
    assert lengths == sorted(set(lengths), reverse=True)


def test_the_best_of_a_short_search_is_not_much_longer_than_a_stored_solution():
    level = bundled_level("walk")
    best = solve(level, budget_frames=60_000)
    assert best is not None
    assert best.frames <= 1.1 * len(winning_inputs("walk"))


def test_a_level_without_a_way_to_its_exit_is_not_solved():
    tiles = np.ones((25, 44), int)
    tiles[11, 3:8] = 0
    shut = [[0, 14, 46, 0, 0], [3, 74, 46, 0, 0], [4, 64, 46, 0, 0]]
    assert solve(load_level(pack_level(tiles, shut)), budget_frames=4000) is None


def test_a_trap_door_on_the_shortest_path_is_got_round_without_distances():
    best = solve(bundled_level("trap_door"))
    assert best is not None
    assert win_frame(bundled_level("trap_door"), best.actions) == best.frames


@pytest.mark.parametrize("name", ["trap_door", "walk"])
def test_the_budget_bounds_all_that_is_simulated(name):
    budget, one_try = 50_000, 400
    spent = [s.frames_spent for s in solutions(bundled_level(name), budget)]
    assert all(frames <= budget + 8 * one_try for frames in spent)


def test_waiting_is_left_out():
    level = bundled_level("walk")
    first = next(solutions(level, budget_frames=60_000)).actions
    steps = np.append([0] * 20, first[::4]).astype(np.uint8)
    actions, _ = shortened(level, Inputs(steps, np.ones(len(steps), np.uint8)))
    assert len(actions) <= len(first) + 4
    assert win_frame(level, actions) == len(actions)
