"""A bare process, phase by phase: what is always there, and what a tiny phase held beyond that."""

import os
import sys
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from types import SimpleNamespace
from typing import ClassVar

import pytest

from frugal_rl import remembered
from frugal_rl.learn.on_policy_config import Engine
from frugal_rl.memory import base, duration, machine, plan
from frugal_rl.memory.base import Base, tiny
from frugal_rl.memory.choices import Allocator, LibraryPages
from frugal_rl.memory.duration import Line, Pace
from frugal_rl.memory.part import Confidence, Kind, Phase
from frugal_rl.observation.choices import Storage
from frugal_rl.run.compose import compose_run
from frugal_rl.run.config import Tracking
from frugal_rl.vec_env.serial import Serial

MIB = 1 << 20
HELD = dict(zip(Phase, (320, 300, 310, 400, 300), strict=True))


def test_the_parts_of_each_phase_sum_up_to_what_it_held():
    found = Base({p: mib * MIB for p, mib in HELD.items()}, Confidence.probed)

    sums = {p: sum(x.ram_bytes for x in found.parts if p in x.phases) // MIB for p in Phase}

    assert sums == HELD
    assert [p.name for p in found.parts] == [
        "interpreter and libraries", "a tiny start", "a tiny update", "a tiny evaluation",
    ]  # fmt: skip


def test_an_evaluation_that_held_much_does_not_raise_the_other_phases(monkeypatch):
    words = ["tracking=disabled", "algo.num_envs=8", "algo.n_steps=16", "plan=probe"]
    run = compose_run(["env=toy", *words])
    planned = plan.assemble(tiny(run), Base.everywhere(0, Confidence.probed), None)
    peaks = {p: planned.peak(p).ram_bytes + mib * MIB for p, mib in HELD.items()}
    monkeypatch.setattr(plan, "measured_peaks", lambda run: peaks)
    monkeypatch.setattr(plan, "keep_base", lambda run, base: None)

    found = plan.measured_base(run, None)

    assert {p: count // MIB for p, count in found.by_phase.items()} == HELD


def test_a_run_that_evaluates_on_its_way_is_measured_so():
    ends = compose_run(["env=toy", "evaluation.every_steps=0"])
    on_its_way = compose_run(["env=toy", "evaluation.every_steps=5000"])

    assert tiny(ends).evaluation.every_steps == 0
    assert 0 < tiny(on_its_way).evaluation.every_steps < tiny(on_its_way).algo.total_steps


def test_tables_that_fill_up_are_small_in_the_tiny_run():
    run = compose_run(["env=nclone", "env.obs=graph"])

    assert tiny(run).env.graphs_mib < 4 < run.env.graphs_mib


def test_an_installation_is_measured_once_and_a_probe_of_a_kind_refines_it(tmp_path, monkeypatch):
    asked = []
    held = {p.value: 200 * MIB for p in Phase}
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path)
    monkeypatch.setattr(base, "ask_child", lambda *a: asked.append(a) or {"bytes": held})
    run = compose_run(["env=toy", "tracking=disabled"])

    first, again = plan.measured_base(run, None), plan.measured_base(run, None)
    base.keep_base(run, Base.everywhere(300 * MIB, Confidence.probed))

    assert len(asked) == 1
    assert first == again
    assert first.process_bytes == 200 * MIB
    assert plan.measured_base(run, None).process_bytes == 300 * MIB


@pytest.mark.parametrize(
    ("word", "same"),
    [
        ("algo.learning_rate=1e-3", True),
        ("algo.num_envs=16", True),
        ("algo.overlap=true", True),
        ("algo.engine=exact", False),
        ("memory=lossless", False),
    ],
)
def test_a_probed_base_is_that_of_every_run_that_does_the_same(word, same, tmp_path, monkeypatch):
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path)
    words = ["env=toy", "tracking=disabled", "memory=parallel", "algo.engine=compiled"]

    base.keep_base(compose_run(words), Base.everywhere(300 * MIB, Confidence.probed))

    assert (base.kept_base(compose_run([*words, word])) is not None) == same


def test_a_phase_that_was_not_measured_is_taken_to_hold_the_most():
    found = base.phases_of({"rollout": 5, "update": 9})

    assert found == {Phase.rollout: 5} | dict.fromkeys(set(Phase) - {Phase.rollout}, 9)


