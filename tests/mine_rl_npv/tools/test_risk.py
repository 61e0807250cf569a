"""Plans against uncertainty, and the names under which Gymnasium finds the mines."""

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose

import mine_rl_npv
from frugal_rl.errors import ConfigError
from mine_rl_npv.data.economics import Economics, model_instance
from mine_rl_npv.data.realisations import realised_models, value_of_information
from mine_rl_npv.data.synthetic import Deposit, block_model
from mine_rl_npv.optimise.check import check_periods
from mine_rl_npv.tools.risk import npv_matrix, toposort_plan


def test_a_plan_is_worth_on_its_own_model_what_the_checker_says_and_knowing_never_hurts():
    model = block_model(Deposit(8, 8, 5, seed=2, richness=0.5))
    cheap = Economics(copper_price=1.5, molybdenum_price=5.0)
    instances = [model_instance(m, cheap) for m in realised_models(model, 3, seed=1)]
    plans = [toposort_plan(instance) for instance in instances]
    npv = npv_matrix(instances, plans)
    for k in range(3):
        assert_allclose(npv[k, k], check_periods(instances[k], plans[k]).value, rtol=1e-9)
    assert value_of_information(npv)["value_of_information"] >= 0


@pytest.mark.parametrize("name", ["Cpit", "Pcpsp", "Daily"])
def test_gymnasium_finds_the_mines_by_name(name):
    assert mine_rl_npv.__doc__
    env = gym.make(f"mine/{name}-v0", data="porphyry_tiny", disable_env_checker=True)
    observation, _ = env.reset(seed=0)
    mask = env.unwrapped.action_masks()
    assert observation["action_mask"].tolist() == mask.tolist()
    _, reward, *_ = env.step(int(np.flatnonzero(mask)[0]))
    assert np.isfinite(reward)


def test_choices_of_a_mine_are_words():
    with pytest.raises(ConfigError, match=r"env\.actions=blok is no choice; did you mean 'block'"):
        gym.make("mine/Cpit-v0", data="porphyry_tiny", actions="blok")
