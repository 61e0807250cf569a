"""Kernels are compiled before a run, once per kind, and again where their files are gone."""

from dataclasses import dataclass
from typing import ClassVar

import numba
import pytest

from frugal_rl import remembered
from frugal_rl.doing import now
from frugal_rl.memory import kernels
from frugal_rl.memory.child import WORDS
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
    memory: str = "lossless"


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """What was compiled in a child; a run leaves three files."""
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path / "kept")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "compiled"))
    found = []

    def child(module, run, doing):
        found.append(run)
        for name in "abc":
            path = tmp_path / "compiled" / f"{name}{len(found)}.nbi"
            path.parent.mkdir(exist_ok=True)
            path.write_text("")
        return {"compiled": True}

    monkeypatch.setattr(kernels, "ask_child", child)
    return found


def test_a_kind_of_run_is_compiled_for_once(asked):
    for _ in range(3):
        kernels.compile_first(Run(Env()))
    kernels.compile_first(Run(Env(levels=4)))

    assert asked == [Run(Env()), Run(Env(levels=4))]


def test_deleted_files_are_compiled_again(asked, tmp_path):
    kernels.compile_first(Run(Env()))
    for path in (tmp_path / "compiled").glob("*.nbi"):
        path.unlink()
    kernels.compile_first(Run(Env()))

    assert len(asked) == 2


def test_environments_without_kernels_of_their_own_wait_for_the_first_run_only(asked, monkeypatch):
    monkeypatch.setattr(Env, "compiles", False)
    kernels.compile_first(Run(Env()))
    kernels.compile_first(Run(Env(levels=9)))

    assert len(asked) == 1


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