@pytest.mark.parametrize(
    ("confidence", "found", "words"),
    [
        (Confidence.probed, True, "a tiny run in a process of its own"),
        (Confidence.calibrated, True, "this installation"),
        (Confidence.calibrated, False, "a typical one"),
        (Confidence.exact, True, ""),
    ],
)
def test_a_base_says_where_its_numbers_come_from(confidence, found, words, monkeypatch):
    monkeypatch.setattr(machine, "has_driver", lambda: True)
    always, beyond = Base({Phase.rollout: 4, Phase.update: 7}, confidence, True, found).parts

    assert (always.formula, always.ram_bytes, always.vram_bytes) == (words, 4, 500 * MIB)
    assert (beyond.name, beyond.ram_bytes, beyond.vram_bytes) == ("a tiny update", 3, 0)
    assert beyond.formula == "what it held beyond interpreter and libraries"
    assert beyond.phases == {Phase.update}
    for part in (always, beyond):
        assert (part.kind, part.confidence) == (Kind.process, confidence)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_by_arithmetic_a_process_is_a_typical_one_and_was_not_looked_at(device):
    found = base.arithmetic_base(toy(f"hardware.device={device}"))

    assert found == Base(
        dict.fromkeys(Phase, 520 * MIB), Confidence.calibrated, device == "cuda", False
    )
    assert [part.vram_bytes for part in found.parts] == [500 * MIB * (device == "cuda")]


@pytest.fixture(scope="module", autouse=True)
def anew():
    """What a process before this one found is not asked again (tools that break code fork)."""
    toy.cache_clear()


@cache
def toy(*words: str):
    return compose_run(["env=toy", "tracking=disabled", *words])


def test_a_tiny_run_is_the_same_but_for_its_sizes():
    words = (
        "evaluation.every_steps=9",
        "checkpoint_every_steps=7",
        "memory.budget_gib=3",
        "memory.max_hours=9",
    )
    run = replace(toy(*words), resume="a folder")

    small = tiny(run)

    assert vars(small.algo) == vars(run.algo) | {
        "num_envs": 4, "n_steps": 4, "batch_size": 8, "total_steps": 48,
    }  # fmt: skip
    assert small.evaluation == replace(run.evaluation, every_steps=32, episodes=2, num_envs=2)
    alone = replace(run, evaluation=replace(run.evaluation, num_envs=1))
    assert tiny(alone).evaluation.num_envs == 1
    assert (small.checkpoint_every_steps, small.resume) == (0, None)
    assert small.memory == replace(run.memory, budget_gib=None, max_hours=None)
    assert small.tracking.wandb == "disabled"
    assert (small.env, small.agent, small.vec) == (run.env, run.agent, run.vec)
    assert tiny(replace(run, tracking=Tracking(wandb="online"))).tracking.wandb == "offline"


@pytest.mark.parametrize("compiled", [False, True])
def test_a_tiny_run_that_compiled_is_measured_once_more(compiled, monkeypatch):
    asked = []

    def answer(*words):
        asked.append(words)
        count = len(asked)
        return {
            "compiled": compiled and count == 1,
            "bytes": {"update": count},
            "libraries": {"a.so": count},
        }

    kept = []
    monkeypatch.setattr(base, "ask_child", answer)
    monkeypatch.setattr(base, "keep_libraries", lambda run, found: kept.append((run, found)))
    run = toy()

    assert set(base.measured_peaks(run).values()) == {1 + compiled}
    assert asked == [("frugal_rl.run.dry_run", run, "Measuring a tiny run")] * (1 + compiled)
    assert kept == [(run, {"a.so": 1 + compiled})]


def test_what_a_kind_of_run_loads_beside_an_installation_is_added(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path)
    monkeypatch.setattr(base, "ask_child", lambda *a: asked.append(a) or {"bytes": {"update": 100}})
    run = replace(toy("hardware.device=cuda"), env=Loading(3), agent=Loading(0), algo=Loading(0))

    found = base.installed_base(run)

    assert found == Base(dict.fromkeys(Phase, 121), Confidence.calibrated, True)
    assert asked == [("frugal_rl.run.bare", run, "Measuring this installation, once")]
    assert base.installed_base(run) == found
    assert len(asked) == 1
    assert [path.name.split("_")[0] for path in tmp_path.iterdir()] == ["installation"]


@dataclass(frozen=True)
class Loading:
    """What loads libraries of 7 bytes."""

    size: int
    libraries_bytes: ClassVar[int] = 7


def names_written(run, monkeypatch) -> tuple[str, str]:
    """Where an installation and a kind of run are remembered."""
    asked: list[str] = []
    monkeypatch.setattr(remembered, "read", lambda name: asked.append(name) or {"update": 1})
    base.installed_base(run)
    base.kept_base(run)
    return asked[0], asked[1]


