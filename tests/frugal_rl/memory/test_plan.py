"""The plan predicts what is allocated, and refuses with advice that works."""

import json
import resource
import shlex
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from frugal_rl.errors import ConfigError, MemoryBudgetError
from frugal_rl.memory.advice import advise
from frugal_rl.memory.auto import choose
from frugal_rl.memory.part import Confidence, Part, Phase
from frugal_rl.memory.plan import draw_up
from frugal_rl.memory.probe import Probe
from frugal_rl.memory.refusal import plan_memory, told_when_full
from frugal_rl.observation.choices import Label
from frugal_rl.run.compose import compose_run, folder
from frugal_rl.store.rollout import RolloutBuffer

PROBE = Probe(1000, 50.0, 400, 400, 800, 10.0)
SMALL = ["env=toy", "tracking=disabled", "algo.num_envs=6", "algo.n_steps=10", "algo.batch_size=20"]


def run_of(*words: str):
    return compose_run([*SMALL, *words])


@pytest.fixture
def bare(monkeypatch):
    """A bare process of a fixed size, so that a test does not start one."""
    from frugal_rl.memory import plan
    from frugal_rl.memory.base import Base

    measured = Base.everywhere(100 << 20, Confidence.probed)
    monkeypatch.setattr(plan, "measured_base", lambda run, found: measured)
    monkeypatch.setattr(plan, "arithmetic_base", lambda run: measured)


@pytest.mark.parametrize("profile", ["baseline", "lossless", "parallel", "attention", "sparse"])
def test_the_predicted_rollout_is_the_allocated_rollout_to_the_byte(profile):
    run = run_of(f"memory={profile}")
    encoding = run.encoding()

    plan = draw_up(run)
    buffer = RolloutBuffer(
        run.algo.n_steps,
        encoding.policy_space(run.env.episode_steps),
        run.env.action_space(),
        n_envs=run.algo.num_envs,
        encoding=encoding,
        episode_steps=run.env.episode_steps,
    )

    assert plan.rollout_bytes == buffer.nbytes
    assert plan.transitions == run.algo.n_steps * run.algo.num_envs


def test_bytes_that_an_environment_counts_with_numpy_are_plain_numbers():
    part = Part("simulators", "", np.int64(40), np.int32(2))
    assert json.loads(json.dumps([part.ram_bytes, part.vram_bytes])) == [40, 2]


def test_a_phase_holds_the_parts_that_are_alive_in_it():
    plan = draw_up(run_of("memory=baseline"))
    copied = next(p for p in plan.parts if p.name == "flattened copy")

    assert copied.phases == {Phase.update}
    assert plan.peak(Phase.update).ram_bytes - plan.peak(Phase.rollout).ram_bytes >= (
        copied.ram_bytes
    )
    assert plan.peak(Phase.rollout).ram_bytes == sum(
        p.ram_bytes for p in plan.parts if Phase.rollout in p.phases
    )


def test_the_probe_adds_the_learner_and_a_micro_batch_shrinks_its_activations(bare):
    whole = draw_up(run_of(), lambda run: PROBE)
    pieces = draw_up(run_of("memory.micro_batch=5"), lambda run: PROBE)
    by_name = {p.name: p for p in whole.parts}

    assert by_name["activations"].ram_bytes == 20 * 50
    assert {p.name: p.ram_bytes for p in pieces.parts}["activations"] == 5 * 50
    assert by_name["optimiser"].ram_bytes == 800
    assert by_name["activations"].confidence is Confidence.probed


def test_a_hopeless_run_is_refused_by_arithmetic_without_a_probe(bare):
    run = run_of("algo.n_steps=1000000000000")

    def probe(run):
        raise AssertionError("a hopeless run must not be probed")

    with pytest.raises(MemoryBudgetError) as error:
        plan_memory(run, probe)

    assert "TiB" in str(error.value)
    assert "rollout: " in str(error.value)


@pytest.mark.parametrize("profile", ["baseline", "lossless", "sparse"])
def test_the_advice_makes_the_run_fit_when_it_is_followed(profile, bare):
    run = run_of(f"memory={profile}", "algo.n_steps=100000", "memory.budget_gib=0.12")
    with pytest.raises(MemoryBudgetError) as error:
        plan_memory(run)
    advised = str(error.value).split("It fits with ")[1].rstrip(".").split(" or ")

    assert advised
    for words in advised:
        assert plan_memory(run.variant(words.split())).fits


def test_advice_after_a_probed_refusal_counts_what_was_probed(bare):
    """100 MiB of process and 20 samples of 10 MB: arithmetic alone would see 100 MiB."""
    probed = []

    def probe(run):
        probed.append(run)
        heavy = 1e6 if run.memory.gradient_checkpointing else 1e7
        return replace(PROBE, bytes_per_sample=heavy)

    run = run_of("memory.budget_gib=0.22")
    with pytest.raises(MemoryBudgetError) as error:
        plan_memory(run, probe)
    advised = str(error.value).split("It fits with ")[1].rstrip(".").split(" or ")

    assert "memory.gradient_checkpointing=true" in advised
    assert any(words.startswith("algo.") for words in advised)
    assert len(probed) <= 3
    for words in advised:
        assert plan_memory(run.variant(words.split()), probe).fits


def test_lossless_ways_come_before_rounding_and_rounding_before_a_smaller_problem(bare):
    run = run_of("memory=baseline", "algo.n_steps=100000", "memory.budget_gib=0.16")
    labels = [w.label for w in advise(run, draw_up(run), count=9)]

    assert labels == sorted(labels, key=list(Label).index)
    assert labels[0] is Label.lossless


