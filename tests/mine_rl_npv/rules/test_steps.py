"""The compiled rules against slow ones, and money against the checker."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mine_rl_npv.config import MineConfig
from mine_rl_npv.data.synthetic import Deposit
from mine_rl_npv.optimise.check import check_shares
from mine_rl_npv.rules import steps
from mine_rl_npv.rules.choices import Actions, Clock, Kind

DEPOSIT = Deposit(6, 5, 4, seed=3, richness=0.6)


def game_of(n=1, **options):
    config = MineConfig(data="synthetic", deposit=DEPOSIT, **options)
    game = config.game(n)
    game.pits.seed[:] = np.arange(1, n + 1).astype(np.uint64) * 7919
    game.begin(np.arange(n), config.mines().chosen("train"))
    return game


def slow_open_columns(layout, mined, closed):
    """Columns whose topmost unmined block waits for nothing."""
    opened = []
    for c in range(len(layout.column_start) - 1):
        blocks = range(layout.column_start[c], layout.column_start[c + 1])
        left = [b for b in blocks if b not in mined]
        if left and c not in closed:
            graph = layout.graph
            needed = graph.index[graph.pointer[left[0]] : graph.pointer[left[0] + 1]]
            if all(int(p) in mined for p in needed):
                opened.append(c)
    return opened


@pytest.mark.parametrize(
    "options",
    [
        {"kind": Kind.cpit},
        {"kind": Kind.pcpsp},
        {"kind": Kind.daily},
        {"kind": Kind.cpit, "clock": Clock.period},
        {"kind": Kind.cpit, "actions": Actions.block},
    ],
)
def test_masks_equal_brute_force_and_rewards_add_up_to_the_checked_value(options):
    game = game_of(**options)
    layout, instance = game.mines.layouts[0], game.mines.layouts[0].instance
    mined, closed, rng, total = set(), set(), np.random.default_rng(0), 0.0
    width = layout.value.shape[1]
    share = np.zeros((instance.blocks, width, instance.periods))
    daily_value, kilograms = 0.0, 0
    while not (game.terminated[0] or game.truncated[0]):
        mask = game.masks()[0]
        columns = slow_open_columns(layout, mined, closed)
        period = game.clock == steps.PERIOD
        real = mask[:-1] if period else mask
        found = np.flatnonzero(real.reshape(-1, width).any(axis=1))
        if period:
            assert set(found) <= set(columns)
        else:
            assert_array_equal(found, columns)
        action = int(rng.choice(np.flatnonzero(mask)))
        game.advance(np.array([action]))
        total += float(game.reward[0])
        if game.entry[0] == 0:
            continue
        b, d = int(game.entry[0]) - 1, action % width
        if game.day[0] == steps.NOWHERE:
            closed.add(action // width)
            continue
        mined.add(b)
        t = int(game.day[0])
        if game.clock == steps.TONNAGE:
            assert t == kilograms // game.arena.room[0, 0, 0]
            daily_value += layout.value[b, 0] * game.daily_discount**t
            kilograms += int(game.arena.use[b, 0, 0])
        else:
            share[layout.block[b], d, t] = 1.0
    assert_allclose(total * game.arena.scale[0], game.pits.money[0], rtol=1e-4)
    if game.clock == steps.TONNAGE:
        assert_allclose(game.pits.money[0], daily_value, rtol=1e-9)
        assert len(mined) == len(layout.block)
    else:
        verdict = check_shares(instance, share)
        assert verdict.feasible, verdict.faults
        assert_allclose(game.pits.money[0], verdict.value, rtol=1e-9)


@pytest.mark.parametrize("actions", [Actions.cone, Actions.bench])
def test_macros_move_their_targets_with_all_they_need(actions):
    game = game_of(kind=Kind.cpit, actions=actions)
    game.watch({"pit"})
    layout, instance = game.mines.layouts[0], game.mines.layouts[0].instance
    rng, steps = np.random.default_rng(1), 0
    while not (game.terminated[0] or game.truncated[0]):
        game.advance(np.array([rng.choice(np.flatnonzero(game.masks()[0]))]))
        steps += 1
    stamp = game.stamp[0, : len(layout.block)]
    share = np.zeros((instance.blocks, 1, instance.periods))
    mined = np.flatnonzero(stamp > 0)
    share[layout.block[mined], 0, stamp[mined] - 1] = 1.0
    verdict = check_shares(instance, share)
    assert verdict.feasible, verdict.faults
    assert_allclose(game.pits.money[0], verdict.value, rtol=1e-9)
    assert steps < len(mined)


def test_an_action_that_can_do_nothing_costs_a_step_and_ends_at_the_limit():
    game = game_of(kind=Kind.cpit, max_steps=7, invalid_reward=-0.5)
    blocked = 7
    while game.masks()[0, blocked]:
        game.advance(np.array([blocked]))
    dug = int(game.pits.depth[0, blocked])
    for _ in range(dug, 7):
        assert not game.truncated[0]
        game.advance(np.array([blocked]))
        assert game.reward[0] == -0.5
        assert game.entry[0] == 0
    assert game.pits.depth[0, blocked] == dug
    assert game.truncated[0]


def test_pits_are_independent_of_how_many_play():
    many, one = game_of(5, kind=Kind.cpit, deposits=3), game_of(1, kind=Kind.cpit, deposits=3)
    actions = np.zeros(5, np.int64)
    for _ in range(30):
        steps.sample_columns(many.pits, 1, actions)
        one.advance(actions[:1])
        many.advance(actions)
        assert one.reward[0] == many.reward[0]
        assert_array_equal(one.pits.depth[0], many.pits.depth[0])


def test_a_saved_game_goes_on_exactly():
    game = game_of(2, kind=Kind.cpit)
    actions = np.zeros(2, np.int64)
    for _ in range(10):
        steps.sample_columns(game.pits, 1, actions)
        game.advance(actions)
    other = game_of(2, kind=Kind.cpit)
    other.load(game.state())
    for _ in range(10):
        steps.sample_columns(game.pits, 1, actions)
        game.advance(actions)
        again = np.zeros(2, np.int64)
        steps.sample_columns(other.pits, 1, again)
        assert_array_equal(again, actions)
        other.advance(again)
        assert_array_equal(other.reward, game.reward)


def test_a_plant_destination_can_be_chosen_and_pays_differently():
    game = game_of(kind=Kind.pcpsp)
    column = int(np.flatnonzero(game.masks()[0])[0]) // 2
    values = []
    for d in (0, 1):
        game.begin(np.zeros(1, np.int64), np.zeros(1, np.int64))
        game.advance(np.array([2 * column + d]))
        values.append(float(game.pits.money[0]))
    assert values[0] != values[1]
