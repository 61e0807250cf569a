"""Several processes learn what one would: shards of a minibatch give the whole one's step."""

import os
import threading
from dataclasses import dataclass

import pytest
import torch
from stable_baselines3.common.type_aliases import DictRolloutBufferSamples
from stable_baselines3.common.utils import set_random_seed
from torch.distributed import HashStore

from frugal_rl.errors import ConfigError, RankError
from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.learn.ranks import Ranks, RollCall
from frugal_rl.learn.update import Record
from frugal_rl.memory import MemoryProfile
from frugal_rl.run.compose import compose_run
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.run.resuming import of_rank
from frugal_rl.run.shares import shard
from frugal_rl.testing.toy import Toy

ALGO = PpoConfig(num_envs=8, n_steps=16, batch_size=128, n_epochs=1, total_steps=1280)


class Meeting:
    """Where two threads exchange values, as processes do over the network."""

    def __init__(self, size):
        self.barrier = threading.Barrier(size)
        self.values = [None] * size

    def exchange(self, rank, value):
        self.values[rank] = value
        self.barrier.wait()
        values = list(self.values)
        self.barrier.wait()
        return values


@dataclass(frozen=True)
class ThreadRanks(Ranks):
    """Ranks in threads of one process."""

    meeting: Meeting | None = None

    def average(self, tensor):
        given = self.meeting.exchange(self.rank, tensor.clone())
        tensor.copy_(torch.stack(given).mean(0))

    def moments(self, values):
        whole = torch.cat(self.meeting.exchange(self.rank, values))
        return whole.mean(), whole.std()


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
    meeting, terms = Meeting(size), ALGO.terms(0.0)
    for rank, part in enumerate(parts):
        part.update.ranks = ThreadRanks(rank, size, meeting=meeting)

    for iteration in range(10):
        batches = []
        for each in (*parts, whole):  # each with parameters of its own, the same random numbers
            set_random_seed(iteration)
            batches.append(next(iter(each.collector.collect(each.policy).get(128))))

        def learn(rank, batches=batches):
            rows = slice(128 // size * rank, 128 // size * (rank + 1))
            parts[rank].update.learn(part_of(batches[rank], rows), terms, Record())

        threads = [threading.Thread(target=learn, args=(rank,)) for rank in range(size)]
        for thread in threads:
            thread.start()
        whole.update.learn(batches[-1], terms, Record())
        for thread in threads:
            thread.join()

    expected = whole.optimizer.flat.detach()
    assert all(torch.equal(parts[0].optimizer.flat, part.optimizer.flat) for part in parts)
    assert (parts[0].optimizer.flat - expected).abs().max() < 1e-5
    assert (expected - learner().optimizer.flat).abs().max() > 1e-3  # they did learn


def test_the_roll_call_names_who_does_not_answer():
    store = HashStore()
    calls = [RollCall(store, rank, 3) for rank in range(3)]
    assert len(calls[2].missing(0)) == 2

    (missing,) = calls[0].missing(0)

    assert missing.startswith(f"process 1 of 3 (pid {os.getpid()} on ")


def test_a_lost_rank_is_told_by_its_number():
    roll = RollCall(HashStore(), 0, 1)
    with (
        pytest.raises(RankError, match=r"No answer from another .*closed by peer"),
        Ranks(0, 2, roll).told(),
    ):
        raise RuntimeError("Connection closed by peer [127.0.0.1]:1234")


def test_a_rank_has_its_share_and_a_seed_of_its_own():
    run = RunConfig(Toy(), MlpAgent(), ALGO, MemoryProfile(), None, seed=5)

    shares = [shard(run, Ranks(rank, 4)) for rank in range(4)]

    assert {(s.algo.num_envs, s.algo.batch_size) for s in shares} == {(2, 32)}
    assert len({s.seed for s in shares}) == 4
    assert shares[0].seed == run.seed
    assert shard(run, Ranks()) is run


def test_sizes_that_cannot_be_split_are_refused_with_one_that_can():
    run = RunConfig(Toy(), MlpAgent(), ALGO, MemoryProfile(), None)

    with pytest.raises(ConfigError, match=r"algo\.num_envs=8 cannot be split .* 3 .*use .*=9"):
        shard(run, Ranks(0, 3))


@pytest.mark.parametrize(
    "words",
    [["env=mine_daily_small", "algo=evolution"], ["algo.reward_normalisation=true"]],
)
def test_what_runs_on_one_process_only_says_so(words):
    run = compose_run(["env=toy", "launch=torchrun", *words] if len(words) == 1 else words)

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
