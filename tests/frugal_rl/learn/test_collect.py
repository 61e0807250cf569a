"""Collecting: a policy that acts beside busy simulators."""

import torch

from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.memory import MemoryProfile
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.testing.toy import Toy


def test_the_policy_acts_on_one_thread_whatever_the_environments_leave_behind(monkeypatch):
    """Numba's parallel kernels share OpenMP with torch, and set its number of threads."""
    algo = PpoConfig(num_envs=4, n_steps=8, batch_size=32, n_epochs=1, total_steps=32)
    agent, hardware = MlpAgent(actor=(8,), critic=(8,)), Hardware("cpu", threads=1)
    run = RunConfig(Toy(), agent, algo, MemoryProfile(), None, hardware=hardware, seed=5)
    vec_env = run.env.make_vec(4, run.encoding(), run.memory, run.vec, "train")
    learner, seen = algo.build(run, vec_env), []
    real_step, real_forward = vec_env.step, learner.policy.forward

    def step(actions):
        torch.set_num_threads(2)
        return real_step(actions)

    def forward(*rows):
        seen.append(torch.get_num_threads())
        return real_forward(*rows)

    monkeypatch.setattr(vec_env, "step", step)
    monkeypatch.setattr(learner.policy, "forward", forward)
    before = torch.get_num_threads()
    learner.collector.collect(learner.policy)
    torch.set_num_threads(before)

    assert seen == [1] * 8
