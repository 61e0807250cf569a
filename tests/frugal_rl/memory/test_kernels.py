"""Kernels are compiled before a run, once per kind, and again where their files are gone."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from threading import Barrier
from types import SimpleNamespace
from typing import ClassVar

import numba
import pytest

from frugal_rl import remembered
from frugal_rl.doing import now
from frugal_rl.errors import ConfigError
from frugal_rl.learn.on_policy_config import Engine
from frugal_rl.memory import MemoryProfile, auto, kernels
from frugal_rl.memory.child import WORDS
from frugal_rl.memory.probe import Planning
from frugal_rl.run.compiling import told_compiling


@dataclass(frozen=True)
class Env:
    compiles: ClassVar[bool] = True
    levels: int = 3

    def tiny(self):
        return self


@dataclass(frozen=True)
class Run:
    env: Env
    agent: str = "mlp"
    algo: str = "ppo"
    vec: str = "batch"
    memory: MemoryProfile = field(default_factory=MemoryProfile)
    plan: Planning = Planning.arithmetic


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Tiny runs; each leaves three compiled files."""
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path / "kept")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "compiled"))
    found = []

    def measured_base(run, probe):
        assert run.plan is Planning.probe
        found.append(run.env)
        for name in "abc":
            path = tmp_path / "compiled" / f"{name}{len(found)}.nbi"
            path.parent.mkdir(exist_ok=True)
            path.write_text("")
        kernels.note_ready(run, {"compiled": True})

    monkeypatch.setattr(auto, "measured_base", measured_base)
    monkeypatch.setattr(auto, "own_parts", lambda run: None)
    monkeypatch.setattr(auto, "compiled_meanwhile", lambda run, start: nullcontext())
    return found


def try_out(run):
    return auto.try_out(run, lambda run: None)


def test_a_kind_of_run_is_tried_out_once(asked):
    assert [try_out(Run(Env())) for _ in range(3)] == [True, False, False]
    assert try_out(Run(Env(levels=4)))

    assert asked == [Env(), Env(levels=4)]


def test_after_an_upgrade_a_kind_is_tried_out_again(asked, monkeypatch):
    assert [try_out(Run(Env())) for _ in range(2)] == [True, False]
    monkeypatch.setattr(remembered, "code_digest", lambda *packages: f"newer {packages}")

    assert [try_out(Run(Env())) for _ in range(2)] == [True, False]


def test_runs_that_begin_side_by_side_are_tried_out_once(asked, monkeypatch):
    began, slow = Barrier(2, timeout=20), auto.measured_base

    def measured_base(run, probe):
        time.sleep(3 * remembered.ASK_SECONDS)  # the other one asks meanwhile
        slow(run, probe)

    def begin(_):
        began.wait()
        return try_out(Run(Env()))

    monkeypatch.setattr(auto, "measured_base", measured_base)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(begin, range(2))) == [True, True]

    assert len(asked) == 1


def test_one_that_was_stopped_in_its_turn_is_not_waited_for_without_end(asked, monkeypatch):
    monkeypatch.setattr(remembered, "PATIENCE_SECONDS", 0.1)
    with remembered.turn(f"compiling_{kernels.package_of(Run(Env()))}", "waiting"):
        assert try_out(Run(Env()))


def test_a_cache_folder_that_cannot_be_made_holds_nobody_up(asked, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path / "file" / "kept")

    assert try_out(Run(Env()))


def test_a_budget_makes_no_other_kind(asked):
    assert try_out(Run(Env()))
    assert not try_out(Run(Env(), memory=MemoryProfile(budget_gib=3, max_hours=2)))


def test_a_plan_that_probes_needs_no_other_tiny_run(asked):
    assert not try_out(Run(Env(), plan=Planning.probe))
    assert not asked


