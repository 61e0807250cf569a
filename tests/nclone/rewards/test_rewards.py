"""Reward components against the specification's table, and what shaping must never change."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone.graph.distance import DistanceTables
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH
from nclone.graph.landmarks import Landmarks
from nclone.rewards import (
    COMPONENTS,
    PRESETS,
    Discount,
    Events,
    Motion,
    Reach,
    Reward,
    RewardTracker,
    Shaping,
    TerminalPotential,
    TimePenalty,
)

GAMMA = 0.97
SWITCH, EXIT, MINE = (252.0, 60.0), (444.0, 60.0), (132.0, 60.0)


class Walk:
    """`count` worlds in a corridor whose state the test sets step by step."""

    def __init__(self, config: Reward, count: int = 1, mines: int = 1, gamma: float = GAMMA):
        tiles = np.ones((25, 44), np.uint8)
        tiles[1:3, 1:21] = 0
        goals = {EXIT_SWITCH: SWITCH, EXIT_DOOR: EXIT}
        xy = np.array([MINE] * mines, float).reshape(-1, 2)
        marks = Landmarks(
            "walk", tiles, (36.0, 60.0), goals, mines_xy=xy, mine_entities=np.arange(mines)
        )
        self.tables = DistanceTables()
        level = np.full(count, self.tables.add_level(marks))
        entry = np.full(count, self.tables.acquire(0, 0))
        self.tracker = RewardTracker(config, gamma, count)
        self.motion = Motion(*(np.zeros(count) for _ in range(8)))
        self.motion.floor_ny[:] = -1
        self.motion.ceiling_ny[:] = 1
        self.motion.y[:] = 62
        self.motion.x[:] = 36
        self.hit = np.zeros(count, bool)
        self.states = np.zeros((count, mines + 1, 2), np.int8)[..., 0]  # a field, as in the game
        self.paths = RewardTracker.paths(self.tables, entry, level, self.hit, self.states)
        self.frame = np.zeros(count, np.int64)
        self.count = count
        self.tracker.begin(np.ones(count, bool), self.motion, self.paths)

    def step(self, action=2, frames=1, limit=1000, **events):
        self.frame += frames
        flags = [
            np.full(self.count, bool(events.pop(name, False)))
            for name in ("won", "died", "died_by_mine", "truncated", "switch_now", "buffered_jump")
        ]
        assert not events
        self.hit |= flags[4]
        whole = [np.full(self.count, v, np.int64) for v in (action, frames)]
        limits = np.full(self.count, limit, np.int64)
        self.tracker.step(self.motion, self.paths, Events(*whole, self.frame, limits, *flags))
        return dict(zip(COMPONENTS, self.tracker.components[0], strict=True))


def without_shaping(**changes) -> Reward:
    return dataclasses.replace(Reward(), shaping=Shaping(0, 0, 0), **changes)


def test_a_step_costs_time_and_standing_still_costs_more():
    walk = Walk(without_shaping())
    assert walk.step(action=2, frames=4)["time"] == pytest.approx(-0.012)
    assert walk.step(action=2)["standing"] == 0
    assert walk.step(action=0)["standing"] == -0.05
    walk.motion.vx[:] = 0.2
    assert walk.step(action=0)["standing"] == 0


def test_winning_pays_the_more_the_earlier():
    walk = Walk(without_shaping())
    parts = walk.step(frames=1000, limit=4000, won=True)
    assert (parts["completed"], parts["completion_bonus"]) == (20, pytest.approx(1.6))


@pytest.mark.parametrize(("mine", "value"), [(False, -2), (True, -3)])
def test_death_replaces_all_other_terms_of_its_step(mine, value):
    walk = Walk(without_shaping())
    parts = walk.step(action=0, died=True, died_by_mine=mine, switch_now=True, buffered_jump=True)
    assert parts == {name: value if name == "death" else 0 for name in COMPONENTS}
    assert walk.tracker.reward[0] == value


def test_switch_buffered_jump_and_truncation_have_the_values_of_the_table():
    parts = Walk(without_shaping()).step(switch_now=True, buffered_jump=True, truncated=True)
    assert (parts["switch"], parts["buffered_jump"], parts["truncation"]) == (2, 0.02, -2)


def test_the_progressive_time_penalty_has_three_phases():
    walk = Walk(without_shaping(time_penalty=TimePenalty.progressive))
    values = [walk.step(limit=10)["time"] for _ in range(10)]
    assert values == [-0.001] * 2 + [-0.003] * 5 + [-0.006] * 3


def test_new_cells_pay_once_and_are_counted_at_four_sizes():
    walk = Walk(without_shaping(exploration=(1.0, 10.0, 100.0, 1000.0)))
    paid = []
    for x in (36, 60, 36, 100, 200):
        walk.motion.x[:] = x
        paid.append(walk.step()["exploration"])
    assert paid == [0, 1, 0, 11, 111]
    assert walk.tracker.explored[0].tolist() == [4, 3, 2, 1]


def test_the_parts_of_the_potential_follow_their_formulas():
    walk = Walk(Reward())
    scale = walk.tables.scale_px[0]
    walk.motion.x[:], walk.motion.y[:] = 198, 54
    walk.motion.vy[:] = 5.2
    walk.step()
    threshold = 6 - 4 / 3
    expected = (
        1 - 12 * 4 / scale,
        1 - np.exp(-np.hypot(66, 6) / 100),
        1 - (5.2 - threshold) / threshold,
    )
    assert walk.tracker.parts[0] == pytest.approx(expected)
    assert walk.tracker.phi[0] == pytest.approx(np.dot(expected, (0.3, 0.12, 0.09)))


def test_with_the_reach_of_the_path_every_step_towards_the_switch_pays():
    walk = Walk(dataclasses.replace(Reward(), shaping=Shaping(reach=Reach.path)), mines=0)
    potentials = []
    for x in np.arange(36.0, 252.0, 12):
        walk.motion.x[:] = x
        walk.step()
        potentials.append(walk.tracker.parts[0, 0])
    assert potentials[0] < 0.01
    assert (np.diff(potentials) > 0).all()


@pytest.mark.parametrize(("state", "x", "value"), [(0, 120, 0), (1, 120, 1), (2, 120, 1)])
def test_only_deadly_mines_are_a_hazard_and_contact_is_the_worst(state, x, value):
    walk = Walk(Reward())
    walk.states[:] = state
    walk.motion.x[:] = x
    walk.step()
    assert walk.tracker.parts[0, 1] == value


def test_hitting_the_switch_shapes_nothing_and_turns_to_the_door():
    walk = Walk(Reward(), mines=0)
    walk.motion.x[:] = 250
    walk.step()
    assert walk.step(switch_now=True)["shaping"] == 0
    before = walk.tracker.phi[0]
    walk.motion.x[:] = 300
    assert walk.step()["shaping"] == pytest.approx(GAMMA * walk.tracker.phi[0] - before)
    assert walk.tracker.phi[0] > before


@given(
    st.lists(st.tuples(st.floats(30, 460), st.floats(-7, 7)), min_size=1, max_size=30),
    st.sampled_from(["won", "died", "truncated"]),
    st.sampled_from(list(Discount)),
)
@settings(max_examples=40)
def test_shaping_changes_the_return_by_a_boundary_term_only(way, end, discount):
    config = dataclasses.replace(Reward(), shaping=Shaping(discount=discount))
    walk, plain = Walk(config), Walk(without_shaping())
    start, frames = walk.tracker.phi[0], 3
    gamma = GAMMA**frames if discount is Discount.frame else GAMMA
    shaped = unshaped = 0.0
    for t, (x, vy) in enumerate(way):
        for world in (walk, plain):
            world.motion.x[:], world.motion.vy[:] = x, vy
            world.step(frames=frames, **({end: True} if t == len(way) - 1 else {}))
        shaped += gamma**t * walk.tracker.components[0].sum()
        unshaped += gamma**t * plain.tracker.components[0].sum()

    last = gamma ** len(way) * walk.tracker.phi[0] if end == "truncated" else 0.0
    assert shaped - unshaped == pytest.approx(last - start, abs=1e-9)


@pytest.mark.parametrize(
    ("terminal", "value"),
    [
        (TerminalPotential.zero, lambda before, after: -before),
        (TerminalPotential.keep, lambda before, after: GAMMA * after - before),
        (TerminalPotential.none, lambda before, after: 0.0),
    ],
)
def test_the_last_step_is_shaped_as_the_terminal_choice_says(terminal, value):
    walk = Walk(dataclasses.replace(Reward(), shaping=Shaping(terminal=terminal)))
    before = walk.tracker.phi[0]
    walk.motion.x[:] = 100
    assert walk.step(won=True)["shaping"] == pytest.approx(value(before, walk.tracker.phi[0]))


def test_the_best_policy_of_a_small_walk_is_the_same_with_and_without_shaping():
    xs = 36.0 + 12 * np.arange(35)
    potentials = []
    for x in xs:
        walk = Walk(Reward(), mines=0)
        walk.motion.x[:] = x
        walk.step()
        potentials.append(walk.tracker.phi[0])

    def best(shape):  # value iteration; the last cell wins, both moves cost time
        values = np.zeros(len(xs))
        for _ in range(200):
            q = np.full((len(xs), 2), -np.inf)
            for s in range(len(xs) - 1):
                for a, to in enumerate((max(s - 1, 0), s + 1)):
                    won = to == len(xs) - 1
                    reward = -0.003 + 20.0 * won
                    reward += shape * (GAMMA * potentials[to] * (not won) - potentials[s])
                    q[s, a] = reward + GAMMA * values[to] * (not won)
            values[:-1] = q[:-1].max(axis=1)
        return q[:-1].argmax(axis=1)

    np.testing.assert_array_equal(best(0.0), best(1.0))


@pytest.mark.parametrize("name", PRESETS)
def test_component_sums_add_up_to_the_episode_return(name):
    walk, total = Walk(PRESETS[name], count=3), np.zeros(3)
    rng = np.random.default_rng(0)
    for t in range(20):
        walk.motion.x[:] = rng.uniform(30, 460, 3)
        walk.step(action=int(rng.integers(6)), switch_now=t == 7, won=t == 19)
        total += walk.tracker.reward
    np.testing.assert_allclose(walk.tracker.sums.sum(axis=1), total, rtol=1e-5)
    walk.tracker.begin(np.array([True, False, False]), walk.motion, walk.paths)
    assert walk.tracker.sums[0].any() == False  # noqa: E712
    assert walk.tracker.sums[1].any()


def test_sparse_pays_for_the_win_alone():
    walk = Walk(PRESETS["sparse"])
    assert sum(walk.step(action=0).values()) == 0
    assert walk.step(won=True)["completed"] == 1
    assert walk.tracker.sums.sum() == 1


def test_wrong_lengths_are_refused_by_name():
    with pytest.raises(ValueError, match=r"env\.reward\.progressive_time"):
        Reward(progressive_time=(1.0,))
    with pytest.raises(ValueError, match="gamma"):
        RewardTracker(Reward(), 0.0, 1)
