"""Stock SB3 with the store that finds savings: the same parameters, fewer bytes, for any space."""

import re
import runpy
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.buffers import RolloutBuffer as StockBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecFrameStack

from frugal_rl.errors import ConfigError, EncodingError, MemoryBudgetError, NumbersError
from frugal_rl.observation.found_spec import FoundField, FoundSpec
from frugal_rl.sb3 import CompactRolloutBuffer, MemoryCallback, compact, plan_stock
from frugal_rl.store import rollout

ROOT = Path(__file__).resolve().parents[3]


class Screen(gym.Env):
    """A dot that walks on a map of its episode; images in one array that is written over."""

    def __init__(self, dictionary=False):
        image = spaces.Box(0, 255, (36, 36, 1), np.uint8)
        self.parts = {
            "image": image,
            "map": spaces.Box(-1, 1, (40,), np.float32),
            "mask": spaces.MultiBinary(5),
            "room": spaces.Discrete(7),
            "tools": spaces.MultiDiscrete([3, 4]),
        }
        self.dictionary = dictionary
        self.observation_space = spaces.Dict(self.parts) if dictionary else image
        self.action_space = spaces.Discrete(4)
        self.image = np.zeros((36, 36, 1), np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.map = self.np_random.random(40).astype(np.float32)
        self.at, self.steps = self.np_random.integers(36, size=2), 0
        return self.see(), {}

    def see(self):
        self.image[:] = 0
        self.image[tuple(self.at)] = 255
        if not self.dictionary:
            return self.image
        rng = self.np_random
        return {
            "image": self.image,
            "map": self.map,
            "mask": rng.integers(0, 2, 5).astype(np.int8),
            "room": int(rng.integers(7)),
            "tools": rng.integers(0, 3, 2),
        }

    def step(self, action):
        move = ((0, 1), (1, 0), (0, 35), (35, 0))[int(action)]
        self.at, self.steps = (self.at + move) % 36, self.steps + 1
        return self.see(), float(self.at[0] == 0), self.steps % 23 == 0, self.steps > 40, {}


def trained(algorithm, dictionary, **keywords):
    env = make_vec_env(lambda: Screen(dictionary), n_envs=3, seed=5)
    env = env if dictionary else VecFrameStack(env, 4)
    torch.manual_seed(0)
    steps, batch = (64, 64) if dictionary else (24, 24)  # several are gathered at once, or one
    sizes = {"n_steps": steps} | ({"batch_size": batch, "n_epochs": 2} if algorithm is PPO else {})
    policy = "MultiInputPolicy" if dictionary else "CnnPolicy"
    model = algorithm(policy, env, seed=3, device="cpu", **sizes, **keywords)
    return model.learn(steps * 3 * 4)


@pytest.mark.parametrize("algorithm", [PPO, A2C])
@pytest.mark.parametrize("dictionary", [False, True])
def test_parameters_after_four_updates_are_those_of_stock_sb3(algorithm, dictionary):
    plain = trained(algorithm, dictionary)
    ours = trained(algorithm, dictionary, **compact(plain.env))

    assert isinstance(ours.rollout_buffer, CompactRolloutBuffer)
    for name, value in plain.policy.state_dict().items():
        assert torch.equal(value, ours.policy.state_dict()[name]), name
    if not dictionary:
        assert ours.rollout_buffer.nbytes < plain.rollout_buffer.observations.nbytes / 5


def test_a_twin_that_differs_is_told_and_one_that_does_not_is_silent():
    env = make_vec_env(Screen, n_envs=2)
    model = PPO("CnnPolicy", env, n_steps=24, **compact(env, compare_with_dense=True))
    model.learn(48)
    model.rollout_buffer._twin["obs"].values[3, 1] ^= 1
    with pytest.raises(EncodingError, match="'obs' was not given back"):
        model.rollout_buffer.samples(np.arange(48))


def test_a_budget_is_refused_before_the_rollout_is_full_and_its_advice_fits(monkeypatch):
    env = make_vec_env(Screen, n_envs=2)

    def model(n_steps, budget):
        return PPO("CnnPolicy", env, n_steps=n_steps, seed=0, **compact(env, budget))

    with pytest.raises(ConfigError, match="write it as '8GiB'"):
        compact(env, "much")
    besides = model(64, None).rollout_buffer._besides
    assert besides > 100 << 20
    # What a process of thousands of tests holds moves by more than what is decided here.
    monkeypatch.setattr("frugal_rl.sb3.rollout.resident_bytes", lambda: besides)
    budget = besides + (16 << 20)
    with pytest.raises(MemoryBudgetError, match="Lower n_steps to") as refused:
        model(1 << 20, budget).learn(1)
    fits = int(re.search(r"n_steps to (\d+)", str(refused.value))[1])
    assert 0 < fits < 1 << 20


def test_the_plan_of_a_stock_run_counts_what_sb3_allocates_and_refuses_above_the_budget():
    env = make_vec_env(Screen, n_envs=2)
    given = {"device": "cpu", "seed": 3, "n_epochs": 2}  # whatever the model is given
    plan = plan_stock(PPO, "CnnPolicy", env, n_steps=64, batch_size=32, **given)
    rollout = PPO("CnnPolicy", env, n_steps=64).rollout_buffer
    arrays = [v for v in vars(rollout).values() if isinstance(v, np.ndarray)]

    assert plan.stock_rollout == sum(a.nbytes for a in arrays)
    assert plan.stock > plan.compact - plan.kernels
    assert "our compiled code" in str(plan)
    known = FoundSpec({"observation": FoundField("differences", 1296, 40)})
    wide = {"n_steps": 1 << 20, "batch_size": 32, "budget": plan.compact + (256 << 20)}
    with pytest.raises(MemoryBudgetError, match=r"n_steps=\d+ fits"):
        plan_stock(PPO, "CnnPolicy", env, **wide)
    plan_stock(PPO, "CnnPolicy", env, studied=known, **wide)


def test_the_callback_logs_predicted_beside_measured():
    env = make_vec_env(Screen, n_envs=2)
    plan = plan_stock(PPO, "CnnPolicy", env, n_steps=24, batch_size=24)
    model = PPO("CnnPolicy", env, n_steps=24, batch_size=24, n_epochs=1, **compact(env))
    callback = MemoryCallback(plan)
    model.learn(48 * 10, callback=callback)

    assert len(callback.meter.after_rollouts) == 10
    assert "known" in callback.verdict or "per rollout" in callback.verdict


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.Dict(a=spaces.Tuple([spaces.Discrete(2)])), "'a' is a nested Tuple.*Flatten"),
        (spaces.Dict(a=spaces.Discrete(3, start=-1)), "'a' counts from -1.*TransformObs"),
        (spaces.Dict(a=spaces.Box(0, 1, (3, 0))), r"'a' has the shape \(3, 0\).*FilterObs"),
        (spaces.Box(0, 1, ()), "'obs' is a single number without an axis.*ReshapeObs"),
        (spaces.Box(0, 1, (3,), ">f8"), r"'obs' comes as >f8.*astype\('float64'\)"),
        (spaces.Dict(), "a Dict without an entry"),
        (spaces.MultiDiscrete([[2, 3], [4, 5]]), "'obs' is a MultiDiscrete of several axes"),
        (spaces.Dict(words=spaces.Text(4)), "cannot store 'words', a Text.*FilterObs"),
        (spaces.Sequence(spaces.Discrete(2)), "cannot store 'obs', a Sequence"),
    ],
)
def test_observations_that_cannot_be_stored_are_refused_by_name(space, words):
    class Empty:
        observation_space = space

    with pytest.raises(ConfigError, match=words):
        compact(Empty)