@pytest.mark.parametrize(
    ("part", "change", "of_installation", "of_kind"),
    [
        ("algo", {"num_envs": 3, "n_steps": 9, "total_steps": 77}, False, False),
        ("evaluation", {"episodes": 3, "num_envs": 5}, False, False),
        ("memory", {"budget_gib": 3}, False, False),
        ("env", {"levels": 2}, False, True),
        ("agent", {"actor": (8,)}, False, True),
        ("algo", {"n_epochs": 9, "gamma": 0.5}, False, False),
        ("algo", {"engine": Engine.compiled}, False, True),
        ("memory", {"storage": Storage.dense}, False, True),
        ("evaluation", {"every_steps": 64}, False, True),
        ("hardware", {"device": "cuda"}, True, True),
        ("tracking", {"wandb": "offline"}, True, True),
        ("memory", {"allocator": Allocator.default}, True, True),
        ("memory", {"library_pages": LibraryPages.kept}, True, True),
    ],
)
def test_what_is_remembered_is_that_of_the_same_kind(
    part, change, of_installation, of_kind, monkeypatch
):
    run = toy()
    other = replace(run, **{part: replace(getattr(run, part), **change)})
    one, two = names_written(run, monkeypatch), names_written(other, monkeypatch)

    assert (one[0] != two[0], one[1] != two[1]) == (of_installation, of_kind)
    assert [name.split("_")[0] for name in one] == ["installation", "base"]


@pytest.mark.parametrize("change", [{"visualization": True}, {"vec": Serial()}])
def test_what_is_drawn_and_who_steps_the_environments_make_another_kind(change, monkeypatch):
    run = toy()
    one = names_written(run, monkeypatch)

    assert names_written(replace(run, **change), monkeypatch)[1] != one[1]


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        (metadata, "version", lambda name: f"{name} 1"),
        (os, "cpu_count", lambda: 1000),
        (sys, "version", "4.0"),
        (remembered, "code_digest", lambda *packages: "other code"),
    ],
)
def test_another_installation_is_measured_anew(where, name, value, monkeypatch):
    run = toy()
    before = names_written(run, monkeypatch)[0]
    monkeypatch.setattr(where, name, value)

    assert names_written(run, monkeypatch)[0] != before


@pytest.mark.parametrize("library", ["torch", "stable-baselines3", "numba", "wandb", "numpy",
                                     "hydra-core", "gymnasium"])  # fmt: skip
def test_each_library_that_fills_a_process_counts(library, monkeypatch):
    run, version = toy(), metadata.version
    before = names_written(run, monkeypatch)[0]
    monkeypatch.setattr(metadata, "version", lambda n: "0" if n == library else version(n))

    assert names_written(run, monkeypatch)[0] != before


def test_what_nobody_probed_is_not_known_and_what_was_is_given_back(tmp_path, monkeypatch):
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path)
    held = {phase: 10 + i for i, phase in enumerate(Phase)}
    run = toy("hardware.device=cuda")

    assert base.kept_base(run) is None
    base.keep_base(run, Base(held, Confidence.probed))
    assert base.kept_base(run) == Base(held, Confidence.probed, True)


def test_libraries_count_as_the_last_run_of_the_same_network_had_them_resident(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path)
    monkeypatch.setattr(base, "ask_child", lambda *a: {"bytes": {"update": 100 * MIB}})
    run, other = toy(), replace(toy(), agent=Loading(0))
    base.keep_libraries(run, {"a.so": 30 * MIB, "gone.so": 5 * MIB})
    measured = base.installed_base(run)
    base.keep_libraries(other, {"a.so": 90 * MIB})  # another network touches other pages
    base.keep_libraries(run, {"a.so": 47 * MIB, "its_own.so": 9 * MIB})
    later = base.installed_base(run)
    base.keep_libraries(run, {})

    assert measured.process_bytes == 100 * MIB
    assert later.process_bytes == 117 * MIB == base.installed_base(run).process_bytes


def test_a_kind_that_was_tried_out_moves_with_its_libraries_too(tmp_path, monkeypatch):
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path)
    run = toy()
    base.keep_libraries(run, {"a.so": 30 * MIB})
    base.keep_base(run, Base.everywhere(300 * MIB, Confidence.probed))
    base.keep_libraries(run, {"a.so": 10 * MIB})

    found = base.kept_base(run)

    assert found is not None
    assert found.by_phase == dict.fromkeys(Phase, 280 * MIB)


def test_a_run_for_a_gpu_that_is_not_here_is_measured_on_the_cpu(monkeypatch):
    """It ended in `torch finds no CUDA device` where nothing had been measured yet."""
    monkeypatch.setattr(machine, "has_driver", lambda: False)
    words = ["env=toy", "hardware.device=cuda", "hardware.vram_gib=24", "tracking=disabled"]
    run = compose_run(words)

    found = base.measured_peaks(run)
    assert set(found) == set(Phase)
    parts = Base(found, Confidence.probed, True).parts
    assert "what CUDA's libraries hold comes on top" in parts[0].formula
    assert parts[0].vram_bytes == base.CONTEXT_BYTES
    pace = Pace(Line(0.1, 0.001), Line(0.1, 0.001))
    timed = SimpleNamespace(pace=pace)
    monkeypatch.setattr(duration.remembered, "read", lambda name: None)
    assert duration.estimate(run, timed) is None
    here = replace(run, hardware=replace(run.hardware, device="cpu"))
    assert duration.estimate(here, timed).hours > 0
