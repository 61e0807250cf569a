from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

import frugal_rl
from frugal_rl.errors import ConfigError
from frugal_rl.learn.held import Held
from frugal_rl.memory import allocator
from frugal_rl.observation.found_spec import UNKNOWN_SHARE
from frugal_rl.sb3 import plan_stock, stock_plan
from frugal_rl.sb3.stock_plan import update_bytes

MIB = 1 << 20


class Camera(gym.Env):
    """Pictures of noise."""

    observation_space = gym.spaces.Box(0, 255, (3, 40, 40), np.uint8)
    action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.integers(0, 256, (3, 40, 40), np.uint8), {}

    def step(self, action):
        return self.np_random.integers(0, 256, (3, 40, 40), np.uint8), 0.0, False, False, {}


class Looking(BaseFeaturesExtractor):
    """Features whose number of operations depends on values, so that nothing can trace them."""

    def __init__(self, space):
        super().__init__(space, 64)
        self.wide = torch.nn.Linear(4800, 64)

    def forward(self, seen):
        flat = seen.flatten(1)
        return torch.relu(self.wide(flat + 1 if flat.sum().item() < 0 else flat))


class Blind(Looking):
    """The same without a look."""

    def forward(self, seen):
        return torch.relu(self.wide(seen.flatten(1)))


def model(**given):
    env = make_vec_env(Camera, n_envs=2)
    return PPO("CnnPolicy", env, n_steps=16, batch_size=32, device="cpu", **given)


def test_the_plan_of_an_update_is_what_its_operations_hold():
    stock = model()
    planned, sizes = update_bytes(stock, 32)
    policy, space = stock.policy, stock.observation_space
    for p in policy.parameters():
        p.grad = torch.zeros_like(p)
    held = Held()
    held.leave_out([*policy.parameters(), *(p.grad for p in policy.parameters())])
    with held:
        seen = torch.as_tensor(np.stack([space.sample() for _ in range(32)]))
        values, likelihoods, entropies = policy.evaluate_actions(seen, torch.zeros(32))
        (values.mean() + likelihoods.mean() + entropies.mean()).backward()

    assert planned == pytest.approx(held.peak, rel=0.01)
    assert 32 * 4800 * 4 in sizes  # the minibatch as float32


def test_a_network_that_looks_at_values_is_counted_on_few_samples():
    updates = []
    for kind in (Looking, Blind):
        stock = model(policy_kwargs={"features_extractor_class": kind})
        updates.append(update_bytes(stock, 512)[0])
    assert updates[0] == pytest.approx(updates[1], rel=0.1)


class Wide(Camera):
    """Many numbers."""

    observation_space = gym.spaces.Box(0, 255, (30_000,), np.uint8)


def test_what_a_probe_learns_in_large_blocks_is_counted_once(monkeypatch):
    env, sizes = make_vec_env(Wide, n_envs=2), {"n_steps": 16, "batch_size": 32}
    weight, rows = 64 * 30_000 * 4, 32 * 30_000
    monkeypatch.setattr(stock_plan, "resident_bytes", lambda: 1 << 30)
    monkeypatch.setattr(stock_plan, "DYNAMIC_MOST_BYTES", weight)
    plan = plan_stock(PPO, "MlpPolicy", env, **sizes)

    # two layers of weights, their gradients, two moments of Adam's
    assert plan.parameters == pytest.approx(8 * weight, rel=0.01)
    assert plan.process == (1 << 30) - 8 * weight
    assert plan.kernels == 0
    # as bytes, as float32, and the newest gradient before it is added up
    assert plan.update == pytest.approx(5 * rows + weight, rel=0.02)
    small = replace(plan, kernels=64 << 20)
    assert "leave compact() out" in str(small)
    assert "leave compact() out" not in str(replace(small, stock_rollout=1 << 30))


