"""Kernels of a kind of run, compiled before it in a process of its own.

Compiling takes half a GiB that the compiler never gives back, so the process that trains only
loads. Which kinds are ready is remembered; deleting the compiled files makes a kind unready again.
"""

from __future__ import annotations

import os
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugal_rl import remembered
from frugal_rl.memory.child import ask_child

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

CORE = "frugal_rl"


def compile_first(run: RunConfig) -> None:
    """Compile what a run uses, unless that was done on this installation before.

    An environment whose kernels take long says so: `compiles: ClassVar[bool] = True`. For others
    only the very first run of an installation counts.

    Raises:
        ConfigError: the tiny run failed; carries the last line of what it said.
    """
    if not is_ready(run):
        note_ready(run, ask_child("frugal_rl.run.dry_run", run, "Compiling kernels, once"))


def is_ready(run: RunConfig) -> bool:
    """Whether a run of this kind was compiled, and its files are still there."""
    kept = remembered.read(_name(run)) or {}
    count = _compiled_files(_package(run))
    if not getattr(type(run.env), "compiles", False):
        return bool(kept) or _compiled_files(CORE) > 0
    return 0 < int(kept.get("files", 0)) <= count


def note_ready(run: RunConfig, answer: dict[str, Any]) -> None:
    """A tiny run of this kind has ended: whatever it compiled can be loaded now."""
    remembered.write(_name(run), {"files": _compiled_files(_package(run)), **answer})


def _name(run: RunConfig) -> str:
    """What decides which kernels a run uses: everything but sizes and settings of learning."""
    env: Any = getattr(run.env, "tiny", lambda: run.env)()
    kind = (env, run.agent, type(run.algo), run.vec, run.memory)
    versions = (sys.version, metadata.version("numba"), str(_folder(_package(run))))
    cache = os.environ.get("NUMBA_CACHE_DIR", "")
    return f"kernels_{remembered.fingerprint(*map(repr, kind), *versions, cache)}"


def _package(run: RunConfig) -> str:
    """The package of the run's environment."""
    return type(run.env).__module__.split(".")[0]


def _folder(package: str) -> Path | None:
    """Where Numba keeps what it compiled of a package."""
    spec = find_spec(package)
    if "NUMBA_CACHE_DIR" in os.environ:
        return Path(os.environ["NUMBA_CACHE_DIR"])
    return Path(spec.origin).parent if spec and spec.origin else None


def _compiled_files(package: str) -> int:
    """Index files of compiled kernels, one per function and place."""
    folder = _folder(package)
    return sum(1 for _ in folder.rglob("*.nbi")) if folder else 0
