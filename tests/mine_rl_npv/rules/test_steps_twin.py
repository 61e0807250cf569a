"""Digging, step by step against a twin in plain Python: rewards, periods, masks, ends."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mine_rl_npv.config import MineConfig
from mine_rl_npv.data.synthetic import Deposit
from mine_rl_npv.rules import steps
from mine_rl_npv.rules.choices import Actions, Clock, Kind

DEPOSIT = Deposit(5, 4, 4, seed=5, richness=0.6)
FREE = -0.25
"""What an action costs that can do nothing."""


class Twin:
    """One pit by lists and sets. Blocks are numbered by column, the top one first."""

    def __init__(self, game, n=0):
        self.game, self.k = game, int(game.pits.mine[n])
        self.layout = game.mines.layouts[self.k]
        arena, k = game.arena, self.k
        first, end = int(arena.first[k]), int(arena.first[k] + arena.blocks[k])
        self.value, self.use = arena.value[first:end], arena.use[first:end]
        self.room, self.discount = arena.room[k].copy(), arena.discount[k]
        self.scale = float(arena.scale[k])
        self.periods = self.room.shape[1]
        self.rate = int(self.room[0, 0])
        self.mined, self.closed = {}, set()
        self.clock, self.kilograms, self.steps, self.money = 0, 0, 0, 0.0

    def needed(self, b):
        graph = self.layout.graph
        return graph.index[graph.pointer[b] : graph.pointer[b + 1]].tolist()

    def top(self, column):
        """The block that a column offers; None where it offers none."""
        start = self.layout.column_start
        for b in range(int(start[column]), int(start[column + 1])):
            if b not in self.mined:
                free = column not in self.closed and all(p in self.mined for p in self.needed(b))
                return b if free else None
        return None

    @property
    def columns(self):
        return len(self.layout.column_start) - 1

    def fits(self, b, d, t):
        return bool((self.use[b, d] <= self.room[:, t]).all())

    def period(self, b, d):
        """When a block goes; None where there is no room for it."""
        if self.game.clock == steps.TONNAGE:
            return self.kilograms // self.rate
        if self.game.clock == steps.PERIOD:
            return self.clock if self.fits(b, d, self.clock) else None
        first = max((self.mined[p] for p in self.needed(b)), default=0)
        return next((t for t in range(first, self.periods) if self.fits(b, d, t)), None)

    def mask(self):
        destinations = self.value.shape[1]
        out = []
        for column in range(self.columns):
            b = self.top(column)
            for d in range(destinations):
                open_now = b is not None
                if open_now and self.game.clock == steps.PERIOD:
                    open_now = self.fits(b, d, self.clock)
                out.append(open_now)
        return out + [True] * (self.game.clock == steps.PERIOD)

    def step(self, action):
        """Reward, entry, day, terminated, truncated."""
        self.steps += 1
        column, d = divmod(action, self.value.shape[1])
        reward, entry, day, ended = FREE, 0, 0, False
        if column >= self.columns:
            self.clock += 1
            reward, ended = 0.0, self.clock >= self.periods
        elif (b := self.top(column)) is not None:
            t = self.period(b, d)
            if t is None and self.game.clock == steps.EARLIEST:
                reward, entry, day = 0.0, b + 1, steps.NOWHERE
                self.closed.add(column)
            elif t is not None:
                reward, entry, day = self.dig(b, d, t) / self.scale, b + 1, t
        over = ended or all(self.top(c) is None for c in range(self.columns))
        return reward, entry, day, over, not over and self.steps >= self.game.max_steps

    def dig(self, b, d, t):
        if self.game.clock == steps.TONNAGE:
            worth = self.value[b, d] * self.game.daily_discount**t
            self.kilograms += int(self.use[b, d, 0])
        else:
            worth = self.value[b, d] * self.discount[t]
            self.room[:, t] -= self.use[b, d]
        self.mined[b] = t
        self.money += worth
        return worth


def game_of(n, seed, **options):
    config = MineConfig(data="synthetic", deposit=DEPOSIT, invalid_reward=FREE, **options)
    game = config.game(n)
    game.pits.seed[:] = np.arange(1, n + 1).astype(np.uint64) * np.uint64(7919 + seed)
    game.begin(np.arange(n), config.mines().chosen("train"))
    return game


KINDS = [
    {"kind": Kind.cpit},
    {"kind": Kind.pcpsp},
    {"kind": Kind.daily},
    {"kind": Kind.cpit, "clock": Clock.period},
    {"kind": Kind.pcpsp, "clock": Clock.period},
    {"kind": Kind.cpit, "actions": Actions.block},
]


@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize("careless", [False, True])
def test_every_step_is_the_twins(options, careless):
    """A careless player also takes actions that the mask forbids."""
    games = 3
    game = game_of(games, 1, **options)
    twins, rng = [Twin(game, n) for n in range(games)], np.random.default_rng(3)
    going = set(range(games))
    while going:
        masks = game.masks()
        actions = np.zeros(games, np.int64)
        for n in range(games):
            if n in going:
                assert_array_equal(masks[n], twins[n].mask())
            allowed = np.flatnonzero(masks[n])
            any_one = careless and rng.random() < 0.3
            actions[n] = rng.integers(masks.shape[1]) if any_one else rng.choice(allowed)
        game.advance(actions)
        for n in sorted(going):
            reward, entry, day, over, cut = twins[n].step(int(actions[n]))
            assert_allclose(game.reward[n], reward, rtol=1e-5, atol=1e-9)
            found = int(game.entry[n]), int(game.day[n])
            assert found == (entry, day)
            assert (bool(game.terminated[n]), bool(game.truncated[n])) == (over, cut)
            assert_allclose(game.pits.money[n], twins[n].money, rtol=1e-9, atol=1e-6)
            if over or cut:
                going.discard(n)
        if going and len(going) < games:  # ended pits go on elsewhere, and must not be read
            ended = np.array(sorted(set(range(games)) - going))
            game.begin(ended)


@pytest.mark.parametrize("options", KINDS)
def test_a_new_episode_begins_with_an_untouched_pit(options):
    game = game_of(2, 2, **options)
    first = {name: values.copy() for name, values in game.pits._asdict().items()}
    rng = np.random.default_rng(0)
    for _ in range(12):
        masks = game.masks()
        game.advance(np.array([rng.choice(np.flatnonzero(mask)) for mask in masks]))
    game.begin(np.array([1]))
    for name, values in game.pits._asdict().items():
        if name not in ("seed", "open", "mine"):
            assert_array_equal(values[1], first[name][1], name)
    assert game.pits.steps[0] == 12
    opened = game.pits.open[1, : game.pits.count[1]]
    assert set(opened) == set(first["open"][1, : first["count"][1]])


def test_room_is_taken_by_the_kilogram():
    game = game_of(1, 3, kind=Kind.cpit)
    full = game.arena.room[0].copy()
    used, rng = np.zeros_like(full), np.random.default_rng(1)
    while not game.terminated[0]:
        game.advance(np.array([rng.choice(np.flatnonzero(game.masks()[0]))]))
        if game.entry[0] and game.day[0] != steps.NOWHERE:
            used[:, int(game.day[0])] += game.arena.use[int(game.entry[0]) - 1, 0]
        assert_array_equal(game.pits.room[0], full - used)
        assert (game.pits.room[0] >= 0).all()


@pytest.mark.parametrize("limit", [1, 5])
def test_an_episode_is_cut_after_so_many_steps(limit):
    game = game_of(1, 4, kind=Kind.cpit, max_steps=limit)
    for step in range(1, limit + 1):
        game.advance(np.array([np.flatnonzero(game.masks()[0])[0]]))
        assert bool(game.truncated[0]) == (step == limit)


def test_random_columns_are_open_ones_and_each_has_its_turn():
    game = game_of(4, 5, kind=Kind.pcpsp)
    masks, actions, seen = game.masks(), np.zeros(4, np.int64), [set() for _ in range(4)]
    for _ in range(400):
        steps.sample_columns(game.pits, game.arena.value.shape[1], actions)
        for n, action in enumerate(actions.tolist()):
            assert masks[n, action]
            seen[n].add(action)
    assert all(len(s) == int(masks[n].sum()) for n, s in enumerate(seen))


def test_random_states_of_pits_are_their_own():
    game = game_of(3, 6, kind=Kind.cpit)
    actions, drawn = np.zeros(3, np.int64), []
    for _ in range(50):
        steps.sample_columns(game.pits, 1, actions)
        drawn.append(actions.copy())
    columns = np.array(drawn).T.tolist()
    assert columns[0] != columns[1]
    assert columns[1] != columns[2]
