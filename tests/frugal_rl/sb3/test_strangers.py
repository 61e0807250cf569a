"""Environments, wrappers and habits that nobody here had: stock SB3 on our stores, bit for bit."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO, SAC, HerReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecFrameStack, VecNormalize

import frugal_rl
from frugal_rl.errors import ConfigError
from frugal_rl.sb3 import compact, shrink

FORCES = spaces.Box(-1, 1, (2,), np.float32)
IMAGE = spaces.Box(0, 255, (3, 36, 36), np.uint8)
GOAL = spaces.Box(-9, 9, (2,), np.float32)


class Odd(gym.Env):
    """Shows whatever `show(self)` gives; ends by a limit."""

    def __init__(self, space, show, limit=17, actions=None):
        self.observation_space, self.show, self.limit = space, show, limit
        self.action_space = actions or spaces.Discrete(3)
        self.kept = np.zeros((3, 36, 36), np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.at = 0, self.np_random.normal(size=2)
        return self.show(self), {}

    def step(self, action):
        self.t += 1
        self.at = self.at + 0.1 * np.sum(action)
        return self.show(self), float(self.np_random.random()), False, self.t >= self.limit, {}

    def compute_reward(self, achieved, desired, infos):
        return -np.linalg.norm(np.asarray(achieved) - desired, axis=-1)


class AsGiven(VecEnv):
    """Hands over arrays in the type and order that environments gave, one array for all steps."""

    def __init__(self, makes):
        self.envs = [make() for make in makes]
        space = self.envs[0].observation_space
        self.rows = None
        super().__init__(len(makes), space, self.envs[0].action_space)

    def _shown(self, seen):
        if self.rows is None:
            self.rows = np.array(np.stack(seen), order="F")
        self.rows[...] = seen
        return self.rows

    def reset(self):
        return self._shown([env.reset(seed=n)[0] for n, env in enumerate(self.envs)])

    def step_async(self, actions):
        self.actions = actions

    def step_wait(self):
        seen, rewards, dones, infos = [], [], [], []
        for env, action in zip(self.envs, self.actions, strict=True):
            obs, reward, _, cut, info = env.step(action)
            info["TimeLimit.truncated"] = cut
            if cut:
                info["terminal_observation"], obs = np.array(obs), env.reset()[0]
            seen.append(np.array(obs))
            rewards.append(reward)
            dones.append(cut)
            infos.append(info)
        return self._shown(seen), np.array(rewards), np.array(dones), infos

    def close(self): ...

    def get_attr(self, name, indices=None):
        return [getattr(env, name, None) for env in self.envs]

    def set_attr(self, name, value, indices=None): ...

    def env_method(self, name, *given, indices=None, **keywords):
        return [getattr(env, name)(*given, **keywords) for env in self.envs]

    def env_is_wrapped(self, wrapper, indices=None):
        return [False] * self.num_envs


def dots(env):
    """A dot on an image that is written over."""
    env.kept[:] = 0
    env.kept[:, env.t % 36, env.np_random.integers(36)] = (1, 2, 250)
    return env.kept


def reversed_view(env):
    """Read-only, every other line of a larger picture, from the right."""
    picture = np.zeros((3, 72, 36), np.uint8)
    picture[:, env.t % 36 :: 7] = 9
    seen = picture[:, ::2, ::-1]
    seen.flags.writeable = False
    return seen


def steady(env):
    """Float64 of few numbers, whatever the space says."""
    return np.arange(80) % 5 + (env.t % 3) / 2


def mixed(env):
    return {
        "flags": np.array([env.t % 2 == 0, True, False]),
        "halves": np.full((3, 2), env.t, np.float16),
        "age": np.full(600, env.t, np.int16),
        "choices": np.array([env.t % 3, 1]),
        "image": dots(env),
    }


MIXED = spaces.Dict(
    flags=spaces.Box(0, 1, (3,), np.bool_),
    halves=spaces.Box(-99, 99, (3, 2), np.float16),
    age=spaces.Box(0, 999, (600,), np.int16),
    choices=spaces.MultiDiscrete([3, 2]),
    image=IMAGE,
)
FLOATS = spaces.Box(-np.inf, np.inf, (80,), np.float32)


def reached(env):
    return {
        "observation": steady(env).astype(np.float32),
        "achieved_goal": env.at.astype(np.float32),
        "desired_goal": np.ones(2, np.float32),
    }


GOALS = spaces.Dict(observation=FLOATS, achieved_goal=GOAL, desired_goal=GOAL)


def world(space, show, num_envs=2, wrap=lambda envs: envs, kind=DummyVecEnv, **keywords):
    def make():
        envs = kind([lambda: Odd(space, show, **keywords)] * num_envs)
        envs.seed(4)
        return wrap(envs)

    return make


def nine_frames(envs):
    return VecFrameStack(envs, 9, channels_order="first")


WORLDS = {
    "float64 for a space of float32": (world(FLOATS, steady, kind=AsGiven), PPO, "Mlp"),
    "columns first": (world(IMAGE, dots, kind=AsGiven), PPO, "Cnn"),
    "read-only views": (world(IMAGE, reversed_view), PPO, "Cnn"),
    "a stack longer than its episode": (world(IMAGE, dots, 1, nine_frames, limit=4), PPO, "Cnn"),
    "eight mixed": (world(MIXED, mixed, 8), A2C, "MultiInput"),
    "normalised": (world(FLOATS, steady, wrap=VecNormalize), PPO, "Mlp"),
    "recurrent": (world(MIXED, mixed), RecurrentPPO, "MultiInputLstm"),
}
OFF_POLICY = {
    "float64 for a space of float32": (world(FLOATS, steady, kind=AsGiven), DQN, "Mlp"),
    "a stack longer than its episode": (world(IMAGE, dots, 1, nine_frames, limit=4), DQN, "Cnn"),
    "mixed": (world(MIXED, mixed, actions=FORCES), SAC, "MultiInput"),
    "normalised": (world(FLOATS, steady, actions=FORCES, wrap=VecNormalize), SAC, "Mlp"),
    "goals": (world(GOALS, reached, actions=FORCES), SAC, "MultiInput"),
}


def weights(model):
    return b"".join(v.numpy().tobytes() for v in model.policy.state_dict().values())


def few_units(policy):
    size = {"MultiInput": {"cnn_output_dim": 8}, "Cnn": {"features_dim": 8}}.get(policy)
    return {"net_arch": [8]} | ({"features_extractor_kwargs": size} if size else {})


def on_policy(make, algorithm, policy, ours, folder):
    """Weights after four updates, the last two of them by a model that was saved and loaded."""
    torch.set_num_threads(1)
    env, few = make(), few_units(policy)
    if algorithm is RecurrentPPO:
        few |= {"lstm_hidden_size": 8, "features_extractor_class": Flat}
    sizes = {"n_steps": 25} | ({} if algorithm is A2C else {"batch_size": 16, "n_epochs": 2})
    given = compact(env) if ours and algorithm is not RecurrentPPO else {}
    given |= {"seed": 3, "device": "cpu", "policy_kwargs": few}
    model = algorithm(f"{policy}Policy", env, **sizes, **given)
    model = shrink(model) if ours and algorithm is RecurrentPPO else model
    model.learn(50 * model.n_envs)
    model.save(folder / "model")
    again = algorithm.load(folder / "model", env=make(), device="cpu")
    again = shrink(again) if ours and algorithm is RecurrentPPO else again
    again.set_random_seed(7)
    again.learn(50 * again.n_envs, reset_num_timesteps=False)
    return weights(again)


class Flat(torch.nn.Module):
    """sb3-contrib's LSTM takes no NumPy integer as its size, which `MultiDiscrete` leads to."""

    def __init__(self, space):
        super().__init__()
        self.features_dim = 600 + 6

    def forward(self, seen):
        parts = [seen["age"].flatten(1), seen["halves"].flatten(1)]
        return torch.cat([p.float() for p in parts], 1)


