"""The numbers that checks look at, each from the run or its plan, worked out by hand."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from frugal_rl.memory import facts as reading
from frugal_rl.memory.base import Base
from frugal_rl.memory.choices import Precision
from frugal_rl.memory.facts import Facts, facts_of, free_disk, typical_episode
from frugal_rl.memory.finding import Finding, Severity, grade, worst
from frugal_rl.memory.part import Confidence
from frugal_rl.memory.plan import assemble
from frugal_rl.memory.probe import Probe
from frugal_rl.run.compose import compose_run
from frugal_rl.vec_env.shared_memory import WORKER_BYTES, SharedMemory

NOTHING = Base.everywhere(0, Confidence.calibrated)
PROBE = Probe(1000, 50.0, 400, 404, 808, 10.0)
WORDS = [
    "env=toy", "tracking=disabled", "hardware.device=cpu", "hardware.cores=7", "hardware.ram_gib=5",
    "algo.num_envs=6", "algo.n_steps=10", "algo.batch_size=20", "algo.total_steps=1234",
    "evaluation.episodes=4", "evaluation.every_steps=60", "checkpoint_every_steps=120",
    "memory.shuffle=copy", "memory.micro_batch=5",
]  # fmt: skip
OBSERVED = 4 + 2 + 2 * 4 + 3 * 25 + 25 + 4 * 2 * 4 + 25 + 4 * 2
"""Bytes of the mask, position, speed, trail of three, walls, doors, picture and turns."""
VALUES = 4 + 2 + 2 + 3 * 25 + 25 + 8 + 25 + 4


@pytest.fixture(scope="module")
def run():
    return compose_run(WORDS)


@pytest.fixture
def known(run, monkeypatch) -> Facts:
    monkeypatch.setattr(reading, "has_bf16", lambda device: device == "cpu")
    monkeypatch.setattr(
        reading, "free_disk", lambda folder: 999 if str(folder) == run.run_dir else 0
    )
    return facts_of(run, assemble(run, NOTHING, PROBE))


def test_every_fact_of_a_run_is_the_number_that_it_stands_for(run, known):
    assert known == Facts(
        observation_bytes=OBSERVED,
        rollout_bytes=sum([240, 60, 120, 480, 1800, 180, 240, 1320]),
        flattened_bytes=480,
        env_bytes=6 * 56 + 228,
        total_bytes=assemble(run, NOTHING, PROBE).ram_bytes,
        largest="minibatch",
        minibatch_bytes=20 * 151,
        decoded_bytes=4 * VALUES * 5,
        activation_bytes=5 * 50,
        weight_bytes=400 + 404 + 808,
        num_envs=6,
        n_steps=10,
        batch_size=20,
        n_epochs=run.algo.n_epochs,
        total_steps=1234,
        micro_batch=5,
        target_kl=None,
        gamma=run.algo.gamma,
        bf16=False,
        has_bf16=True,
        episode_steps=(20, 20),
        time_limit_steps=20,
        vec="batch",
        workers=0,
        torch_threads=7,
        cores=7,
        ram_bytes=5 << 30,
        vram_bytes=0,
        on_device=False,
        save_every_steps=120,
        checkpoint_bytes=3 * 400 + (1 << 20),
        keep_checkpoints=run.keep_checkpoints,
        free_disk_bytes=999,
        eval_seed_is_training_seed=False,
        eval_steps=4 * 20,
        eval_episodes=4,
        eval_every_steps=60,
        words=tuple(WORDS),
    )


def test_on_a_device_the_learner_counts_where_it_computes(run, monkeypatch):
    on_device = replace(run, hardware=replace(run.hardware, device="cuda", vram_gib=2, threads=3))
    monkeypatch.setattr(reading, "has_bf16", lambda device: False)
    found = facts_of(on_device, assemble(on_device, NOTHING, PROBE))

    assert (found.on_device, found.vram_bytes) == (True, 2 << 30)
    assert (found.minibatch_bytes, found.activation_bytes) == (20 * 151, 250)
    assert (found.weight_bytes, found.torch_threads) == (1612, 3)
    assert found.has_bf16 is False


def test_a_run_in_bf16_that_evaluates_on_its_own_seed_is_told_so(run):
    odd = replace(
        run,
        memory=replace(run.memory, precision=Precision.bf16, micro_batch=0),
        evaluation=replace(run.evaluation, seed=run.seed),
    )
    found = facts_of(odd, assemble(odd, NOTHING, PROBE))

    assert (found.bf16, found.eval_seed_is_training_seed) == (True, True)
    assert found.decoded_bytes == 4 * VALUES * 20
    larger = replace(odd, memory=replace(run.memory, micro_batch=100))
    assert facts_of(larger, assemble(larger, NOTHING, PROBE)).decoded_bytes == 4 * VALUES * 20


def test_a_backend_is_known_by_its_name_and_its_workers(run):
    varied = replace(run, vec=SharedMemory(workers=3))
    found = facts_of(varied, replace(assemble(run, NOTHING, PROBE)))

    assert (found.vec, found.workers) == ("shared_memory", 3)
    assert found.worker_bytes == WORKER_BYTES


@pytest.mark.parametrize(
    ("env", "steps"),
    [
        ({"episode_steps": 30}, (30, 30)),
        ({"episode_steps": 0}, None),
        ({"episode_steps": 1 << 20, "unlimited": True}, None),
        ({"episode_steps": 30, "typical_episode_steps": (5.0, 9.0)}, (5, 9)),
    ],
)
def test_an_episode_is_as_long_as_the_environment_says_else_as_its_limit(env, steps):
    assert typical_episode(SimpleNamespace(env=SimpleNamespace(**env))) == steps


def test_a_folder_that_is_not_there_yet_has_the_room_of_the_one_above(tmp_path, monkeypatch):
    asked = []
    usage = SimpleNamespace(free=42)
    monkeypatch.setattr(reading.shutil, "disk_usage", lambda f: asked.append(f) or usage)

    assert free_disk(tmp_path / "a" / "b") == 42
    assert free_disk(tmp_path) == 42
    assert asked == [tmp_path, tmp_path]
    assert free_disk(Path("not/there/either")) == 42


@pytest.mark.parametrize(
    ("value", "severity"), [(1.0, "ok"), (1.01, "warning"), (2.0, "warning"), (2.01, "error")]
)
def test_a_grade_begins_above_its_bound(value, severity):
    assert grade(value, 1.0, 2.0) is Severity(severity)
    assert grade(9.0, 1.0) is Severity.warning


def test_the_worst_of_some_findings_is_the_highest():
    said = [Finding("F", "", Severity(word), "") for word in ("info", "warning", "ok")]

    assert worst(said) is Severity.warning
    assert worst(said[2:]) is worst([]) is Severity.ok


def test_rollouts_and_minibatches_are_counted_up():
    found = Facts(num_envs=3, n_steps=5, batch_size=4, n_epochs=2, total_steps=31,
                  rollout_bytes=7, flattened_bytes=2)  # fmt: skip

    assert (found.samples, found.iterations, found.gradient_steps_per_rollout) == (15, 3, 8)
    assert found.rollout_peak_bytes == 9
    assert Facts(n_steps=2, batch_size=0).gradient_steps_per_rollout == 2
