"""`algo.her=true`: goals in hindsight as SB3 draws them, over our environments and our store."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer as StockHer

from frugal_rl.errors import ConfigError, DataError
from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.hindsight import GoalRewards
from frugal_rl.learn.off_policy_config import GoalStrategy
from frugal_rl.learn.off_policy_kinds import DqnConfig, SacConfig
from frugal_rl.memory import MemoryProfile
from frugal_rl.memory.plan import draw_up
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.run.trainer import no_meter
from frugal_rl.store.replay import HerReplayBuffer
from frugal_rl.testing.reach import PLACE, Reach
from frugal_rl.testing.toy import Toy
from frugal_rl.vec_env.registered import Registered
from frugal_rl.vec_env.serial import Serial
from frugal_rl.vec_env.threads import Threads


class Unlike(Reach):
    """Shows what is wanted in another form than what was reached."""

    def __init__(self):
        super().__init__()
        wanted = spaces.Box(-np.inf, np.inf, (1, 2), np.float32)
        self.observation_space = spaces.Dict({**self.observation_space, "desired_goal": wanted})

    def seen(self):
        seen = super().seen()
        return seen | {"desired_goal": seen["desired_goal"].astype(np.float32)[None]}


gym.register("Unlike-v0", entry_point=Unlike, max_episode_steps=9)
SMALL = {"num_envs": 3, "n_steps": 40, "batch_size": 32, "buffer_size": 150, "train_freq": 5}
ON_REACH = SacConfig(learning_starts=60, her=True, **SMALL)


def run_of(folder, **changes):
    run = RunConfig(
        Registered(id="Reach-v0"), MlpAgent(actor=(8,)), ON_REACH, MemoryProfile(), Serial(),
        hardware=Hardware("cpu", 1), seed=3, run_dir=str(folder), resolved={"seed": 3},
    )  # fmt: skip
    return replace(run, **changes)


def learner_of(run):
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    return run.algo.build(run, vec_env)


def stock_beside(learner, strategy):
    """SB3's buffer, which is given whatever ours is given from now on."""
    ours = learner.replay
    theirs = StockHer(
        150, ours.observation_space, ours.action_space, ours.env, "cpu", n_envs=3,
        goal_selection_strategy=strategy,
    )  # fmt: skip
    store = ours.store

    def both(obs, following, action, reward, done, limits):
        store(obs, following, action, reward, done, limits)
        infos = [{"TimeLimit.truncated": bool(cut)} for cut in limits]
        theirs.add(obs, following, action, reward, done, infos)

    ours.store = both
    return theirs


@pytest.mark.parametrize("vec", [Serial(), Threads(2)])
@pytest.mark.parametrize("strategy", list(GoalStrategy))
def test_what_is_drawn_is_what_sb3_draws(tmp_path, vec, strategy):
    learner = learner_of(run_of(tmp_path, vec=vec, algo=replace(ON_REACH, her_strategy=strategy)))
    theirs = stock_beside(learner, strategy.value)
    for _ in range(4):  # the ring is full after 50 steps of each
        learner.iterate(no_meter)

    for seed in range(5):
        drawn = []
        for buffer in (learner.replay, theirs):
            np.random.seed(seed)  # noqa: NPY002 - SB3 draws from this stream
            drawn.append(buffer.sample(64))
        assert_equal(*drawn)
    assert (drawn[0].rewards == 0).any()
    assert learner.replay._timeouts.any()
    learner.vec_env.close()


def assert_equal(ours, theirs):
    for name in ("observations", "next_observations"):
        a, b = getattr(ours, name), getattr(theirs, name)
        assert all(torch.equal(a[key].double(), b[key].double()) for key in a)
    for name in ("actions", "dones", "rewards"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name))


def test_what_an_episode_that_ended_by_itself_led_to_is_kept(tmp_path):
    replay = (learner := learner_of(run_of(tmp_path))).replay
    learner.iterate(no_meter)
    steps, n = np.nonzero(replay._dones & ~replay._timeouts)

    reached = replay.next_observations["achieved_goal"][steps, n]

    assert len(steps) > 5
    assert (abs(reached).max(axis=-1) > 1).all()  # which is why they ended


