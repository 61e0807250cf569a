"""A game as an environment: ends, statistics, last observations and what is saved."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.testing.toy import TOY_SPEC, Toy, ToyBatch, ToyGame
from frugal_rl.testing.vec_env import check_vec_env
from frugal_rl.vec_env.game_env import GameVecEnv, game_state
from frugal_rl.vec_env.interface import env_seeds
from frugal_rl.vec_env.serial import SerialEnv

ENCODING = Encoding.choose(TOY_SPEC, Storage.lossless)


def test_one_batch_and_single_games_play_the_same():

    toy = Toy(episode_steps=9)
    check_vec_env(
        lambda: ToyBatch(3, ENCODING, toy.levels, 9),
        lambda: SerialEnv(toy, 3, ENCODING, MemoryProfile()),
    )


def test_the_last_observation_of_a_late_episode_is_the_one_before_the_new_begins():
    env, game = ToyBatch(4, ENCODING, 4, 1), ToyGame(4, 4, 1)
    env.reset(0)
    game.seed([np.random.default_rng(s) for s in env_seeds(4, 0)])
    game.begin(np.arange(4))
    actions = np.array([0, 1, 2, 3])
    step, told = env.step(actions), game.advance(actions)
    assert_array_equal(step.final_index, np.flatnonzero(told.truncated))
    assert len(step.final_index)
    assert_array_equal(step.final_rows["position"], game.observe(step.final_index)["position"])
    assert_array_equal(step.final_rows["trail"], game.observe(step.final_index)["trail"])


def test_a_return_is_the_sum_of_its_own_episodes_rewards():
    env = ToyBatch(5, ENCODING, 4, 7)
    env.reset(1)
    rng, total, ends = np.random.default_rng(0), np.zeros(5), 0
    for _ in range(60):
        step = env.step(rng.integers(0, 4, 5))
        total += step.reward
        if step.ended is not None:
            ends += len(step.ended.index)
            assert_array_equal(step.ended.stats["return"], total[step.ended.index])
            total[step.ended.index] = 0
    assert ends > 20


def test_a_game_may_count_returns_itself():
    class Counting(ToyGame):
        def outcomes(self, which):
            return super().outcomes(which) | {"return": np.full(len(which), 7.0)}

    env = GameVecEnv(Counting(2, 4, 1), ENCODING)
    env.reset(0)
    ended = env.step(np.zeros(2, np.int64)).ended
    assert_array_equal(ended.stats["return"], [7.0, 7.0])


def test_returns_go_on_after_a_resume():
    one, other = (ToyBatch(3, ENCODING, 4, 8) for _ in range(2))
    one.reset(0)
    rng = np.random.default_rng(0)
    for _ in range(5):
        one.step(rng.integers(0, 4, 3))
    other.load(one.state())
    for _ in range(3):
        actions = rng.integers(0, 4, 3)
        a, b = one.step(actions), other.step(actions)
    assert a.ended is not None
    assert_array_equal(a.ended.stats["return"], b.ended.stats["return"])


@pytest.mark.parametrize(
    "old",
    [{"pits": {"a": 1}, "returns": 0}, {"game": {"a": 1}, "returns": 0}, {"fights": {"a": 1}}],
)
def test_the_games_state_is_found_under_its_older_names(old):
    assert game_state(old) == {"a": 1}


def test_a_state_that_was_the_games_own_is_taken_whole():
    assert game_state({"world": 1, "rngs": 2}) == {"world": 1, "rngs": 2}