def test_one_kind_of_run_compiles_most_of_what_the_others_call(asked, tmp_path, monkeypatch):
    other = Run(Env(), agent="cnn")
    assert not kernels.mostly_ready(other)
    try_out(Run(Env()))
    assert kernels.mostly_ready(other)
    with monkeypatch.context() as newer:
        newer.setattr(remembered, "code_digest", lambda *packages: f"newer {packages}")
        assert not kernels.mostly_ready(other)
    for path in (tmp_path / "compiled").glob("*.nbi"):
        path.unlink()
    assert not kernels.mostly_ready(other)


def test_deleted_files_are_compiled_again(asked, tmp_path):
    try_out(Run(Env()))
    for path in (tmp_path / "compiled").glob("*.nbi"):
        path.unlink()

    assert try_out(Run(Env()))


def test_environments_without_kernels_of_their_own_wait_for_the_first_run_only(asked, monkeypatch):
    monkeypatch.setattr(Env, "compiles", False)
    assert try_out(Run(Env()))
    assert not try_out(Run(Env(levels=9)))


def test_a_try_that_fails_leaves_the_word_to_the_run(asked, monkeypatch, capsys):
    def fails(run, probe):
        raise ConfigError("Measuring a tiny run fails: no such id.")

    monkeypatch.setattr(auto, "measured_base", fails)

    assert not try_out(Run(Env()))
    assert "no such id. The plan goes without it." in capsys.readouterr().err


def test_a_kernel_tells_its_name_while_it_is_compiled(tmp_path, monkeypatch):
    path = tmp_path / "words"
    monkeypatch.setenv(WORDS, str(path))
    heard = []

    @numba.njit
    def inner(x):
        return x + 1

    @numba.njit
    def outer(x):
        return inner(x) * 2

    def look(event):
        heard.append(str(now()))

    with told_compiling() as compiling:
        inner_start = compiling.on_start
        monkeypatch.setattr(compiling, "on_start", lambda e: (inner_start(e), look(e)))
        outer(3)
        outer(4)
        inner(1.5)

    assert compiling.count == 2
    assert heard[:2] == ["compiling outer, kernel 1"] * 2
    assert path.read_text() == "compiling inner, kernel 2"
    assert now() is None


@dataclass(frozen=True)
class OtherEnv(Env):
    """Another class of the same values."""


@pytest.mark.parametrize(
    "other",
    [
        Run(Env(levels=4)),
        Run(OtherEnv()),
        Run(Env(), agent="cnn"),
        Run(Env(), algo=7),
        Run(Env(), vec="serial"),
        Run(Env(), memory=MemoryProfile(gradient_checkpointing=True)),
    ],
)
def test_what_decides_which_kernels_are_used_makes_another_kind(other):
    assert kernels._name(other) != kernels._name(Run(Env()))
    assert kernels._name(Run(Env(), algo="dqn")) == kernels._name(Run(Env()))  # the same class
    engines = [SimpleNamespace(engine=Engine(name)) for name in ("exact", "compiled")]
    assert len({kernels._name(Run(Env(), algo=algo)) for algo in engines}) == 2


def test_another_numba_or_another_place_of_compiled_files_makes_another_kind(monkeypatch):
    version, before = kernels.metadata.version, kernels._name(Run(Env()))
    with monkeypatch.context() as changed:
        changed.setattr(
            kernels.metadata, "version", lambda name: name if name == "numba" else version(name)
        )
        assert kernels._name(Run(Env())) != before
    with monkeypatch.context() as changed:
        changed.setattr(kernels.sys, "version", "4.0")
        assert kernels._name(Run(Env())) != before
    monkeypatch.setenv("NUMBA_CACHE_DIR", "elsewhere")
    assert kernels._name(Run(Env())) != before


def test_a_package_without_a_file_of_its_own_has_no_compiled_kernels(tmp_path, monkeypatch):
    (tmp_path / "spread_over_folders").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)

    assert kernels._compiled_files("spread_over_folders") == 0
    assert kernels._compiled_files("no_such_package") == 0