class Broken(gym.Env):
    """Its third observation has a hole."""

    observation_space = spaces.Dict({"a": spaces.Box(-9, 9, (2,)), "b": spaces.Discrete(3)})
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return {"a": np.zeros(2, np.float32), "b": 1}, {}

    def step(self, action):
        self.steps += 1
        shown = np.array([0, np.nan if self.steps == 3 else 1], np.float32)
        return {"a": shown, "b": 1}, 0.0, False, False, {}


def test_an_observation_that_is_not_finite_is_named_before_the_policy_fails():
    env = make_vec_env(Broken, n_envs=2)
    model = PPO("MultiInputPolicy", env, n_steps=8, batch_size=16, **compact(env))
    with pytest.raises(NumbersError, match=r"'a' \[1\] of environment 0 is nan after 6 steps"):
        model.learn(16, callback=MemoryCallback(finite=True))


@pytest.mark.parametrize("name", ["explorer", "atari"])
def test_a_strangers_script_is_changed_in_at_most_five_lines(name):
    script = runpy.run_path(str(ROOT / "benchmarks" / "explorer.py"))

    lines = script["difference"](name)[2:]
    added = [line for line in lines if line.startswith("+") and line[1:].strip()]

    assert 0 < len(added) <= 5
    assert len(script["SCRIPTS"][name].read_text().splitlines()) <= 150
    compile(script["changed"](name), "after", "exec")


