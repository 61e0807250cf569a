"""Kernels of a kind of run, compiled before it in a process of its own.

Compiling takes half a GiB that the compiler never gives back, so the process that trains only
loads. Which kinds are ready is remembered; deleting the compiled files makes a kind unready again.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugal_rl import remembered

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

CORE = "frugal_rl"
MEASURED_CODE = ("frugal_rl.learn", "frugal_rl.run", "frugal_rl.observation")
"""What a bare process and a tiny run hold depends on these packages."""


def is_ready(run: RunConfig) -> bool:
    """Whether a run of this kind was compiled, and its files are still there.

    An environment whose kernels take long says so: `compiles: ClassVar[bool] = True`. For others
    only the very first run of an installation counts.
    """
    if not getattr(type(run.env), "compiles", False):
        return bool(remembered.read(_name(run))) or _compiled_files(CORE) > 0
    return _still_there(_name(run), run)


def note_ready(run: RunConfig, answer: dict[str, Any]) -> None:
    """A tiny run of this kind has ended: whatever it compiled can be loaded now."""
    remembered.write(_name(run), {"files": _files_of(run), **answer})
    remembered.write(_package_name(run), {"files": _files_of(run)})


def mostly_ready(run: RunConfig) -> bool:
    """Whether a run of another kind has compiled what most runs of this environment call."""
    return _still_there(_package_name(run), run)


def _still_there(name: str, run: RunConfig) -> bool:
    """Whether something was compiled under a name, and none of its files are gone."""
    kept = remembered.read(name) or {}
    return 0 < int(kept.get("files", 0)) <= _files_of(run)


def _name(run: RunConfig) -> str:
    """What decides which kernels a run uses: everything but sizes and learning's other settings.

    The code is part of it, as of a measured base: after an upgrade a kind is measured anew.
    """
    env: Any = getattr(run.env, "tiny", lambda: run.env)()
    memory = replace(run.memory, budget_gib=None, max_hours=None)
    engine = getattr(run.algo, "engine", None)
    kind = (env, run.agent, type(run.algo), engine, run.vec, memory)
    return f"kernels_{remembered.fingerprint(*map(repr, kind), *_code_of(run))}"


def _package_name(run: RunConfig) -> str:
    return f"kernels_{package_of(run)}_{remembered.fingerprint(*_code_of(run))}"


def _code_of(run: RunConfig) -> list[str]:
    """What compiled the kernels, where they lie, and the code that they were made of."""
    versions = [sys.version, metadata.version("numba"), str(_folder(package_of(run)))]
    code = [remembered.code_digest(*names) for names in (MEASURED_CODE, (package_of(run),))]
    return [*versions, os.environ.get("NUMBA_CACHE_DIR", ""), *code]


def package_of(run: RunConfig) -> str:
    """The package of the run's environment."""
    return type(run.env).__module__.split(".")[0]


def _folder(package: str) -> Path | None:
    """Where Numba keeps what it compiled of a package."""
    spec = find_spec(package)
    if "NUMBA_CACHE_DIR" in os.environ:
        return Path(os.environ["NUMBA_CACHE_DIR"])
    return Path(spec.origin).parent if spec and spec.origin else None


def _files_of(run: RunConfig) -> int:
    """Compiled kernels of the environment and of the core."""
    return sum(_compiled_files(package) for package in {package_of(run), CORE})


def _compiled_files(package: str) -> int:
    """Index files of compiled kernels, one per function and place."""
    folder = _folder(package)
    return sum(1 for _ in folder.rglob("*.nbi")) if folder else 0
