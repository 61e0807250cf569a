"""Values of last observations: added where a limit ended an episode, however long they wait."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from frugal_rl.learn import bootstrap
from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.bootstrap import Bootstraps
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.memory import MemoryProfile
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.testing.toy import Toy


class Sums:
    """A policy that values a row by its sum, and remembers how many it was asked for at once."""

    def __init__(self):
        self.device, self.asked = torch.device("cpu"), []

    def predict_values(self, rows):
        self.asked.append(len(rows["x"]))
        return rows["x"].sum(dim=1, keepdim=True)


def rollout():
    return SimpleNamespace(rewards=np.zeros((5, 3), np.float32), gamma=0.5)


@pytest.mark.parametrize(("at_once", "asked"), [(1, [1, 1, 1]), (2, [2, 1]), (8, [3])])
def test_each_last_reward_gets_its_own_discounted_value(at_once, asked):
    waiting, policy, told = Bootstraps(at_once), Sums(), rollout()
    shown = np.array([[1.0, 2.0]], np.float32)
    waiting.add(1, np.array([2]), {"x": shown})
    shown[:] = 100  # the environments write their next rows into the same memory
    waiting.add(4, np.array([0, 2]), {"x": np.array([[3.0, 5.0], [10.0, 20.0]], np.float32)})

    waiting.pay(told, policy)
    waiting.pay(told, policy)  # nothing waits any more

    expected = np.zeros((5, 3))
    expected[1, 2], expected[4, 0], expected[4, 2] = 1.5, 4, 15
    np.testing.assert_array_equal(told.rewards, expected)
    assert policy.asked == asked
    assert waiting.nbytes == 0


def collected(batched, room=bootstrap.ROOM_BYTES, monkeypatch=None):
    """Rewards and returns of a rollout in which limits end episodes."""
    algo = PpoConfig(
        num_envs=3,
        n_steps=40,
        batch_size=120,
        n_epochs=1,
        total_steps=120,
        batched_bootstrap=batched,
    )
    agent, hardware = MlpAgent(actor=(8,), critic=(8,)), Hardware("cpu", threads=1)
    run = RunConfig(Toy(), agent, algo, MemoryProfile(), None, hardware=hardware, seed=5)
    torch.manual_seed(0)
    learner = algo.build(run, run.env.make_vec(3, run.encoding(), run.memory, run.vec, "train"))
    if monkeypatch:
        monkeypatch.setattr(bootstrap, "ROOM_BYTES", room)
    waited = []
    real = learner.collector.bootstraps.add
    learner.collector.bootstraps.add = lambda t, envs, rows: (
        waited.append((t, *envs)),
        real(t, envs, rows),
    )
    told = learner.collector.collect(learner.policy)
    return told.rewards.copy(), told.returns.copy(), waited


def test_waiting_changes_no_reward_but_for_the_last_bits(monkeypatch):
    together, single = collected(batched=True), collected(batched=False)
    at_once = collected(batched=True, room=1, monkeypatch=monkeypatch)

    assert together[2]  # a limit ended some
    for other in (single, at_once):
        assert other[2] == together[2]
        np.testing.assert_allclose(other[0], together[0], rtol=0, atol=1e-6)
        np.testing.assert_allclose(other[1], together[1], rtol=0, atol=1e-5)
