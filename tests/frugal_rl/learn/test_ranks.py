"""Several processes learn what one would: shards of a minibatch give the whole one's step."""

import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from stable_baselines3.common.type_aliases import DictRolloutBufferSamples
from stable_baselines3.common.utils import set_random_seed
from torch.distributed import HashStore

from frugal_rl.errors import ConfigError, RankError
from frugal_rl.learn import ranks as joining
from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.learn.ranks import Ranks, RollCall, joined
from frugal_rl.learn.rewards import RewardScale
from frugal_rl.learn.update import Record
from frugal_rl.memory import MemoryProfile
from frugal_rl.run.compose import compose_run
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.run.resuming import of_rank
from frugal_rl.run.shares import shard
from frugal_rl.testing.ranks import together
from frugal_rl.testing.toy import Toy

ALGO = PpoConfig(num_envs=8, n_steps=16, batch_size=128, n_epochs=1, total_steps=1280)


def learner():
    torch.manual_seed(3)
    agent = MlpAgent(actor=(16,), critic=(16,))
    hardware = Hardware("cpu", threads=1)
    run = RunConfig(Toy(), agent, ALGO, MemoryProfile(), None, hardware=hardware, seed=5)
    vec_env = run.env.make_vec(8, run.encoding(), run.memory, run.vec, "train")
    return ALGO.build(run, vec_env)


def part_of(batch, rows):
    observations = {name: value[rows] for name, value in batch.observations.items()}
    return DictRolloutBufferSamples(observations, *(column[rows] for column in batch[1:]))


@pytest.mark.parametrize("size", [2, 4])
def test_ranks_learn_in_ten_iterations_what_one_does_on_all_environments(size):
    parts, whole = [learner() for _ in range(size)], learner()
    terms = ALGO.terms(0.0)

    for iteration in range(10):
        batches = []
        for each in (*parts, whole):  # each with parameters of its own, the same random numbers
            set_random_seed(iteration)
            batches.append(next(iter(each.collector.collect(each.policy).get(128))))

        def learn(ranks, batches=batches):
            rank, rows = ranks.rank, 128 // size
            parts[rank].update.ranks = ranks
            own = slice(rows * rank, rows * (rank + 1))
            parts[rank].update.learn(part_of(batches[rank], own), terms, Record())

        together(size, learn)
        whole.update.learn(batches[-1], terms, Record())

    expected = whole.optimizer.flat.detach()
    assert all(torch.equal(parts[0].optimizer.flat, part.optimizer.flat) for part in parts)
    assert (parts[0].optimizer.flat - expected).abs().max() < 1e-5
    assert (expected - learner().optimizer.flat).abs().max() > 1e-3  # they did learn


class Part:
    """A rank's slice of every minibatch of a rollout that the whole run would draw."""

    def __init__(self, rollout, rank, size):
        self.rollout, self.rank, self.size = rollout, rank, size
        self.values, self.returns = rollout.values, rollout.returns
        self.advantages_at, self.samples = rollout.advantages_at, rollout.samples

    def order(self, batch_size):
        orders = self.rollout.order(batch_size * self.size)
        return [indices[self.rank * batch_size :][:batch_size] for indices in orders]