def test_what_the_allocator_keeps_is_counted_where_nobody_pinned_it(monkeypatch):
    monkeypatch.setattr(allocator, "_glibc", lambda: object())
    for name in ("MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    assert allocator.kept_free_bytes([MIB, 20 * MIB, 33 * MIB]) == 40 * MIB
    assert allocator.kept_free_bytes([]) == 0
    env = make_vec_env(Camera, n_envs=2)
    free = plan_stock(PPO, "CnnPolicy", env, n_steps=64, batch_size=64).kept_free
    assert free >= 2 * 64 * 4800 * 4
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "131072")
    assert allocator.kept_free_bytes([20 * MIB]) == 0


class Masked(Camera):
    """The third button is broken."""

    def action_masks(self):
        return np.array([True, True, False])


@pytest.mark.parametrize(
    ("name", "policy"),
    [("A2C", "CnnPolicy"), ("MaskablePPO", "CnnPolicy"), ("RecurrentPPO", "MlpLstmPolicy")],
)
def test_masks_and_recurrent_states_are_counted(name, policy):
    contrib = pytest.importorskip("sb3_contrib")
    kind = A2C if name == "A2C" else getattr(contrib, name)
    env, few = make_vec_env(Masked, n_envs=2), {} if name == "A2C" else {"batch_size": 8}
    plan = plan_stock(kind, policy, env, n_steps=16, **few)
    rollout = kind(policy, env, n_steps=16, **few).rollout_buffer
    arrays = [v for v in vars(rollout).values() if isinstance(v, np.ndarray)]
    assert plan.stock_rollout == sum(a.nbytes for a in arrays)
    assert plan.stock_flattening == max(a.nbytes for a in arrays)
    beside = {"A2C": 0, "MaskablePPO": 3 * 4, "RecurrentPPO": 4 * 256 * 4}[name]
    assert plan.compact_rollout >= 2 * 16 * (UNKNOWN_SHARE * 4800 + beside)
    assert plan.update > 0


@pytest.mark.parametrize("name", ["TRPO", "QRDQN"])
def test_updates_that_nobody_counted_are_refused(name):
    contrib = pytest.importorskip("sb3_contrib")
    with pytest.raises(ConfigError, match=f"plan_stock knows .*{name}"):
        plan_stock(getattr(contrib, name), "CnnPolicy", make_vec_env(Camera), n_steps=4)


def test_a_class_of_stable_baselines3_is_planned_by_its_environment_alone(monkeypatch):
    env = make_vec_env(Camera, n_envs=2)
    monkeypatch.setattr(stock_plan, "plan_stock", lambda *given, **keywords: (given, keywords))
    sizes = {"n_steps": 2048, "batch_size": 8, "budget": "8GiB"}
    assert frugal_rl.plan(PPO, env, **sizes) == ((PPO, "CnnPolicy", env), sizes)
    named = (A2C, "MlpPolicy", env), {"n_steps": 5}
    assert frugal_rl.plan(A2C, "MlpPolicy", env) == named
    assert frugal_rl.plan(A2C, env, policy="MlpPolicy") == named
    assert frugal_rl.plan(A2C, policy="MlpPolicy", env=env) == named
    with pytest.raises(ConfigError, match=r"plan\(PPO\) looks at an environment"):
        frugal_rl.plan(PPO, n_steps=64)
    with pytest.raises(ConfigError, match="compact and plan look at an environment"):
        frugal_rl.plan(PPO, "CartPole-v1", n_steps=64)
    with pytest.raises(ConfigError, match=r"plan takes n_steps beside a class, as in plan\(PPO"):
        frugal_rl.plan("env=toy", n_steps=64)


@pytest.mark.parametrize(
    ("space", "name"),
    [
        (gym.spaces.Box(0, 255, (3, 36, 36), np.uint8), "CnnPolicy"),
        (gym.spaces.Box(0, 255, (40, 36, 3), np.uint8), "CnnPolicy"),
        (gym.spaces.Box(0, 255, (7, 7, 3), np.uint8), "MlpPolicy"),
        (gym.spaces.Box(0, 1, (3, 40, 40), np.float32), "MlpPolicy"),
        (gym.spaces.Discrete(4), "MlpPolicy"),
        (gym.spaces.Dict({"x": gym.spaces.Discrete(4)}), "MultiInputPolicy"),
    ],
)
def test_the_policy_is_the_one_for_such_observations(space, name):
    assert stock_plan.policy_for(PPO, space) == name
