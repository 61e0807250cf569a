"""A number that is none, in every guest and every kind of learner: named, never kept, resumed."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from frugal_rl.errors import NumbersError
from frugal_rl.run.compose import compose_run
from frugal_rl.run.finite import not_finite
from frugal_rl.run.keeping import newest_sound
from frugal_rl.run.trainer import train
from frugal_rl.testing import reach  # noqa: F401 - registers Reach-v0
from frugal_rl.testing.faults import Poison

SMALL = ("tracking=disabled", "hardware.device=cpu", "hardware.threads=1", "evaluation.episodes=0")
ON_POLICY = ("algo.num_envs=2", "algo.n_steps=16", "algo.batch_size=16", "algo.n_epochs=1",
             "algo.total_steps=160", "checkpoint_every_steps=32")  # fmt: skip
NETWORKS = ("agent.actor=[8]", "agent.critic=[8]")
OFF_POLICY = ("algo.num_envs=2", "algo.n_steps=16", "algo.batch_size=8", "algo.learning_starts=16",
              "algo.total_steps=160", "algo.buffer_size=200",
              "checkpoint_every_steps=32")  # fmt: skip
PROBLEMS = {
    "toy": ("env=toy", *ON_POLICY, *NETWORKS),
    "nclone": ("env=nclone", "agent=mlp", *ON_POLICY, *NETWORKS),
    "mine": ("env=mine_daily_small", *ON_POLICY),
    "duel": ("env=fighting", "env.obs=ram", *ON_POLICY),
    "gymnasium": ("env=gymnasium", *ON_POLICY),
    "dqn": ("env=gymnasium", "algo=dqn", *OFF_POLICY),
    "sac": ("env=gymnasium", "env.id=Pendulum-v1", "algo=sac", *OFF_POLICY),
    "her": (
        "env=gymnasium",
        "env.id=Reach-v0",
        "algo=sac",
        "algo.her=true",
        *OFF_POLICY,
        "algo.learning_starts=24",
    ),
    "bfloat16": ("env=toy", *ON_POLICY, *NETWORKS, "memory.precision=bf16"),
    "float16": ("env=toy", *ON_POLICY, *NETWORKS, "memory.storage=half"),
    "compiled": ("env=toy", *ON_POLICY, *NETWORKS, "algo.engine=compiled"),
    "cloned": (
        "env=nclone",
        "agent=mlp",
        "env.levels=[drawn]",
        "algo=cloned_ppo",
        "algo.cloning.epochs=1",
        *ON_POLICY,
        *NETWORKS,
    ),
}
QUICK = ("toy", "gymnasium", "dqn")
PLACES = ("reward", "observation", "loss", "weights")
CASES = [
    pytest.param(name, where, marks=() if name in QUICK else pytest.mark.slow)
    for name in PROBLEMS
    for where in PLACES
]


class Nowhere:
    def metrics(self, step, values):
        pass

    summary = file = lambda self, values: None


def composed(name, folder):
    return replace(compose_run([*PROBLEMS[name], *SMALL], check=False), run_dir=str(folder))


def poisoned_env(patch, run, where, at):
    """One value of the training environments is none in step `at`."""
    kind = type(run.env)
    real = kind.make_vec

    def make_vec(self, num_envs, encoding, memory, vec, split):
        made = real(self, num_envs, encoding, memory, vec, split)
        return Poison(where, at, 1).into(made) if split == "train" else made

    patch.setattr(kind, "make_vec", make_vec)


def poisoned_learner(patch, run, where, at):
    """The loss or one weight is none after iteration `at`."""
    kind = type(run.algo)
    real = kind.build

    def build(self, run, vec_env):
        learner = real(self, run, vec_env)
        iterate, calls = learner.iterate, iter(range(10**6))

        def spoilt(phase):
            metrics = iterate(phase)
            if next(calls) == at and where == "weights":
                next(iter(learner.policy.parameters())).data.view(-1)[0] = float("nan")
            elif where == "loss" and metrics and learner.num_steps > 32 * at:
                metrics |= {"train/value_loss": float("nan")}
            return metrics

        learner.iterate = spoilt
        return learner

    patch.setattr(kind, "build", build)


def float_row(run):
    """The name of a row of floats, which can hold what is no number."""
    probe = run.env.make_vec(1, run.encoding(), run.memory, run.vec, "test")
    try:
        rows = probe.reset(0)
        return next((n for n, v in rows.items() if v.dtype.kind == "f"), None)
    finally:
        probe.close()


def told(where, field):
    """What the refusal must say."""
    step = r"of environment 1 is nan in step \d+ since the run began, after action"
    return {
        "reward": rf"The reward {step}",
        "observation": rf"The observation '{field}' \[.*\] {step}",
        "loss": "train/value_loss is nan after",
        "weights": "made weights of '.*' that are not finite; they are not kept",
    }[where]


@pytest.mark.parametrize(("name", "where"), CASES)
def test_whatever_is_none_is_named_never_kept_and_the_run_goes_on_from_before(
    name, where, tmp_path
):
    run = composed(name, tmp_path / "a")
    random = np.random.default_rng([len(name), len(where)])
    field = float_row(run) if where == "observation" else None
    if where == "observation" and field is None:
        pytest.skip("all rows are whole numbers, which cannot be none")
    with pytest.MonkeyPatch.context() as patch:
        if where in ("loss", "weights"):
            poisoned_learner(patch, run, where, int(random.integers(1, 4)))
        else:
            poisoned_env(patch, run, field or where, int(random.integers(34, 70)))
        with pytest.raises(NumbersError) as error:
            train(run, Nowhere(), console=Console(file=io.StringIO()))
    words = str(error.value)
    assert re.search(told(where, field), words), words
    found = newest_sound(run.run_dir)
    assert not list(not_finite(found.content["learner"]))
    assert f"resume={found.file}" in words
    on = replace(run, run_dir=str(tmp_path / "on"), resume=run.run_dir)
    summary = train(on, Nowhere(), console=Console(file=io.StringIO()))
    assert summary["num_steps"] == run.algo.total_steps