def test_epochs_of_several_minibatches_give_what_one_process_learns():
    size, whole = 2, learner()
    parts = [learner() for _ in range(size)]
    rollouts = []
    for each in (*parts, whole):
        set_random_seed(0)
        rollouts.append(each.collector.collect(each.policy))
    # Epochs, drawn before: NumPy's random numbers are those of all threads.
    orders = [rollouts[-1].order(32) for _ in range(3)]
    for rollout in rollouts:
        left = iter(orders)
        rollout.order = lambda _, left=left: next(left)
    terms = ALGO.terms(0.0)

    def learn(ranks):
        update = parts[ranks.rank].update
        update.ranks = ranks
        update.run(Part(rollouts[ranks.rank], ranks.rank, size), 32 // size, 3, terms)

    together(size, learn)
    whole.update.run(rollouts[-1], 32, 3, terms)

    expected = whole.optimizer.flat.detach()
    assert torch.equal(parts[0].optimizer.flat, parts[1].optimizer.flat)
    assert (parts[0].optimizer.flat - expected).abs().max() < 1e-5
    assert (expected - learner().optimizer.flat).abs().max() > 1e-3  # they did learn


def test_the_roll_call_names_who_does_not_answer():
    store = HashStore()
    calls = [RollCall(store, rank, 3) for rank in range(3)]
    assert len(calls[2].missing(0)) == 2

    (missing,) = calls[0].missing(0)

    assert missing.startswith(f"process 1 of 3 (pid {os.getpid()} on ")


def test_the_others_wait_longer_than_the_limit_for_a_first_one_that_lives(monkeypatch):
    monkeypatch.setattr(joining, "BEAT_SECONDS", 0.02)
    store = HashStore()
    first, other = (Ranks(n, 2, RollCall(store, n, 2, limit_s=0.2)) for n in range(2))
    order = []

    def waits():
        for block in range(2):
            with other.led():
                order.append(("waited", block))

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waits)
        for block in range(2):
            with first.led():
                time.sleep(0.4)  # twice the limit
                order.append(("worked", block))
        waiting.result()

    assert order.index(("worked", 0)) < order.index(("waited", 0))
    assert order.index(("worked", 1)) < order.index(("waited", 1))


def test_a_first_one_that_falls_silent_is_named(monkeypatch):
    monkeypatch.setattr(joining.RollCall.missing, "__defaults__", (0.0,))
    store = HashStore()
    RollCall(store, 0, 2)
    other = Ranks(1, 2, RollCall(store, 1, 2, limit_s=0.05))

    with pytest.raises(RankError, match=r"No answer from process 0 of 2 "), other.led():
        pytest.fail("it waits before the block")


def test_a_lost_rank_is_told_by_its_number():
    roll = RollCall(HashStore(), 0, 1)
    with (
        pytest.raises(RankError, match=r"No answer from another .*closed by peer"),
        Ranks(0, 2, roll).told(),
    ):
        raise RuntimeError("Connection closed by peer [127.0.0.1]:1234")


@pytest.mark.parametrize(
    "words",
    [["env=toy", "vec=episodes"], ["env=gymnasium", "env.id=CartPole-v1", "algo=dqn"]],
)
def test_what_runs_on_one_process_only_says_so(words):
    run = compose_run([*words, "launch=torchrun"])

    with pytest.raises(ConfigError, match=r"launch=single"):
        shard(run, Ranks(0, 2))


def test_another_number_of_processes_begins_new_episodes():
    content = {
        "rng": 0,
        "learner": {"policy": 1, "collector": "a"},
        "ranks": [{"rng": 7, "learner": {"collector": "b"}}],
    }

    assert of_rank(content, Ranks(0, 2))["learner"]["collector"] == "a"
    assert of_rank(content, Ranks(1, 2))["learner"] == {"policy": 1, "collector": "b"}
    assert of_rank(content, Ranks(1, 2))["rng"] == 7
    assert of_rank(content, Ranks())["learner"]["collector"] is None
    scale = {"mean": 1.0, "var": 2.0, "count": 3.0, "returns": [4.0]}
    content["learner"]["collector"] = {"vec_env": 1, "scale": scale, "common": {"stage": 5}, "a": 6}
    assert of_rank(content, Ranks())["learner"]["collector"] == {
        "vec_env": None,
        "scale": {"mean": 1.0, "var": 2.0, "count": 3.0},
        "common": {"stage": 5},
    }


