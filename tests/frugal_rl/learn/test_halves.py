"""Actor and critic side by side: the parameters of one thread, to the bit."""

import threading
import time
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from stable_baselines3.common.utils import set_random_seed

from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.halves import HalvesUpdate, halves_of
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.memory import MemoryProfile
from frugal_rl.memory.choices import Precision
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.testing.toy import Toy

ALGO = PpoConfig(num_envs=6, n_steps=16, batch_size=32, n_epochs=3, ent_coef=0.01)


@pytest.fixture(autouse=True)
def same_threads_afterwards():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def learner_on(threads, algo=ALGO, memory=None, shared=()):
    memory = memory or MemoryProfile()
    agent = MlpAgent(actor=(32, 32), critic=(32, 16), shared=shared)
    hardware = Hardware("cpu", threads=threads)
    run = RunConfig(Toy(), agent, algo, memory, None, hardware=hardware, seed=5)
    set_random_seed(run.seed)
    torch.set_num_threads(1)  # initial weights differ in their last bits between numbers of threads
    return algo.build(run, run.env.make_vec(6, run.encoding(), memory, None, "train"))


def learned(learner):
    metrics = [learner.iterate(lambda phase: nullcontext()) for _ in range(3)]
    return learner.policy.state_dict(), metrics


@pytest.mark.parametrize(
    "algo",
    [
        ALGO,
        replace(ALGO, clip_range_vf=0.1),
        replace(ALGO, target_kl=1e-4),
        replace(ALGO, ent_coef=0.0, vf_coef=0.7, batch_size=96),
    ],
    ids=["plain", "clipped values", "stopped by its divergence", "whole rollouts"],
)
@pytest.mark.parametrize(("micro_batch", "shared"), [(0, ()), (12, (24,))])
def test_two_threads_learn_what_one_learns_to_the_bit(algo, micro_batch, shared):
    memory = MemoryProfile(micro_batch=micro_batch)
    two = learner_on(2, algo, memory, shared)
    assert isinstance(two.update, HalvesUpdate)

    (ours, said), (alone, told) = learned(two), learned(learner_on(1, algo, memory, shared))

    assert all(torch.equal(ours[name], alone[name]) for name in alone)
    assert all(
        one[name] == pytest.approx(other[name], nan_ok=True, rel=0)
        for one, other in zip(told, said, strict=True)
        for name in one
        if name.startswith("train/")
    )


def test_the_critic_learns_on_a_thread_of_its_own():
    learner, threads = learner_on(2), set()
    value = learner.policy.network.value
    value.register_forward_hook(lambda *_: threads.add(threading.current_thread().name))

    learned(learner)

    assert any(name.startswith("critic") for name in threads)


def test_an_error_of_the_critic_is_the_update_s():
    learner = learner_on(2)
    rollout = learner.collector.collect(learner.actor)

    def broken(*_):
        raise RuntimeError("no value")

    learner.policy.network.value.register_forward_hook(broken)
    with pytest.raises(RuntimeError, match="no value"):
        learner.learn(rollout)


def test_an_error_of_the_actor_waits_for_the_critic():
    learner, done = learner_on(2), []
    rollout = learner.collector.collect(learner.actor)

    def slow(*_):
        time.sleep(0.1)
        done.append(True)

    def broken(*_):
        raise RuntimeError("no logits")

    learner.policy.network.value.register_forward_hook(slow)
    learner.policy.network.logits.register_forward_hook(broken)
    with pytest.raises(RuntimeError, match="no logits"):
        learner.learn(rollout)
    assert done


@pytest.mark.parametrize(
    "memory",
    [MemoryProfile(precision=Precision.bf16), MemoryProfile(gradient_checkpointing=True)],
    ids=["bf16", "recomputed"],
)
def test_what_is_kept_for_each_process_stays_on_one_thread(memory):
    learner = learner_on(2, ALGO, memory)
    assert halves_of(learner.policy, ALGO) is None
    assert not isinstance(learner.update, HalvesUpdate)
