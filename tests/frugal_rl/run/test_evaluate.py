"""Evaluation counts every environment's episodes alike and says how sure it is."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.memory import MemoryProfile, Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import ObservationSpec, Stored
from frugal_rl.observation.tables import Tables
from frugal_rl.run.config import Evaluation, Hardware, RunConfig
from frugal_rl.run.evaluate import (
    RandomPlayer,
    evaluate,
    evaluation_env,
    play_episodes,
    tried,
    wilson,
)
from frugal_rl.testing.toy import Toy
from frugal_rl.vec_env import registered
from frugal_rl.vec_env.interface import EndedEpisodes, Step, VectorEnv
from frugal_rl.vec_env.registered import Registered

torch.set_num_threads(1)
SPEC = ObservationSpec((Stored("x", (1,), np.float32),))


class Clocks(VectorEnv):
    """Environment i plays episodes of i + 1 steps; only the longest ones succeed."""

    def __init__(self, num_envs, level=False):
        self.num_envs, self.level = num_envs, level
        self.encoding, self.tables = Encoding.choose(SPEC, Storage.dense), Tables()
        self.action_space = spaces.Discrete(2)
        self.level_names = [f"clock_{i}" for i in range(num_envs)]

    def reset(self, seed):
        self.age = np.zeros(self.num_envs, np.int64)
        return {"x": np.zeros((self.num_envs, 1), np.float32)}

    def step(self, actions):
        self.age += 1
        length = np.arange(1, self.num_envs + 1)
        done = self.age == length
        index = np.flatnonzero(done)
        stats = {
            "return": length[index] * 1.0,
            "length": length[index] * 1.0,
            "success": (length[index] == self.num_envs) * 1.0,
        }
        if self.level:
            stats["level"] = index.astype(float)
        self.age[done] = 0
        rows = {"x": np.zeros((self.num_envs, 1), np.float32)}
        none = np.zeros(0, np.int64)
        ended = EndedEpisodes(index, stats) if len(index) else None
        reward = np.ones(self.num_envs, np.float32)
        return Step(rows, reward, done, np.zeros_like(done), none, {}, ended)

    def parts(self):
        return {}


def still(rows):
    return np.zeros(len(rows["x"]), np.int64)


def test_short_episodes_are_not_favoured():
    stats = play_episodes(Clocks(4), still, episodes=12, seed=0, episode_steps=4)
    assert sorted(stats["length"]) == [1.0] * 3 + [2.0] * 3 + [3.0] * 3 + [4.0] * 3
    assert stats["success"].mean() == 0.25


def test_levels_are_scored_apart_under_their_names():
    run = RunConfig(
        Toy(), MlpAgent(), PpoConfig(), MemoryProfile(), None, evaluation=Evaluation(episodes=8)
    )
    result = evaluate(run, Clocks(4, level=True), still)
    assert {name: s.means["success"] for name, s in result.levels.items()} == {
        "clock_0": 0.0, "clock_1": 0.0, "clock_2": 0.0, "clock_3": 1.0,
    }  # fmt: skip
    metrics = result.metrics()
    assert metrics["eval/success"] == 0.25
    assert metrics["eval/episodes"] == 8
    assert metrics["eval/level/clock_3/success"] == 1.0


def toy_run(**evaluation):
    return RunConfig(
        Toy(), MlpAgent(), PpoConfig(num_envs=4), MemoryProfile(), None,
        evaluation=Evaluation(episodes=40, num_envs=8, **evaluation), hardware=Hardware("cpu", 1),
    )  # fmt: skip


def random_score():
    run = toy_run()
    env = evaluation_env(run)
    return evaluate(run, env, RandomPlayer(env.encoding, env.tables, env.action_space, 7)).score


def test_equal_seeds_give_equal_results_and_leave_the_runs_random_numbers_alone():
    torch.manual_seed(3)
    state = torch.get_rng_state()
    assert random_score() == random_score()
    assert torch.equal(torch.get_rng_state(), state)


def test_random_play_keeps_to_the_mask():
    run = toy_run()
    env = evaluation_env(run)
    player = RandomPlayer(env.encoding, env.tables, env.action_space, 7)
    rows = env.reset(0) | {"age": np.zeros((8, 1), np.int32)}
    rows |= {"trail": np.zeros((8, 3, 5, 5), np.uint8), "moves": np.zeros((8, 21, 1), np.int8)}
    mask = env.game._mask()
    for _ in range(200):
        assert mask[np.arange(8), player(rows)].all()


@pytest.mark.parametrize(
    "space", [spaces.Box(-2, 3, (2,), np.float32), spaces.MultiDiscrete([2, 3])]
)
def test_random_play_fits_other_action_spaces(space):
    actions = RandomPlayer(Encoding.choose(SPEC, Storage.dense), Tables(), space, 0)(
        {"x": np.zeros((5, 1), np.float32)}
    )
    assert len(actions) == 5
    assert all(space.contains(a) for a in actions)


def test_wilsons_interval_has_its_published_values():
    # 0 of 10 and 5 of 10 at 95 %: Newcombe 1998, Wilson score without continuity correction
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


class Standing(gym.Env):
    """An episode that never ends by itself, as most do under a policy that stands still."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, False, False, {}


@pytest.mark.parametrize(("limit", "lasts"), [(0, 30), (7, 7)])
def test_episodes_that_never_end_are_cut_off_and_told(limit, lasts, monkeypatch, capsys):
    gym.register("Standing-v0", Standing)
    monkeypatch.setattr(registered, "TRIAL_STEPS", 30)
    env = Registered(id="Standing-v0", episode_steps=limit)
    wanted = Evaluation(episodes=3, num_envs=3)
    run = RunConfig(env, MlpAgent(), PpoConfig(), MemoryProfile(), None, evaluation=wanted)
    vec_env = evaluation_env(run)
    result = evaluate(run, vec_env, lambda rows: np.zeros(3, np.int64))
    vec_env.close()

    assert result.score.means["length"] == lasts
    told = "3 of 3 evaluated episodes had not ended after 30 steps" in " ".join(
        capsys.readouterr().out.split()
    )
    assert told == (limit == 0)
    assert tried(replace(run, env=Toy())) == Toy()
