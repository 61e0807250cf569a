"""The predecessor's environment keeps its known defects, and ours does not have them."""

import numpy as np

from frugal_rl.testing.env import check_determinism, check_raw_fields, check_storages_agree
from mine_rl_npv.before.legacy import INVALID_REWARD, z_scores
from mine_rl_npv.config import MineConfig
from mine_rl_npv.data.synthetic import Deposit

DEPOSIT = Deposit(6, 6, 5, seed=1, richness=0.6)


def legacy(**options):
    return MineConfig(data="synthetic", deposit=DEPOSIT, legacy=True, **options)


def play(env, steps=1000):
    env.reset(seed=0)
    rng, rewards = np.random.default_rng(0), []
    for _ in range(steps):
        mask = env.mask() if hasattr(env, "mask") else env.action_masks()
        _, reward, over, late, _ = env.step(int(rng.choice(np.flatnonzero(mask))))
        rewards.append(reward)
        if over or late:
            break
    return rewards


def test_it_keeps_the_contract_of_observations():
    config = legacy(max_steps=30)
    check_determinism(config, 20, 0)
    check_raw_fields(config, 20, 0)
    check_storages_agree(config, 20, 0)


def test_an_episode_starves_after_eleven_days_and_ours_goes_on():
    assert len(play(legacy(min_tonnes=50_000.0 * 10).make())) == 11
    ours = MineConfig(data="synthetic", deposit=DEPOSIT)
    assert len(play(ours.make())) == len(ours.mines().layouts[0].block)


def test_an_invalid_action_costs_a_hundred_and_no_time_passes():
    env = legacy().make(seed=0)
    blocked = 7
    while env.mask()[blocked]:
        env.step(blocked)
    day = env.day
    _, reward, _, _, _ = env.step(blocked)
    assert reward == INVALID_REWARD
    assert env.day == day


def test_it_pays_in_z_scores_where_ours_pays_in_money():
    grid = np.array([0.0, 1.0, 2.0, 3.0])
    assert z_scores(grid)[0] == 0
    assert z_scores(grid)[1] < 0
    rewards = play(legacy(min_tonnes=0.0).make())
    ours = play(MineConfig(data="synthetic", deposit=DEPOSIT).make())
    assert np.mean(np.array(rewards) < 0) > 0.4
    assert np.mean(np.array(ours) > 0) > 0.4


def test_the_channels_stand_in_the_order_of_the_specification():
    env = legacy().make(seed=0)
    top = int(np.flatnonzero(env.mask())[0])
    env.step(top)
    volume = env.raw()["volume"]
    assert volume.shape == (17, 6, 6, 5)
    assert volume[13].sum() == 1.0
    assert (volume[15] == 0).all()
    np.testing.assert_array_equal(volume[16] > 0, env.inside)
