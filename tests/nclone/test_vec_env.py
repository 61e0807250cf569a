"""The native batch and the plain environment: contracts, equality, exact resume."""

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from stable_baselines3.common.env_checker import check_env as check_with_sb3

import nclone
from frugal_rl.memory.choices import LevelData
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.testing.env import check_env
from frugal_rl.testing.vec_env import check_vec_env
from nclone import budget
from nclone.config import NppConfig
from nclone.env import NppEnv
from nclone.spec import Observation
from nclone.vec_env import NppVecEnv

CONFIG = NppConfig(levels=("walk", "jump", "switch_first"))


def batch(num_envs: int, storage: Storage = Storage.lossless, **options) -> NppVecEnv:
    encoding = Encoding.choose(CONFIG.spec(), storage)
    return NppVecEnv(CONFIG, num_envs, encoding, MemoryProfile(**options), threads=1)


def test_the_environment_keeps_the_contract():
    check_env(CONFIG, steps=400)


def test_the_environment_passes_the_checker_of_stable_baselines3():
    check_with_sb3(NppEnv(CONFIG), warn=True)


@pytest.mark.parametrize("storage", [Storage.lossless, Storage.dense])
def test_the_native_batch_equals_single_environments(storage):
    encoding = Encoding.choose(CONFIG.spec(), storage)
    alone = MemoryProfile(level_data=LevelData.per_env)

    check_vec_env(
        lambda: CONFIG.make_vec(4, encoding, MemoryProfile(), None, "train"),
        lambda: CONFIG.make_vec(4, encoding, alone, None, "train"),
        steps=400,
    )


def test_the_quick_start_works():
    env = nclone.make(memory="parallel", levels=("walk",))
    many = nclone.make_vec(5, memory="parallel", levels=("walk",))

    assert gym.make("nclone/Npp-v0").observation_space == env.observation_space
    assert env.observation_space.contains(env.reset(seed=0)[0])
    assert many.reset(0)["cell"].shape == (5, 2)


def test_a_restored_batch_goes_on_bit_for_bit():
    ours, theirs = batch(6), batch(6)
    actions = np.random.default_rng(1).integers(0, 6, (600, 6))
    ours.reset(3)
    for a in actions[:300]:
        ours.step(a)
    theirs.load(ours.state())

    for a in actions[300:]:
        x, y = ours.step(a), theirs.step(a)
        assert_array_equal(x.reward, y.reward)
        assert_array_equal(x.done, y.done)
        for name in x.rows:
            assert_array_equal(x.rows[name], y.rows[name])


def test_the_evaluation_deals_out_all_levels_equally_often():
    encoding = Encoding.choose(CONFIG.spec(), Storage.lossless)
    env = NppVecEnv(CONFIG, 6, encoding, MemoryProfile(), "eval", threads=1)

    rows = env.reset(0)

    assert_array_equal(np.bincount(rows["level_id"]), [2, 2, 2])


def test_the_reward_is_the_sum_of_its_components():
    env = batch(8)
    env.reset(0)
    rng = np.random.default_rng(0)
    total, checked = np.zeros(8), 0
    for _ in range(1500):
        step = env.step(rng.integers(0, 6, 8))
        total += step.reward
        if step.ended is not None:
            stats = step.ended.stats
            parts = sum(v for name, v in stats.items() if name.startswith("reward_"))
            np.testing.assert_allclose(stats["return"], parts, atol=1e-9)
            np.testing.assert_allclose(total[step.ended.index], parts, atol=1e-3)
            total[step.ended.index] = 0.0
            checked += len(parts)
    assert checked >= 8


def test_a_truncated_episode_hands_out_its_last_observation():
    env = batch(4)
    env.reset(0)
    for _ in range(400):
        step = env.step(np.zeros(4, np.int64))
        if len(step.final_index):
            break
    assert step.truncated[step.final_index].all()
    assert_array_equal(step.final_rows["time_remaining"], 0.0)
    assert_array_equal(step.rows["time_remaining"][step.final_index], 1.0)


WIDER = NppConfig(obs=Observation.foresight, levels=("simplest", "mine_heavy"))
"""Its first level has fewer entities than most."""


@pytest.mark.parametrize(("config", "num_envs"), [(CONFIG, 3), (CONFIG, 17), (WIDER, 5)])
def test_the_planned_bytes_are_those_of_the_arrays(config, num_envs):
    encoding = Encoding.choose(config.spec(), Storage.lossless)
    planned = {p.name: p.ram_bytes for p in budget.parts(config, num_envs, 1, encoding)}

    env = NppVecEnv(config, num_envs, encoding, MemoryProfile(), threads=1)
    env.reset(0)
    for number in env.game.levels.number:
        env.game.distances.acquire(int(number), 0)

    assert planned == {f"env {name}": size for name, size in env.parts().items()}
