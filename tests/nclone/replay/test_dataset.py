"""A dataset holds what the policy would have seen, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from stable_baselines3.common.policies import MultiInputActorCriticPolicy

from frugal_rl.errors import DataError
from frugal_rl.learn.imitate import imitate
from frugal_rl.store.offline import read_dataset
from nclone.config import NppConfig
from nclone.env import NppEnv
from nclone.levels.bundled import bundled_level, winning_inputs
from nclone.replay.dataset import Demonstration, collect, load_dataset, per_step, save_dataset
from nclone.replay.episodes import write_demonstrations
from nclone.spec import Observation

NAMES = ("walk", "jump", "locked_door")


def demonstrations():
    return [Demonstration(n, bundled_level(n), winning_inputs(n)) for n in NAMES]


@pytest.mark.parametrize("obs", list(Observation))
def test_a_dataset_is_what_the_environment_shows(obs, tmp_path):
    config = NppConfig(obs=obs, levels=NAMES, frame_skip=1, start_frames=0)
    save_dataset(tmp_path / "d.npz", collect(config, demonstrations()))
    data = load_dataset(tmp_path / "d.npz")
    env = NppEnv(config)
    m = 0
    for place, demonstration in enumerate(demonstrations()):
        seen, _ = env.reset(seed=place, options={"level": place})
        for t, action in enumerate(demonstration.actions):
            if t % 9 == 0:
                stored = data.observation(config.spec(), m)
                assert set(stored) == set(seen)
                for name, value in seen.items():
                    np.testing.assert_array_equal(stored[name], value, err_msg=f"{name} {m}")
            assert (data.arrays["actions"][m], data.arrays["episode"][m]) == (action, place)
            seen, reward, terminated, *_ = env.step(action)
            assert data.arrays["rewards"][m] == np.float32(reward)
            m += 1
        assert terminated
    assert m == len(data)
    assert data.arrays["won"].all()


def test_many_replays_are_collected_in_groups(monkeypatch):
    monkeypatch.setattr("nclone.replay.dataset.AT_ONCE", 2)
    config = NppConfig(levels=NAMES, frame_skip=1)
    data = collect(config, demonstrations())
    assert [int((data.arrays["episode"] == e).sum()) for e in range(3)] == [
        len(d.actions) for d in demonstrations()
    ]
    assert list(data.arrays["names"]) == list(NAMES)


def test_inputs_that_change_inside_a_step_are_refused_with_the_frame():
    moves = Demonstration("mine", bundled_level("walk"), np.array([2] * 6 + [0] * 6, np.uint8))
    np.testing.assert_array_equal(per_step(moves, 2), [2, 2, 2, 0, 0, 0])
    with pytest.raises(DataError, match=r"mine change at frame 6.*env\.frame_skip=1"):
        per_step(moves, 4)


def test_a_broken_dataset_is_refused_with_its_name(tmp_path):
    (tmp_path / "d.npz").write_bytes(b"no zip")
    with pytest.raises(DataError, match=r"d\.npz is not a dataset"):
        load_dataset(tmp_path / "d.npz")
    np.savez(tmp_path / "e.npz", a=np.zeros(3))
    with pytest.raises(DataError, match="no actions"):
        load_dataset(tmp_path / "e.npz")
    with pytest.raises(DataError, match="no replay"):
        collect(replace(NppConfig(), levels=("walk",)), [])


def test_a_stack_is_refused_as_the_data_hold_single_moments():
    with pytest.raises(DataError, match=r"env\.stack=1"):
        collect(NppConfig(stack=4, levels=NAMES, frame_skip=1), demonstrations())


def test_solutions_become_a_minari_data_set_that_is_read_back_and_cloned_from(tmp_path):
    pytest.importorskip("minari")
    config = NppConfig(levels=NAMES, frame_skip=1, start_frames=0)

    said = write_demonstrations(config, demonstrations(), tmp_path / "data")

    assert "3 episodes, 3 to their end" in said
    replay = read_dataset(tmp_path / "data")
    env, at = NppEnv(config), 0
    for place, demonstration in enumerate(demonstrations()):
        seen, _ = env.reset(seed=0, options={"level": place})
        for action in demonstration.actions:
            step = [at], [0]
            for name, value in seen.items() if at % 9 == 0 else ():
                np.testing.assert_array_equal(replay.observations[name][step][0], value)
            seen, reward, terminated, *_ = env.step(action)
            assert replay.actions[step][0, 0] == action
            assert replay.rewards[step] == np.float32(reward)
            assert replay.dones[step] == terminated
            at += 1
    assert at == replay.size()
    torch.manual_seed(0)
    policy = MultiInputActorCriticPolicy(
        env.observation_space, env.action_space, lambda _: 3e-3, net_arch=[64]
    )
    losses = imitate(policy, replay, 120, 128)
    share = np.bincount(np.concatenate([d.actions for d in demonstrations()])) / at
    blind = -sum(p * np.log(p) for p in share if p)  # of who knows but how often each is taken
    assert np.mean(losses[-10:]) < 0.8 * blind