def test_ranks_scale_rewards_by_what_all_of_them_have_seen():
    rng = np.random.default_rng(1)
    rewards = [rng.normal(2, 3, (2, 5, 4)).astype(np.float32) for _ in range(3)]
    never, whole = np.zeros(8, np.bool_), RewardScale(8, 0.9)

    def seen(ranks):
        scale = RewardScale(4, 0.9)
        for rollout in rewards:
            for reward in rollout[ranks.rank]:
                scale(reward, never[:4])
            scale.agree(ranks)
        again = RewardScale(4, 0.9)
        again.load(scale.state())
        again.agree(ranks)  # nothing new
        assert again.var == pytest.approx(scale.var, rel=1e-12)
        return scale.mean, scale.var, scale.count

    results = together(2, seen)
    for rollout in rewards:
        for pair in np.moveaxis(rollout, 0, 1):
            whole(pair.ravel(), never)

    assert results[0] == results[1]
    np.testing.assert_allclose(results[0][:2], (whole.mean, whole.var), rtol=1e-6)
    assert results[0][2] == pytest.approx(whole.count)


class Beside:
    """torch.distributed with one other process, which holds what the test says."""

    def __init__(self, other=None) -> None:
        self.other = other

    def all_reduce(self, tensor):
        tensor.add_(self.other)

    def all_gather_object(self, values, value):
        values[:] = [value, self.other]

    def gather_object(self, value, values, to):
        assert to == 0
        if values is not None:
            values[:] = [value, self.other]

    def broadcast(self, tensor, source):
        assert source == 0
        tensor.copy_(self.other)


@pytest.fixture
def beside(monkeypatch):
    def other(holds):
        monkeypatch.setattr(joining, "distributed", Beside(holds))
        return Ranks(0, 2)

    return other


def test_two_processes_average_what_they_hold(beside):
    tensor = torch.tensor([1.0, 6.0])
    beside(torch.tensor([3.0, 0.0])).average(tensor)
    assert tensor.tolist() == [2.0, 3.0]

    Ranks().average(tensor)
    assert tensor.tolist() == [2.0, 3.0]


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="Linux")
def test_a_thread_that_wakes_up_takes_no_core_from_one_at_work():
    def policies():
        before = os.sched_getscheduler(0)  # of this thread, which ends with the test
        joining.without_preemption()
        return before, os.sched_getscheduler(0)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(policies).result() == (os.SCHED_OTHER, os.SCHED_BATCH)


def test_mean_and_deviation_are_those_of_the_values_of_both(beside):
    ours, theirs = torch.tensor([1.0, 5.0, 6.0]), torch.tensor([2.0, 9.0])
    sums = torch.tensor([2.0, 11.0, 85.0], dtype=torch.float64)  # count, sum, sum of squares
    others = torch.stack([sums, sums - 1])  # the second minibatch: the other one holds other values
    (mean, deviation), second = beside(others).moments([ours, ours])
    both = torch.cat([ours, theirs])

    assert mean.item() == pytest.approx(both.mean().item())
    assert deviation.item() == pytest.approx(both.std().item())
    assert mean.dtype == deviation.dtype == torch.float32
    assert second[0].item() == pytest.approx((both.sum().item() - 1) / (len(both) - 1))
    assert Ranks().moments([both, ours]) == [(x.mean(), x.std()) for x in (both, ours)]


def test_equal_values_have_no_deviation_whatever_rounding_makes_of_it(beside):
    value = torch.full((3,), 0.1)
    wide = value.double()
    sums = torch.stack([torch.tensor(3.0, dtype=torch.float64), wide.sum(), wide.square().sum()])

    ((_, deviation),) = beside(sums[None]).moments([value])
    ((_, below),) = beside(sums[None] - 1e-12).moments([value])
    assert deviation.item() == pytest.approx(0, abs=1e-8)
    assert below.item() >= 0