def test_a_run_goes_on_from_its_state(tmp_path):
    run = run_of(tmp_path)
    learner, other = learner_of(run), learner_of(run)
    learner.iterate(no_meter)
    other.load(deepcopy(learner.state()))  # as from a file: optimisers share what they are given

    for one in (learner, other):
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002 - SB3 draws from this stream
        one.iterate(no_meter)

    pairs = zip(learner.policy.parameters(), other.policy.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert np.array_equal(learner.replay.ep_length, other.replay.ep_length)


@pytest.mark.parametrize(
    ("bound", "value"),
    [("ep_start", -1), ("ep_start", 50), ("ep_length", 51), ("_current_ep_start", 50)],
)
def test_episodes_of_a_file_lie_in_what_is_held(bound, value, tmp_path):
    learner, other = (learner_of(run_of(tmp_path)) for _ in range(2))
    learner.iterate(no_meter)
    state = deepcopy(learner.state())
    held = state["collector"]["replay"][0][bound]
    held[...] = np.where(held > 0, value, held) if held.any() else value

    with pytest.raises(DataError, match="episode reaches beyond what is held"):
        other.load(state)


def test_without_environments_in_a_state_episodes_are_cut(tmp_path):
    learner, other = (learner_of(run_of(tmp_path)) for _ in range(2))
    learner.iterate(no_meter)
    state = learner.state()
    state["collector"]["vec_env"] = None

    other.load(state)

    assert (other.replay._timeouts[other.replay.pos - 1] | other.replay._dones[-1]).all()
    assert (other.replay._current_ep_start == other.replay.pos).all()


def test_the_plan_counts_the_bounds_of_episodes(tmp_path):
    replay = learner_of(run_of(tmp_path)).replay
    parts = {p.name: p.ram_bytes for p in draw_up(run_of(tmp_path)).parts}

    assert parts["replay: episodes"] == replay.parts()["replay/episodes"]
    assert parts["replay: scalars"] == replay.parts()["replay/scalars"]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"env": Registered(id="Pendulum-v1")}, "shows no achieved_goal and no desired_goal"),
        ({"env": Registered(id="Reach-v0", frame_stack=2)}, r"leave env\.frame_stack at 1"),
        (
            {"env": Registered(id="Unlike-v0")},
            r"as float64 \[2\] and float32 \[1, 2\]\. Give env\.fields\.achieved_goal and",
        ),
        ({"algo": replace(ON_REACH, buffer_size=24)}, "holds 8 steps .* an episode of 9"),
        ({"env": Toy(), "algo": DqnConfig(her=True, **SMALL)}, "shows no observation"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(tmp_path, changes, match):
    with pytest.raises(ConfigError, match=match):
        draw_up(run_of(tmp_path, **changes))


def test_a_replay_of_just_one_episode_each_is_taken(tmp_path):
    assert draw_up(run_of(tmp_path, algo=replace(ON_REACH, buffer_size=27))).parts


def test_combinations_are_refused():
    with pytest.raises(ConfigError, match="return_steps=3"):
        SacConfig(her=True, return_steps=3)
    with pytest.raises(ConfigError, match=r"^algo\.prioritised=true and .* Leave one out\.$"):
        DqnConfig(her=True, prioritised=True)
    with pytest.raises(ConfigError, match="future"):
        HerReplayBuffer(9, Reach().observation_space, PLACE, goal_selection_strategy="best")


def test_an_environment_without_rewards_of_goals_is_refused_with_what_it_needs(tmp_path):
    encoding = run_of(tmp_path).encoding()
    with pytest.raises(ConfigError) as refused:
        GoalRewards(gym.make("CartPole-v1"), encoding)
    assert str(refused.value) == (
        "algo.her=true needs the environment's compute_reward(achieved_goal, desired_goal, info), "
        "and it has none. Add it to the environment, or leave algo.her out."
    )


def test_drawing_before_an_episode_has_ended_says_what_to_raise(tmp_path):
    replay = learner_of(run_of(tmp_path)).replay

    with pytest.raises(ConfigError, match="learning_starts"):
        replay.sample(4)