def test_a_refusal_by_the_script_takes_seconds_names_the_largest_part_and_exits_with_three(
    tmp_path,
):
    words = ["env=toy", "algo.n_steps=1000000000", "memory=baseline", "algo.num_envs=10000"]
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, str(folder("scripts") / "plan.py"), *words],
        cwd=tmp_path,
        env={"PYTHONPATH": str(folder("conf").parent), "HOME": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 3, done.stderr
    assert "does not fit" in done.stdout
    assert "rollout: trail" in done.stdout
    assert list(tmp_path.iterdir()) == []
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)  # the clock is the neighbours' too
    assert ended.ru_utime - began.ru_utime < 12


def test_a_pretended_machine_limits_the_plan():
    plan = draw_up(run_of("hardware=laptop_32g_16g"))

    assert plan.limit.ram_bytes == 32 << 30
    assert plan.limit.vram_bytes == 16 << 30
    assert plan.limit.cores == 8


def test_a_budget_below_the_machine_is_the_limit():
    plan = draw_up(run_of("memory.budget_gib=0.5"))

    assert plan.limit.ram_bytes == 1 << 29
    assert "memory.budget_gib=0.5" in plan.limit.ram_source


def test_auto_takes_the_cheapest_saving_that_fits_and_its_words_reproduce_the_plan(bare):
    roomy = choose(run_of("memory=auto", "memory.budget_gib=1"))
    tight = choose(
        run_of(
            "memory=auto",
            "algo.n_steps=100000",
            "memory.budget_gib=0.12",
            "memory.allow=[lossless,precision,capacity]",
        )
    )

    assert (roomy.label, roomy.overrides) == (
        Label.lossless,
        ("memory=lossless", "memory.budget_gib=1"),
    )
    assert tight.label is Label.capacity
    again = plan_memory(compose_run(shlex.split(tight.command)[2:]))
    assert again.ram_bytes == tight.plan.ram_bytes <= 0.12 * 2**30


def test_auto_refuses_where_nothing_that_is_allowed_fits(bare):
    run = run_of("memory=auto", "algo.n_steps=100000", "memory.budget_gib=0.12")

    with pytest.raises(MemoryBudgetError, match=r"memory\.budget_gib=0\.12"):
        choose(run)


@pytest.mark.parametrize("profile", ["small", "optimized", "ultra_light"])
def test_a_smaller_problem_is_refused_by_name_where_no_sizes_are_known(profile):
    words = r"has no sizes for env=toy\. Profiles that fit: .*parallel"
    with pytest.raises(ConfigError, match=words):
        run_of(f"memory={profile}")


def test_the_plan_as_plain_values_adds_up():
    plan = draw_up(run_of("memory=lossless"))
    values = plan.as_dict()

    assert values["ram_bytes"] == max(p["ram_bytes"] for p in values["phases"].values())
    assert np.isclose(values["bytes_per_transition"] * plan.transitions, values["rollout_bytes"])


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 9 bytes")],
)
def test_an_allocation_that_fails_is_told_in_words_with_its_notes(error):
    plan = draw_up(compose_run(["env=toy", "memory.budget_gib=3"]))
    error.add_note("continue with resume=x")
    with (
        pytest.raises(MemoryBudgetError, match=r"gave no more memory: .* of 3.0 GiB") as told,
        told_when_full(plan),
    ):
        raise error
    assert told.value.__notes__ == ["continue with resume=x"]


def test_other_errors_of_torch_are_left_as_they_are():
    plan = draw_up(compose_run(["env=toy"]))
    with pytest.raises(RuntimeError, match="shapes"), told_when_full(plan):
        raise RuntimeError("shapes do not fit")


def test_what_says_itself_how_to_go_on_is_left_as_it_is():
    plan = draw_up(compose_run(["env=toy"]))
    with pytest.raises(MemoryBudgetError, match=r"^Enlarge /dev/shm$"), told_when_full(plan):
        raise MemoryBudgetError("Enlarge /dev/shm")


WORKERS = {
    "vec=shared_memory vec.workers=3": (3 * 5.5 + 34.4, 2 * 5.5),
    "vec=shared_memory vec.workers=3 vec.start=fork": (3 * 5.5 + 30.4, 2 * 5.5),
    "vec=sb3": (8 * 172 + 37, 2 * 172),
    "vec=sb3 vec.start=fork": (8 * 7 + 67, 2 * 7),
    "vec=serial": (0, 0),
}


@pytest.mark.parametrize("words", WORKERS)
def test_worker_processes_are_planned_for_training_and_for_evaluation(words):
    run = compose_run(["env=toy", *words.split(), "algo.num_envs=8", "evaluation.num_envs=2"])
    parts = {p.name: p for p in draw_up(run).parts if "worker" in p.name}
    held = [
        parts[n].ram_bytes / 2**20 for n in ("worker processes", "evaluation: workers") if parts
    ]

    assert held == pytest.approx(WORKERS[words] if parts else [], abs=0.1)
    assert bool(parts) == any(WORKERS[words])
    if parts:
        assert Phase.update not in parts["evaluation: workers"].phases
        assert Phase.update in parts["worker processes"].phases
        kind = type(run.vec)
        said = {(p.source, p.confidence) for p in parts.values()}
        assert said == {(f"{kind.__module__}:{kind.__name__}.processes", Confidence.calibrated)}
