"""Looking ahead while playing: what is foreseen happens, and the best of it is played."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from frugal_rl.errors import ConfigError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.run.compose import compose_run
from frugal_rl.run.evaluate import PolicyPlayer, policy_player
from npp_rl.choices import Lookahead
from npp_rl.lookahead import LIKELIEST, NO_PATH_PX, SAMPLED, SHUT_PX, LookaheadPlayer

WORDS = [
    "env=nclone", "agent=attention_fast", "tracking=disabled", "hardware.threads=1",
    "env.levels=[walk,jump,switch_first,mines]", "algo.num_envs=4",
]  # fmt: skip
LOOK = Lookahead(samples=6, steps=10, commit=3)


@pytest.fixture(scope="module")
def run():
    return compose_run(WORDS)


@pytest.fixture
def env(run):
    made = run.env.make_vec(4, run.encoding(), MemoryProfile(), None, "eval")
    made.reset(0)
    return made


@pytest.fixture(scope="module")
def policy(run):
    env = run.env.make_vec(1, run.encoding(), MemoryProfile(), None, "eval")
    torch.manual_seed(2)  # one that wins nothing by the worst of its futures
    return run.algo.build_policy(run, env)


def test_what_is_foreseen_happens_bit_for_bit(env, policy):
    player = LookaheadPlayer(policy, env, LOOK)
    for _ in range(4):
        which = np.arange(4)
        seen = player._futures(which, np.full((4, LOOK.steps), SAMPLED))
        foreseen = player.scratch.world
        for t in range(LOOK.steps):
            env.game.advance(seen.actions[:, t].astype(np.int64))
        for name in ("x", "y", "vx", "vy", "state", "frame"):
            real = env.game.world.worlds[name]
            np.testing.assert_array_equal(foreseen.worlds[name][:4], real)
        np.testing.assert_array_equal(player.scratch.path_left(which), env.game.path_left(which))


def test_looking_changes_nothing_in_the_worlds(env, policy):
    before = env.game.world.snapshot()
    LookaheadPlayer(policy, env, LOOK)(env.rows())
    for was, now in zip(before, env.game.world.arrays, strict=True):
        np.testing.assert_array_equal(was, now)


def test_the_likeliest_future_is_that_of_the_policy_alone(env, policy):
    player = LookaheadPlayer(policy, env, LOOK)
    seen = player._futures(np.arange(4), np.full((4, LOOK.steps), LIKELIEST)).actions
    alone, rows = PolicyPlayer(policy, True, env.tables), env.rows()
    for t in range(LOOK.steps):
        actions = alone(rows)
        np.testing.assert_array_equal(seen[:, t], actions)
        rows = env.step(actions).rows


def test_a_future_in_which_a_trap_door_falls_shut_comes_after_those_without(policy):
    run = compose_run([*WORDS, "env.levels=[trap_door]"])
    env = run.env.make_vec(2, run.encoding(), MemoryProfile(), None, "eval")
    env.reset(0)
    player = LookaheadPlayer(policy, env, Lookahead(samples=1, steps=24, commit=3))
    ahead = np.full((2, 24), 2)
    ahead[1, 5:] = 0  # stops before the trap door's switch
    seen = player._futures(np.arange(2), ahead)
    left = player.scratch.path_left(np.arange(2))

    assert player.scratch.world.door_closed[:2, 0].tolist() == [1, 0]
    paths = np.where(np.isfinite(left), -left, -NO_PATH_PX)
    reached = seen.worth - paths + np.array([SHUT_PX, 0.0])
    assert reached == pytest.approx(1e4 * np.round(reached / 1e4))  # switches, and nothing else
    assert not seen.fine[0]


def test_the_same_seed_plays_the_same_and_another_does_not(run, policy):
    def actions(seed):
        env = run.env.make_vec(4, run.encoding(), MemoryProfile(), None, "eval")
        player, rows, found = LookaheadPlayer(policy, env, LOOK, seed), env.reset(0), []
        for _ in range(6):
            found.append(player(rows))
            rows = env.step(found[-1]).rows
        return np.array(found)

    first = actions(1)
    np.testing.assert_array_equal(actions(1), first)
    assert (actions(2) != first).any()


def test_an_untrained_policy_wins_when_it_looks_ahead(env, policy):
    def wins(player):
        rows, count = env.reset(0), 0
        for _ in range(60):
            step = env.step(player(rows))
            rows = step.rows
            count += 0 if step.ended is None else int(step.ended.stats["success"].sum())
        return count

    player = LookaheadPlayer(policy, env, LOOK)
    assert wins(player) > wins(PolicyPlayer(policy, True, env.tables))
    assert 0 < player.tries <= player.looks
    assert player.frames > 4 * player.looks


def test_a_plan_ends_with_its_episode(env, policy):
    player = LookaheadPlayer(policy, env, replace(LOOK, commit=10))
    rows = env.step(player(env.rows())).rows
    env.game.begin(np.array([2]))
    player(rows)
    np.testing.assert_array_equal(player.place, [2, 2, 1, 2])
    assert player.looks == 5


def test_worlds_that_no_longer_count_are_not_looked_after(env, policy):
    player = LookaheadPlayer(policy, env, LOOK)
    player.only(np.array([True, False, True, False]))
    assert (player(env.rows())[[1, 3]] == 0).all()
    assert player.looks == 2


def test_the_agent_plays_ahead_only_where_asked(run, env, policy):
    assert isinstance(policy_player(run, policy, env, True), PolicyPlayer)
    asked = compose_run([*WORDS, "agent.lookahead.samples=2", "agent.lookahead.steps=8"])
    player = policy_player(asked, policy, env, True)
    assert isinstance(player, LookaheadPlayer)
    assert player.lookahead == Lookahead(2, 8, 6)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="commit is 9 of 8 steps"):
        Lookahead(2, 8, 9)
    with pytest.raises(ValueError, match=r"samples is -1"):
        Lookahead(-1)
    run = compose_run([*WORDS, "env.stack=2"])
    env = run.env.make_vec(1, run.encoding(), MemoryProfile(), None, "eval")
    with pytest.raises(ConfigError, match=r"env\.stack=1"):
        LookaheadPlayer(None, env, LOOK)