@pytest.mark.parametrize(("ours", "theirs"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_a_flag_of_one_is_a_flag_of_both(ours, theirs, beside):
    own = (bool(ours), False, True)
    other = torch.tensor([theirs, 0.0, 0.0], dtype=torch.float64)
    assert beside(other).any(*own) == (bool(ours or theirs), False, True)
    assert Ranks().any(*own) == own


def test_numbers_are_summed_over_both_and_stay_as_they_were(beside):
    own = np.array([1.0, 2.0])

    assert beside(torch.tensor([0.5, 4.0], dtype=torch.float64)).summed(own).tolist() == [1.5, 6.0]
    assert own.tolist() == Ranks().summed(own).tolist() == [1.0, 2.0]


def test_a_number_is_averaged_over_those_who_have_it(beside):
    mine = {"loss": 1.0, "mine": 5.0}

    assert beside({"loss": 3.0, "theirs": 7.0}).mean_of(mine) == {
        "loss": 2.0, "mine": 5.0, "theirs": 7.0,
    }  # fmt: skip
    assert Ranks().mean_of(mine) == mine


def test_values_are_gathered_on_all_on_the_first_or_come_from_it(beside):
    first = beside("b")
    second = Ranks(1, 2)
    tensor = torch.zeros(2)

    assert first.gathered("a") == first.at_first("a") == ["a", "b"]
    assert second.at_first("a") == []
    assert first.from_first("a") == "a"
    assert (Ranks().gathered("a"), Ranks().at_first("a"), Ranks().from_first("a")) == (
        ["a"], ["a"], "a",
    )  # fmt: skip
    beside(torch.tensor([4.0, 5.0])).copy_from_first(tensor)
    assert tensor.tolist() == [4.0, 5.0]
    Ranks().copy_from_first(tensor)


def test_a_failure_without_a_word_is_told_as_one():
    with pytest.raises(RankError) as error, Ranks(0, 2).told():
        raise RuntimeError

    assert str(error.value) == (
        "No answer from another process of this run: gone, or silent for longer than "
        "launch.timeout_s (no reason was given)."
    )


def test_a_process_joins_by_what_torchrun_has_set_and_leaves_in_the_end(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {
        "RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
        "TORCHELASTIC_RUN_ID": "a run",
    }  # fmt: skip
    for name, value in given.items():
        monkeypatch.setenv(name, str(value))
    limits = []
    monkeypatch.setattr(joining, "end_silent_connections", limits.append)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # not asked of a processor's run

    with joined(20) as ranks:
        assert torch.distributed.get_backend() == "gloo"
        assert (ranks.rank, ranks.size, ranks.roll.missing(0)) == (0, 1, [])
        assert (ranks.roll.rank, ranks.roll.size) == (0, 1)
    assert not torch.distributed.is_initialized()
    assert limits == [20, 0]


def test_on_gpus_what_lies_on_the_processor_goes_over_gloo(monkeypatch):
    begun, devices = [], []

    def begin(backend, **settings):
        begun.append((backend, settings["rank"], settings["world_size"]))

    monkeypatch.setattr(joining, "started_by_torchrun", lambda: True)
    monkeypatch.setattr(joining, "rendezvous", lambda *_, **__: iter([(HashStore(), 1, 2)]))
    monkeypatch.setattr(joining.distributed, "init_process_group", begin)
    monkeypatch.setattr(joining.distributed, "destroy_process_group", lambda: None)
    monkeypatch.setattr(joining.distributed, "get_node_local_rank", lambda: 1)
    monkeypatch.setattr(joining.torch.cuda, "set_device", devices.append)

    with joined(20, gpu=True) as ranks:
        assert (ranks.rank, ranks.size) == (1, 2)

    assert (begun, devices) == ([("cpu:gloo,cuda:nccl", 1, 2)], [1])
    known = torch.distributed.distributed_c10d.BackendConfig(begun[0][0])
    assert known.get_device_backend_map() == {"cpu": "gloo", "cuda": "nccl"}


def test_a_process_that_nobody_started_beside_others_is_alone(monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)

    with joined(20) as ranks:
        assert ranks == Ranks()
