"""Collecting: a policy that acts beside busy simulators, and what it asks of a rollout."""

import re
from pathlib import Path

import numpy as np
import torch

from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.memory import MemoryProfile
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.run.suspects import in_rollout
from frugal_rl.run.trainer import no_meter
from frugal_rl.testing.toy import Toy

PAGE = Path(__file__).resolve().parents[3] / "docs" / "rollout.md"


def learner_of():
    """A small learner on the CPU."""
    algo = PpoConfig(num_envs=4, n_steps=8, batch_size=32, n_epochs=1, total_steps=32)
    agent, hardware = MlpAgent(actor=(8,), critic=(8,)), Hardware("cpu", threads=1)
    run = RunConfig(Toy(), agent, algo, MemoryProfile(), None, hardware=hardware, seed=5)
    return algo.build(run, run.env.make_vec(4, run.encoding(), run.memory, run.vec, "train"))


class Told:
    """A rollout of which only some names are there; keeps which of them were asked for."""

    def __init__(self, rollout, names):
        self.__dict__.update(rollout=rollout, names=names, asked=set())

    def __getattr__(self, name):
        assert name in self.names, f"the page does not tell that a rollout has '{name}'"
        self.asked.add(name)
        return getattr(self.rollout, name)

    def __setattr__(self, name, value):
        assert name in self.names, f"the page does not tell that a rollout has '{name}'"
        self.asked.add(name)
        setattr(self.rollout, name, value)


def test_the_page_tells_all_that_a_learner_asks_of_a_rollout():
    table = PAGE.read_text().split("| of the buffer |")[1].split("\n\n")[0]
    first = [line.split("|")[1] for line in table.splitlines()[2:]]
    names = {name for cell in first for name in re.findall(r"`(\w+)", cell)}
    learner = learner_of()
    told = learner.collector.rollout = Told(learner.collector.rollout, names)

    learner.iterate(no_meter)
    learner.parts()
    learner.update.ranks = TwoRanks()
    learner.update.moments(told, told.order(32), learner.config.terms(0.0))
    told.values[2, 1] = np.nan
    in_rollout(learner, 8)

    assert told.asked == names - {"gamma"}  # no limit ended an episode


class TwoRanks:
    """What an update asks of two ranks before it learns."""

    size = 2

    def moments(self, parts):
        return [None for _ in parts]


def test_the_policy_acts_on_one_thread_whatever_the_environments_leave_behind(monkeypatch):
    """Numba's parallel kernels share OpenMP with torch, and set its number of threads."""
    learner, seen = learner_of(), []
    vec_env = learner.vec_env
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