def drawn_beside_stock(space, steps=96, batch=64):
    """Two rollouts of the same rows, ours and stock's, and the sizes of our gathers."""
    rng, envs = np.random.default_rng(0), 4
    both = [
        kind(steps, space, spaces.Box(-1, 1, (3,), np.float32), "cpu", n_envs=envs)
        for kind in (CompactRolloutBuffer, StockBuffer)
    ]
    for _ in range(steps):
        shown = rng.integers(0, 3, (envs, *space.shape)).astype(space.dtype)
        row = rng.normal(size=(envs, 3)).astype(np.float32), rng.normal(size=envs)
        for buffer in both:
            buffer.add(shown, *row, np.zeros(envs, bool), torch.ones(envs, 1), torch.ones(envs))
    for buffer in both:
        buffer.compute_returns_and_advantage(torch.ones(envs, 1), np.zeros(envs, bool))
    ours, asked = both[0], []
    gather = ours.observations_at
    ours.observations_at = lambda t, n, c=0: asked.append(len(t)) or gather(t, n, c)
    drawn = []
    for buffer in both:
        np.random.seed(7)  # noqa: NPY002 - the stream that SB3 draws from
        drawn.append(list(buffer.get(batch)))
    return drawn, asked


@pytest.mark.parametrize("batch", [64, 128, 256, 100])
def test_minibatches_of_small_rows_are_gathered_together_and_are_stocks(batch):
    (ours, stock), asked = drawn_beside_stock(spaces.Box(0, 9, (6,), np.float32), 96, batch)

    assert asked == ([384] if batch % 64 == 0 else [100, 100, 100, 84])
    for a, b in zip(ours, stock, strict=True):
        for mine, theirs in zip(a, b, strict=True):
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
            assert torch.equal(mine, theirs)
            assert mine.data_ptr() % 16 == 0
        assert batch % 64 or a.observations.data_ptr() % 64 == 0  # as memory of its own begins


def test_small_minibatches_are_drawn_without_a_function_that_torch_writes_in_python():
    space, called = spaces.Box(0, 9, (6,), np.float32), set()
    buffer = CompactRolloutBuffer(96, space, spaces.Discrete(2), "cpu", n_envs=4)
    for _ in range(96):
        row = np.zeros((4, 6), np.float32), np.zeros((4, 1), int), np.zeros(4), np.zeros(4, bool)
        buffer.add(*row, torch.ones(4, 1), torch.ones(4))
    list(buffer.get(64))  # what is imported is

    def note(frame, event, _):
        if event == "call":
            called.add(frame.f_code.co_filename)

    sys.setprofile(note)
    list(buffer.get(64))
    sys.setprofile(None)

    assert rollout.__file__ in called
    assert not [name for name in called if "/torch/" in name]


def test_minibatches_of_larger_rows_are_gathered_as_many_as_fit(monkeypatch):
    space = spaces.Box(0, 255, (512,), np.uint8)
    monkeypatch.setattr(rollout, "DRAWN_BYTES", 2 * 64 * (512 + 4 * 8))
    (ours, stock), asked = drawn_beside_stock(space)
    assert asked == [128, 128, 128]
    assert all(
        torch.equal(a.observations, b.observations) for a, b in zip(ours, stock, strict=True)
    )

    monkeypatch.setattr(rollout, "DRAWN_BYTES", 2 * 64 * (512 + 4 * 8) - 1)
    assert drawn_beside_stock(space)[1] == [64] * 6


class Reading(BaseCallback):
    """A stranger's: looks at the observations of a rollout while it fills and when it is full."""

    def _on_rollout_start(self):
        self.seen = [[] for _ in range(4)]

    def look(self, shown):
        end = self.model.rollout_buffer.pos
        shown = shown if isinstance(shown, dict) else {"obs": shown}
        for name, rows in shown.items():
            assert (rows.shape[:2], rows.ndim) == ((24, 2), np.ndim(rows))
            self.seen[0].append((name, rows[:end].tobytes()))
            self.seen[1].append((rows[end - 1, 1].tobytes(), rows[-1].tobytes()))
            self.seen[2].append((rows.dtype, len(rows), np.asarray(rows).sum()))

    def _on_step(self):
        if self.n_calls % 24 in (1, 2, 17):
            self.look(self.model.rollout_buffer.observations)
        return True

    def _on_rollout_end(self):
        self.look(self.model.rollout_buffer.observations)
        self.told = [*getattr(self, "told", []), self.seen]


@pytest.mark.parametrize("dictionary", [False, True])
def test_a_callback_reads_the_observations_that_it_reads_of_stock(dictionary):
    told = []
    for small in (False, True):
        env = make_vec_env(lambda: Screen(dictionary), n_envs=2, seed=5)
        policy, keywords = ("MultiInput" if dictionary else "Mlp"), compact(env) if small else {}
        sizes = {"n_steps": 24, "batch_size": 24, "n_epochs": 1}
        model = PPO(f"{policy}Policy", env, seed=3, device="cpu", **sizes, **keywords)
        callback = Reading()
        model.learn(4 * 48, callback=callback)
        told.append(callback.told)

    assert told[0] == told[1]
