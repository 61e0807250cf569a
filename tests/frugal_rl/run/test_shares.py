"""What one of several processes does and holds of a run."""

import os
from types import SimpleNamespace

import pytest

from frugal_rl import remembered
from frugal_rl.errors import ConfigError
from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.learn.ranks import Ranks
from frugal_rl.memory import MemoryProfile
from frugal_rl.memory.advice import advise
from frugal_rl.memory.duration import Line, Pace, estimate
from frugal_rl.memory.facts import facts_of
from frugal_rl.memory.machine import find_limit
from frugal_rl.memory.plan import Plan, draw_up
from frugal_rl.memory.rules_training import divisibility
from frugal_rl.observation.choices import Label
from frugal_rl.report.plan_command import compared
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


def test_what_would_fit_is_told_in_words_of_the_whole_run():
    """Savings were planned for all environments at once, and sizes were those of one process."""
    words = ["env=toy", "launch.processes=2", "memory.budget_gib=2", "algo.num_envs=4096"]
    run = compose_run([*words, "algo.n_steps=2048", "memory=baseline", "agent=mlp"])
    plan = draw_up(share_of(run))

    ways = advise(share_of(run), plan, count=9)

    assert not plan.fits
    assert {way.label for way in ways} >= {Label.lossless, Label.capacity}
    for way in ways:
        typed = share_of(run.variant(way.overrides))
        assert draw_up(typed).ram_bytes == way.plan.ram_bytes


def test_profiles_are_compared_for_one_process_each():
    run = compose_run(["env=toy", "launch.processes=2", "algo.num_envs=4096", "algo.n_steps=512"])
    for name, found in compared(share_of(run)):
        if isinstance(found, Plan):
            alone = draw_up(share_of(run.variant([f"memory={name}"])))
            assert (found.ram_bytes, found.limit.ram_bytes) == (
                alone.ram_bytes,
                alone.limit.ram_bytes,
            )


def test_checks_and_hours_are_those_of_the_whole_run(monkeypatch):
    """Two processes were planned to take twice the updates, and so the hours, of the run."""
    words = ["env=toy", "algo.num_envs=64", "algo.batch_size=96", "algo.total_steps=65536"]
    run = compose_run([*words, "launch.processes=2"])
    share = share_of(run)
    pace = Pace(Line(0.0, 1.0), Line(0.0, 1.0))

    whole, part = (facts_of(one, draw_up(share)) for one in (run, share))
    assert (part.samples, part.batch_size, part.iterations) == (
        whole.samples,
        whole.batch_size,
        whole.iterations,
    )
    assert divisibility(part).override == divisibility(whole).override
    monkeypatch.setattr(remembered, "read", lambda name: None)
    taken = estimate(share, SimpleNamespace(pace=pace))
    assert taken.iterations == whole.iterations


def test_sizes_that_cannot_be_split_are_refused_with_one_that_can():
    run = RunConfig(Toy(), MlpAgent(), ALGO, MemoryProfile(), None)

    with pytest.raises(ConfigError, match=r"algo\.num_envs=8 cannot be split .* 3 .*use .*=9"):
        shard(run, Ranks(0, 3))
