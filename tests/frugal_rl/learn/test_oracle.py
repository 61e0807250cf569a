"""The oracle: Stable-Baselines3 on the same episodes gives the same parameters, to the bit."""

from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.utils import set_random_seed

from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.policy import FrugalPolicy
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.memory import FrameStack, MemoryProfile, Storage
from frugal_rl.memory.choices import Buffers, RolloutLocation, Shuffle
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import ObservationSpec, Stored
from frugal_rl.observation.tables import Tables
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.sb3.adapter import PolicyFormEnv, Sb3VecEnv
from frugal_rl.testing.stock import OurSeeds
from frugal_rl.testing.toy import Toy
from frugal_rl.vec_env.interface import EndedEpisodes, Step, VectorEnv

UPDATES = 4
ALGO = PpoConfig(
    num_envs=6,
    n_steps=16,
    batch_size=32,
    n_epochs=3,
    total_steps=6 * 16 * UPDATES,
    ent_coef=0.01,
    batched_bootstrap=False,
)
SB3 = {"n_steps": 16, "batch_size": 32, "n_epochs": 3, "ent_coef": 0.01, "device": "cpu", "seed": 5}
BASELINE = MemoryProfile(
    storage=Storage.dense,
    internal_observations=True,
    frame_stack=FrameStack.copies,
    buffers=Buffers.new,
    shuffle=Shuffle.copy,
)
LOSSLESS = MemoryProfile()


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def toy_run(memory, algo=ALGO):
    agent = MlpAgent(actor=(32, 32), critic=(32, 32))
    return RunConfig(Toy(), agent, algo, memory, None, hardware=Hardware("cpu", threads=1), seed=5)


def learned(run, vec_env=None):
    set_random_seed(run.seed)
    vec_env = vec_env or run.env.make_vec(
        run.algo.num_envs, run.encoding(), run.memory, None, "train"
    )
    learner = run.algo.build(run, vec_env)
    for _ in range(UPDATES):
        learner.iterate(lambda phase: nullcontext())
    return learner.policy.state_dict()


def learned_by_sb3(run, env):
    encoding = run.encoding()
    tables = env.vec_env.tables if isinstance(env, Sb3VecEnv) else env.envs[0].tables
    arguments = {"agent": run.agent, "encoding": encoding, "tables": tables}
    model = PPO(FrugalPolicy, env, policy_kwargs=arguments, **SB3)
    model.learn(run.algo.total_steps)
    return model.policy.state_dict()


def assert_equal(a, b):
    assert [tuple(x.shape) for x in a.values()] == [tuple(x.shape) for x in b.values()]
    worst = max((x - y).abs().max().item() for x, y in zip(a.values(), b.values(), strict=True))
    assert worst == 0.0, f"parameters differ by up to {worst}"


def test_without_savings_four_updates_equal_stable_baselines3_to_the_bit():
    run = toy_run(BASELINE)
    batch = run.env.make_vec(6, run.encoding(), run.memory, None, "train")
    assert_equal(learned(run), learned_by_sb3(run, Sb3VecEnv(batch, run.env.episode_steps)))


def test_without_savings_we_equal_sb3_on_plain_environments_under_dummy_vec_env():
    run = toy_run(BASELINE)
    make = lambda: PolicyFormEnv(run.env.make(), run.encoding(), run.env.episode_steps)  # noqa: E731
    assert_equal(learned(run), learned_by_sb3(run, OurSeeds([make] * 6)))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"shuffle": Shuffle.copy},
        {"frame_stack": FrameStack.copies},
        {"buffers": Buffers.new},
        {"rollout_location": RolloutLocation.memmap},
        {"rollout_location": RolloutLocation.device},
    ],
    ids=lambda change: "_".join(map(str, change)) or "all",
)
def test_lossless_savings_change_no_parameter(change, tmp_path):
    run = replace(toy_run(replace(LOSSLESS, **change)), run_dir=str(tmp_path))
    assert_equal(learned(toy_run(BASELINE)), learned(run))


def test_lossless_stores_fewer_bytes_than_the_baseline():
    stored = []
    for memory in (BASELINE, LOSSLESS):
        run = toy_run(memory)
        vec_env = run.env.make_vec(6, run.encoding(), memory, None, "train")
        stored.append(run.algo.build(run, vec_env).rollout.nbytes)
    assert stored[1] < stored[0] / 2


SPEC = ObservationSpec((Stored("x", (7,), np.float32, -10, 10),))


class Noise(VectorEnv):
    """Normal observations; the reward asks for the largest entry, or for a vector near it."""

    def __init__(self, num_envs, action_space):
        self.num_envs, self.action_space = num_envs, action_space
        self.encoding, self.tables = Encoding.choose(SPEC, Storage.dense), Tables()

    def reset(self, seed):
        self.rng = np.random.default_rng(seed)
        self.age = np.arange(self.num_envs)
        self.x = self._draw()
        return {"x": self.x}

    def _draw(self):
        return self.rng.standard_normal((self.num_envs, 7), dtype=np.float32)

    def step(self, actions):
        if isinstance(self.action_space, spaces.Discrete):
            reward = (actions == self.x[:, :3].argmax(1)).astype(np.float32)
        else:
            reward = -np.abs(actions - self.x[:, :2]).mean(1).astype(np.float32)
        self.age += 1
        done = self.age % 11 == 0
        late = self.age % 22 == 0
        index = np.flatnonzero(late)
        final, self.x = {"x": self.x[index] * 0.5}, self._draw()
        ended = np.flatnonzero(done)
        stats = {k: np.zeros(len(ended)) for k in ("return", "length", "success")}
        return Step({"x": self.x}, reward, done, late, index, final, EndedEpisodes(ended, stats))

    def parts(self):
        return {}


@dataclass(frozen=True)
class NoiseConfig:
    name: str = "noise"
    fields: dict = field(default_factory=dict)
    episode_steps: int = 11

    def spec(self):
        return SPEC


@pytest.mark.parametrize(
    "action_space", [spaces.Discrete(3), spaces.Box(-1.0, 1.0, (2,), np.float32)], ids=type
)
@pytest.mark.parametrize("clip_range_vf", [None, 0.2])
def test_we_equal_sb3_with_its_own_policy_on_a_vector_observation(action_space, clip_range_vf):
    algo = replace(ALGO, clip_range_vf=clip_range_vf)
    run = RunConfig(
        NoiseConfig(), MlpAgent(), algo, BASELINE, None, hardware=Hardware("cpu", 1), seed=5
    )
    env = Sb3VecEnv(Noise(6, action_space))
    model = PPO("MultiInputPolicy", env, clip_range_vf=clip_range_vf, **SB3)
    model.learn(algo.total_steps)
    assert_equal(learned(run, Noise(6, action_space)), model.policy.state_dict())


def test_fused_adam_stays_within_a_millionth():
    exact, fused = (
        learned(toy_run(LOSSLESS, replace(ALGO, fused_adam=fused))) for fused in (False, True)
    )
    for a, b in zip(exact.values(), fused.values(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


def test_micro_batches_give_the_same_parameters_but_for_rounding():
    whole = learned(toy_run(LOSSLESS))
    pieces = learned(toy_run(replace(LOSSLESS, micro_batch=10)))
    for a, b in zip(whole.values(), pieces.values(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


def test_recomputed_activations_give_the_same_parameters():
    kept = learned(toy_run(LOSSLESS))
    assert_equal(kept, learned(toy_run(replace(LOSSLESS, gradient_checkpointing=True))))
