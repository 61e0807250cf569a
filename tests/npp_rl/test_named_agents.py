"""The agents that have a name: one per budget, and one for a GPU."""

import pytest
import torch

from frugal_rl.run.compose import compose_run
from frugal_rl.run.trainer import no_meter
from nclone.levels.generators import PLAIN
from npp_rl.choices import ObjectiveHead

BY_BUDGET = ("npp_5_minutes", "npp_20_minutes", "npp_45_minutes", "npp_gpu")


@pytest.fixture(scope="module")
def named():
    """The run of each name."""
    return {name: compose_run(["env=nclone", f"experiment={name}"]) for name in BY_BUDGET}


def test_each_learns_on_the_nine_categories_and_looks_ahead_when_judged(named):
    for run in named.values():
        assert run.env.levels == PLAIN
        assert run.agent.lookahead.samples == 16
        assert run.evaluation.episodes == 64 * len(PLAIN)


def test_a_larger_budget_takes_more_steps(named):
    steps = [named[name].algo.total_steps for name in BY_BUDGET]

    assert steps == sorted(set(steps))


def test_the_longer_ones_have_no_attention_over_objectives(named):
    heads = {name: run.agent.objectives.head for name, run in named.items()}

    assert {name for name, head in heads.items() if head is ObjectiveHead.none} == {
        "npp_45_minutes",
        "npp_gpu",
    }


def test_the_one_for_a_gpu_learns_on_a_cpu_too():
    few = ["algo.num_envs=4", "algo.n_steps=8", "algo.batch_size=16", "algo.cloning.epochs=0"]
    run = compose_run(["env=nclone", "experiment=npp_gpu", "env.levels=[walk]", *few])
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    learner = run.algo.build(run, vec_env)
    first = [p.clone() for p in learner.policy.parameters()]

    learner.iterate(no_meter)

    pairs = zip(first, learner.policy.parameters(), strict=True)
    assert any(not torch.equal(before, after) for before, after in pairs)
