"""Actor and critic side by side: parameters equal those of one thread, to the bit."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from stable_baselines3.common.utils import set_random_seed

from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.halves import HalvesUpdate
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.learn.update import Update
from frugal_rl.memory import MemoryProfile
from frugal_rl.memory.choices import Precision
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.testing.toy import Toy

ALGO = PpoConfig(num_envs=6, n_steps=16, batch_size=32, n_epochs=2, ent_coef=0.01)


@pytest.fixture(autouse=True)
def same_threads_afterwards():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def learner_of(threads, memory, agent, algo=ALGO):
    run = RunConfig(Toy(), agent, algo, memory, None, hardware=Hardware("cpu", threads), seed=5)
    set_random_seed(run.seed)
    return algo.build(run, run.env.make_vec(6, run.encoding(), memory, None, "train"))


def learned(*args):
    learner = learner_of(*args)
    metrics = [learner.iterate(lambda phase: nullcontext()) for _ in range(2)]
    return type(learner.update), learner.optimizer.flat.detach().clone(), metrics


@pytest.mark.parametrize("micro_batch", [0, 12])
@pytest.mark.parametrize("shared", [(), (16,)], ids=["apart", "shared trunk"])
@pytest.mark.parametrize("target_kl", [None, 1e-9], ids=["whole", "stopped"])
def test_two_threads_learn_the_numbers_of_one(micro_batch, shared, target_kl):
    memory = replace(MemoryProfile(), micro_batch=micro_batch)
    agent = MlpAgent(actor=(32, 32), critic=(24,), shared=shared)
    algo = replace(ALGO, target_kl=target_kl)
    one, flat, metrics = learned(1, memory, agent, algo)
    two, flat_of_two, metrics_of_two = learned(2, memory, agent, algo)
    assert (one, two) == (Update, HalvesUpdate)
    assert torch.equal(flat, flat_of_two)
    assert metrics == metrics_of_two


@pytest.mark.parametrize(
    "change", [{"precision": Precision.bf16}, {"gradient_checkpointing": True}], ids=str
)
def test_what_is_kept_per_process_stays_on_one_thread(change):
    learner = learner_of(2, replace(MemoryProfile(), **change), MlpAgent())
    assert type(learner.update) is Update


def test_an_error_of_the_critic_reaches_the_caller(monkeypatch):
    learner = learner_of(2, MemoryProfile(), MlpAgent())

    def fails(features):
        raise RuntimeError("no value")

    monkeypatch.setattr(learner.update, "halves", replace(learner.update.halves, value=fails))
    with pytest.raises(RuntimeError, match="no value"):
        learner.iterate(lambda phase: nullcontext())