@pytest.mark.parametrize("name", WORLDS)
def test_rollouts_of_strangers_lead_to_the_weights_of_stock_sb3(name, tmp_path):
    plain, ours = (on_policy(*WORLDS[name], which, tmp_path) for which in (False, True))

    assert plain == ours


def off_policy(make, algorithm, policy, ours, folder):
    """Weights, a prediction, and weights after going on with a replay that was saved and loaded."""
    torch.set_num_threads(1)
    env = make()
    her = isinstance(env.observation_space, spaces.Dict) and "desired_goal" in env.observation_space
    given = compact(env, algorithm=algorithm) if ours else {}
    if her:
        given = {"replay_buffer_class": frugal_rl.HerReplayBuffer if ours else HerReplayBuffer}
    few = few_units(policy)
    model = algorithm(
        f"{policy}Policy", env, learning_starts=60, batch_size=16, buffer_size=120, train_freq=8,
        seed=3, device="cpu", policy_kwargs=few, **given,
    )  # fmt: skip
    model.learn(200)
    model.save(folder / "model")
    model.save_replay_buffer(folder / "replay")
    again = algorithm.load(folder / "model", env=make(), device="cpu")
    again.load_replay_buffer(folder / "replay")
    again.set_random_seed(7)
    seen = again.predict(again.env.reset(), deterministic=True)[0].tobytes()
    return weights(model), seen, weights(again.learn(100, reset_num_timesteps=False))


@pytest.mark.parametrize("name", OFF_POLICY)
def test_replays_of_strangers_are_saved_and_lead_to_the_weights_of_stock_sb3(name, tmp_path):
    plain, ours = (off_policy(*OFF_POLICY[name], which, tmp_path) for which in (False, True))

    assert plain == ours


def test_a_replay_has_no_options_of_a_rollout():
    env = world(FLOATS, steady)()
    with pytest.raises(ConfigError, match="options of rollouts"):
        compact(env, budget="1GiB", algorithm=DQN)
    with pytest.raises(ConfigError, match="leave it out"):
        DQN("MlpPolicy", env, optimize_memory_usage=True, **compact(env, algorithm=DQN))
    with pytest.raises(ConfigError, match=r"\*\*compact\(env, algorithm=DQN\)"):
        shrink(DQN("MlpPolicy", env, buffer_size=8))


def test_the_name_of_an_environment_is_told_from_one():
    with pytest.raises(ConfigError, match=r"env = gymnasium.make\('CartPole-v1'\)"):
        compact("CartPole-v1")
