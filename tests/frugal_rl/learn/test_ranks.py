"""Several processes learn what one would: shards of a minibatch give the whole one's step."""

import shlex
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from stable_baselines3.common.type_aliases import DictRolloutBufferSamples

from frugal_rl.errors import ConfigError, RankError
from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.learn.ranks import Ranks, told
from frugal_rl.learn.update import Record
from frugal_rl.memory import MemoryProfile
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.run.launch import ranks_command, shard, share_of
from frugal_rl.run.resuming import of_rank
from frugal_rl.testing.toy import Toy

ROOT = Path(__file__).resolve().parents[3]
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


def test_two_ranks_take_the_step_that_one_takes_on_all_samples():
    torch.manual_seed(0)
    whole = learner()
    rollout = whole.collector.collect(whole.policy)
    batch = next(iter(rollout.get(128)))
    terms = ALGO.terms(0.0)
    parts = [learner(), learner()]
    meeting = Meeting(2)

    def learn(rank):
        parts[rank].update.ranks = ThreadRanks(rank, 2, meeting)
        half = part_of(batch, slice(64 * rank, 64 * (rank + 1)))
        for _ in range(10):
            parts[rank].update.learn(half, terms, Record())

    threads = [threading.Thread(target=learn, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        whole.update.learn(batch, terms, Record())
    for thread in threads:
        thread.join()

    expected = whole.optimizer.flat.detach()
    assert torch.equal(parts[0].optimizer.flat, parts[1].optimizer.flat)
    assert (parts[0].optimizer.flat - expected).abs().max() < 1e-5


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


def test_the_plan_of_each_process_gets_its_part_of_the_memory():
    run = compose_run(["env=toy", "launch=torchrun", "memory.budget_gib=8"])

    share = share_of(run)

    assert share.memory.budget_gib == pytest.approx(4)
    assert share.algo.num_envs * 2 == run.algo.num_envs


def test_the_command_keeps_words_folder_and_config_dir():
    run = compose_run(["env=toy", "launch=torchrun", "launch.processes=4", "launch.restarts=2"])
    run = replace(run, run_dir="runs/here", config_dir="mine")

    command = shlex.join(ranks_command(run))

    assert "--nproc-per-node 4 --max-restarts 2" in command
    assert "--config-dir mine env=toy" in command
    assert "hydra.run.dir=runs/here" in command


def test_a_lost_rank_is_told_with_the_way_to_go_on():
    with pytest.raises(RankError, match=r"closed by peer.*resume=.*launch\.restarts=1"), told():
        raise RuntimeError("Connection closed by peer [127.0.0.1]:1234")


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


def train(folder, *words):
    command = [sys.executable, "scripts/train.py", "env=toy", "tracking=disabled", *words]
    sizes = ["algo.num_envs=8", "algo.n_steps=16", "algo.batch_size=64", "evaluation.episodes=4"]
    where = [f"hydra.run.dir={folder}"]
    done = subprocess.run(
        [*command, *sizes, *where], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout, load_checkpoint(folder)["learner"]["policy"]


@pytest.mark.slow
def test_two_processes_resume_to_the_bit_and_one_goes_on_alone(tmp_path):
    two = "launch=torchrun"
    _, whole = train(tmp_path / "whole", two, "algo.total_steps=512")
    train(tmp_path / "half", two, "algo.total_steps=256")
    resume = f"resume={tmp_path / 'half'}"
    _, resumed = train(tmp_path / "resumed", two, resume, "algo.total_steps=512")
    said, _ = train(tmp_path / "alone", resume, "algo.total_steps=512")

    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert "begin new episodes" in said
