"""Stock algorithms learn exactly what they learn from SB3's own buffers."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import sb3_contrib
import stable_baselines3 as sb3
import torch
from gymnasium import spaces
from stable_baselines3.common import buffers as stock
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer as StockHer

from frugal_rl.errors import ConfigError, DataError
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.store.replay import DictReplayBuffer, HerReplayBuffer, ReplayBuffer

PIXELS = spaces.Box(0, 255, (1, 36, 36), np.uint8)
VECTOR = spaces.Box(-np.inf, np.inf, (3,), np.float32)
PUSHES = np.array([[0.1, 0.2], [-0.2, 0.1], [0, -0.1]])
GOAL = spaces.Box(-1, 1, (2,), np.float64)


class Wander(gym.Env):
    """A point that is pushed about; an episode ends at the edge, or by a limit of 13 steps."""

    def __init__(self, entries, discrete=True):
        self.observation_space = entries["obs"] if "obs" in entries else spaces.Dict(entries)
        self.action_space = spaces.Discrete(3) if discrete else spaces.Box(-2, 2, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.np_random.normal(0, 0.3, 2)
        self.goal = self.np_random.uniform(-1, 1, 2)
        self.steps = 0
        return self.seen(), {}

    def seen(self):
        if isinstance(self.observation_space, spaces.Dict):
            return {name: self.entry(name, s) for name, s in self.observation_space.items()}
        return self.entry("obs", self.observation_space)

    def entry(self, name, space):
        if space.dtype == np.uint8:
            image = np.zeros(space.shape, np.uint8)
            x, y = (np.clip(self.at, -1, 1) * 15 + 16).astype(int)
            image[:, x : x + 3, y : y + 3] = 200
            return image
        if isinstance(space, spaces.Discrete):
            return self.steps % 5
        known = {"achieved_goal": np.clip(self.at, -1, 1), "desired_goal": self.goal}
        return known.get(name, np.append(self.at, self.steps)[: space.shape[0]]).astype(space.dtype)

    def step(self, action):
        push = PUSHES[action] if np.ndim(action) == 0 else np.asarray(action)
        self.at = self.at + 0.2 * push + self.np_random.normal(0, 0.05, 2)
        self.steps += 1
        reward = self.compute_reward(self.at, self.goal, {})
        return self.seen(), float(reward), bool(abs(self.at).max() > 1), self.steps >= 13, {}

    def compute_reward(self, achieved, desired, info):
        return -np.linalg.norm(np.asarray(achieved) - desired, axis=-1)


SPACES = {
    "vector": {"obs": VECTOR},
    "pixels": {"obs": PIXELS},
    "discrete": {"obs": spaces.Discrete(5)},
    "dict": {"image": PIXELS, "vector": VECTOR, "clock": spaces.Discrete(5)},
    "goal": {"observation": VECTOR, "achieved_goal": GOAL, "desired_goal": GOAL},
}


def environments(kind, num_envs, stack, discrete):
    venv = DummyVecEnv([lambda: Wander(SPACES[kind], discrete) for _ in range(num_envs)])
    return VecFrameStack(venv, stack, channels_order="first") if stack > 1 else venv


def trained(algorithm, buffer, kind, *, num_envs=1, steps=200, stack=1, **kwargs):
    """Parameters after some steps, with networks of a few units."""
    torch.set_num_threads(1)
    venv = environments(kind, num_envs, stack, algorithm in (sb3.DQN, sb3_contrib.QRDQN))
    policy = {"dict": "MultiInputPolicy", "goal": "MultiInputPolicy", "pixels": "CnnPolicy"}
    policy_kwargs = {"net_arch": [8]}
    if kind in ("pixels", "dict"):
        key = "features_dim" if kind == "pixels" else "cnn_output_dim"
        policy_kwargs["features_extractor_kwargs"] = {key: 8}
    options = {"train_freq": 8, "gradient_steps": 2, "learning_starts": 120} | kwargs
    options["buffer_size"] = steps // 2
    model = algorithm(
        policy.get(kind, "MlpPolicy"), venv, batch_size=16, seed=3,
        replay_buffer_class=buffer, policy_kwargs=policy_kwargs, device="cpu", **options,
    )  # fmt: skip
    model.learn(steps)
    return model


def assert_equal_parameters(ours, theirs):
    pairs = zip(ours.policy.state_dict().values(), theirs.policy.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert np.array_equal(ours.replay_buffer.rewards, theirs.replay_buffer.rewards)


QUICK = [
    (sb3.DQN, "vector", 1, 1),
    (sb3.DQN, "pixels", 1, 4),
    (sb3.SAC, "dict", 3, 1),
    (sb3_contrib.CrossQ, "vector", 3, 1),
]
CONTRIB = (sb3_contrib.QRDQN, sb3_contrib.TQC, sb3_contrib.CrossQ)
WHOLE = [
    (algorithm, kind, num_envs, stack)
    for algorithm in (sb3.DQN, sb3.SAC, sb3.TD3, *CONTRIB)
    for kind in ("vector", "pixels", "discrete", "dict")
    for num_envs in (1, 8)
    for stack in ((1, 3) if kind == "pixels" else (1,))
    if algorithm is not sb3_contrib.CrossQ
    or kind in ("vector", "discrete")  # all it has a policy for
]


@pytest.mark.parametrize(("algorithm", "kind", "num_envs", "stack"), QUICK)
def test_a_stock_algorithm_learns_the_same(algorithm, kind, num_envs, stack):
    check_equal(algorithm, kind, num_envs, stack, 200)


@pytest.mark.parametrize("kind", ["pixels", "dict"])
def test_a_stock_algorithm_learns_the_same_from_rows_that_lie_on_the_device(kind):
    buffer = DictReplayBuffer if kind == "dict" else ReplayBuffer
    place = {"replay_buffer_kwargs": {"location": "device"}}
    ours = trained(sb3.DQN, buffer, kind, num_envs=2, steps=400, **place)
    theirs = trained(sb3.DQN, None, kind, num_envs=2, steps=400)

    assert any(part.endswith("on the device") for part in ours.replay_buffer.parts())
    assert_equal_parameters(ours, theirs)


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "kind", "num_envs", "stack"), WHOLE)
def test_a_stock_algorithm_learns_the_same_in_2000_steps(algorithm, kind, num_envs, stack):
    check_equal(algorithm, kind, num_envs, stack, 2000)


def check_equal(algorithm, kind, num_envs, stack, steps):
    ours, theirs = (
        trained(algorithm, buffer, kind, num_envs=num_envs, steps=steps, stack=stack)
        for buffer in (DictReplayBuffer if kind == "dict" else ReplayBuffer, None)
    )

    assert_equal_parameters(ours, theirs)


LENGTHS = [600, pytest.param(2000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("steps", LENGTHS)
@pytest.mark.parametrize("num_envs", [1, 8])
@pytest.mark.parametrize("algorithm", [sb3.DQN, sb3.SAC])
def test_hindsight_learns_the_same(algorithm, num_envs, steps):
    ours, theirs = (
        trained(algorithm, buffer, "goal", num_envs=num_envs, steps=steps)
        for buffer in (HerReplayBuffer, StockHer)
    )

    assert_equal_parameters(ours, theirs)


def test_returns_of_several_steps_are_those_of_sb3():
    ours = trained(
        sb3.DQN, ReplayBuffer, "pixels", stack=2,
        replay_buffer_kwargs={"n_steps": 3, "gamma": 0.99}, gamma=0.99,
    )  # fmt: skip
    theirs = trained(sb3.DQN, None, "pixels", stack=2, n_steps=3, gamma=0.99)

    assert_equal_parameters(ours, theirs)


def test_sb3s_own_way_to_keep_frames_once_is_refused():
    with pytest.raises(ConfigError, match="leave it out"):
        ReplayBuffer(10, VECTOR, spaces.Discrete(2), optimize_memory_usage=True)


class Stream:
    """Observations as a wrapper may hand them over: stacks with padding, jumps, resets."""

    def __init__(self, rng, num_envs, frames, shape):
        self.rng, self.frames, self.shape = rng, frames, shape
        self.stacks = np.stack([self.fresh() for _ in range(num_envs)])

    def frame(self):
        frame = np.zeros(self.shape, np.uint8)
        frame.reshape(-1)[self.rng.integers(0, frame.size, 9)] = self.rng.integers(0, 256, 9)
        return frame if self.rng.random() < 0.9 else self.rng.integers(0, 256, self.shape, np.uint8)

    def fresh(self):
        kind, new = self.rng.integers(0, 8), self.frame()
        if kind < 4:
            return np.stack([np.zeros_like(new)] * (self.frames - 1) + [new])
        if kind < 7:
            return np.stack([new] * self.frames)
        return np.stack([self.frame() for _ in range(self.frames)])

    def step(self):
        """Observations, what they lead to, and what is observed next."""
        now = self.stacks
        then = np.stack([np.stack([*s[1:], self.frame()]) for s in now])
        for n in np.flatnonzero(self.rng.random(len(now)) < 0.05):
            then[n] = self.fresh()
        ends = self.rng.random(len(now)) < 0.15
        self.stacks = then.copy()
        for n in np.flatnonzero(ends):
            self.stacks[n] = self.fresh()
        return now, then, ends


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("declared", [True, False])
def test_every_transition_of_ten_turns_is_drawn_exactly(seed, declared):
    rng = np.random.default_rng(seed)
    num_envs, frames = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    frame = (8, 8) if seed % 2 else (20, 20)
    stream = Stream(rng, num_envs, frames, frame)
    space = spaces.Box(0, 255, (frames, *frame), np.uint8)
    size = int(rng.integers(2, 45)) * num_envs
    ours = ReplayBuffer(
        size, space, spaces.Discrete(2), "cpu", num_envs, frame_stack=frames if declared else None
    )
    theirs = stock.ReplayBuffer(size, space, spaces.Discrete(2), "cpu", num_envs)
    for step in range(10 * ours.buffer_size + 3):
        now, then, ends = stream.step()
        infos = [{"TimeLimit.truncated": bool(e and rng.random() < 0.5)} for e in ends]
        for buffer in (ours, theirs):
            buffer.add(now, then, rng.integers(0, 2, num_envs) * 0 + step % 2, ends, ends, infos)
        if step % 7 == 6:
            assert_same_draw(ours, theirs, step)
    places, n = (a.ravel() for a in np.indices((ours.buffer_size, num_envs)))
    assert np.array_equal(ours.observations[places, n], theirs.observations[places, n])
    assert np.array_equal(ours.next_observations[places, n], theirs.next_observations[places, n])


def assert_same_draw(ours, theirs, seed):
    drawn = []
    for buffer in (ours, theirs):
        np.random.seed(seed)  # noqa: NPY002 - SB3's stream
        drawn.append(buffer.sample(20))
    for mine, other in zip(*drawn, strict=True):
        assert (mine is None and other is None) or torch.equal(mine, other)
        assert mine is None or mine.dtype == other.dtype


def filled(size=90, num_envs=2, frames=3, steps=100, **kwargs):
    """A replay that has turned over, and the stream it goes on with."""
    stream = Stream(np.random.default_rng(0), num_envs, frames, (20, 20))
    space = spaces.Box(0, 255, (frames, 20, 20), np.uint8)
    replay = ReplayBuffer(size, space, spaces.Discrete(2), "cpu", num_envs, **kwargs)
    for _ in range(steps):
        feed(replay, *stream.step())
    return replay, stream


def feed(replay, now, then, ends):
    infos = [{"TimeLimit.truncated": bool(end)} for end in ends]
    replay.add(now, then, ends.astype(int), ends * 1.0, ends, infos)


def test_a_replay_lies_where_it_is_asked_to_lie(tmp_path):
    mapped, _ = filled(location=RolloutLocation.memmap, folder=str(tmp_path))
    here, _ = filled()

    assert mapped.columns["obs"].decided().rows.pool.in_file
    assert not here.columns["obs"].decided().rows.pool.in_file


@pytest.mark.parametrize("location", [RolloutLocation.ram, RolloutLocation.memmap])
def test_a_replay_that_was_saved_goes_on_as_if_it_had_not_been(location, tmp_path):
    replay, stream = filled(location=location, folder=str(tmp_path))
    other, _ = filled(steps=7, location=location, folder=str(tmp_path))

    other.load(replay.state())
    for _ in range(130):
        step = stream.step()
        feed(replay, *step)
        feed(other, *step)
        assert_same_draw(replay, other, 0)

    ours, theirs = (dict(r.parts(), **{"replay/obs/tables": 0}) for r in (replay, other))
    assert ours == theirs  # a table may have more room than it needs


@pytest.mark.parametrize(
    "changes", [{"size": 80}, {"num_envs": 3}, {"frames": 2}], ids=["capacity", "envs", "space"]
)
def test_a_replay_of_another_form_is_refused_and_nothing_is_lost(changes):
    saved, (replay, _) = filled()[0].state(), filled(**changes)
    before = replay.observations[np.arange(20), np.zeros(20, int)]

    with pytest.raises(DataError, match="this run builds codec"):
        replay.load(saved)

    assert np.array_equal(before, replay.observations[np.arange(20), np.zeros(20, int)])


def test_a_replay_of_another_codec_is_refused():
    replay, _ = filled()
    saved = replay.state()
    saved["form"] = saved["form"].replace("codec 1", "codec 0")

    with pytest.raises(DataError, match=r"codec 0.*codec 1"):
        replay.load(saved)
