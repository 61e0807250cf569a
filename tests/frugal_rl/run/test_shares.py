"""What one of several processes does and holds of a run."""

import os

import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.learn.ranks import Ranks
from frugal_rl.memory import MemoryProfile
from frugal_rl.memory.machine import find_limit
from frugal_rl.run.compose import compose_run
from frugal_rl.run.config import RunConfig
from frugal_rl.run.shares import shard, share_of
from frugal_rl.testing.toy import Toy

ALGO = PpoConfig(num_envs=8, n_steps=16, batch_size=128, n_epochs=1, total_steps=1280)


def test_the_plan_of_each_process_gets_its_part_of_the_memory():
    run = compose_run(["env=toy", "launch=torchrun", "memory.budget_gib=8"])

    share = share_of(run)

    assert share.memory.budget_gib == pytest.approx(4)
    limit = find_limit(share.memory.budget_gib)
    assert (limit.ram_bytes, limit.ram_source) == (4 << 30, "memory.budget_gib=8 for 2 processes")
    whole = compose_run(["env=toy", "launch=torchrun"])  # nobody set a budget
    source = find_limit(share_of(whole).memory.budget_gib).ram_source
    assert source == f"{find_limit().ram_source} for 2 processes"
    machines = compose_run(["env=toy", "launch.nodes=2", "launch.meet=a:29400"])
    assert share_of(machines).memory.budget_gib is None  # one process on each of them
    assert share.algo.num_envs * 2 == run.algo.num_envs


def test_a_rank_has_its_share_and_a_seed_of_its_own():
    run = RunConfig(Toy(), MlpAgent(), ALGO, MemoryProfile(), None, seed=5)

    shares = [shard(run, Ranks(rank, 4)) for rank in range(4)]

    assert {(s.algo.num_envs, s.algo.batch_size) for s in shares} == {(2, 32)}
    assert len({s.seed for s in shares}) == 4
    assert shares[0].seed == run.seed
    assert shard(run, Ranks()) is run


@pytest.mark.parametrize(("vec", "name"), [("shared_memory", "workers"), ("threads", "threads")])
def test_a_rank_has_its_share_of_the_cores(vec, name, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 9)
    words = ["env=gymnasium", "env.id=CartPole-v1", f"vec={vec}", "launch=torchrun"]

    run = compose_run([*words, "launch.processes=4"])
    asked = compose_run([*words, "launch.processes=4", f"vec.{name}=5"])

    assert getattr(shard(run, Ranks(1, 4)).vec, name) == 2
    assert getattr(shard(asked, Ranks(1, 4)).vec, name) == 5
    assert getattr(shard(run, Ranks()).vec, name) == 0


def test_sizes_that_cannot_be_split_are_refused_with_one_that_can():
    run = RunConfig(Toy(), MlpAgent(), ALGO, MemoryProfile(), None)

    with pytest.raises(ConfigError, match=r"algo\.num_envs=8 cannot be split .* 3 .*use .*=9"):
        shard(run, Ranks(0, 3))
