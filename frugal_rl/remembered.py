"""What was found once and is asked for again: small JSON files in the user's cache folder.

Each is named by a fingerprint of all that it depends on, so that nothing stale is ever read, and
holds a checksum, so that nothing damaged is. Deleting the folder is harmless; one that cannot be
written costs a second measurement.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from frugal_rl.doing import doing

ASK_SECONDS = 0.2
PATIENCE_SECONDS = 900.0
"""Then a turn is taken anyway: who has it may have been stopped, and two at once do no harm."""


def folder() -> Path:
    """Where findings are kept between runs.

    Raises:
        OSError: this user has no home, as in a container that knows him by number alone.
    """
    try:
        return Path.home() / ".cache" / "frugal-rl"
    except RuntimeError as error:
        raise OSError(str(error)) from error


def fingerprint(*words: object) -> str:
    """Sixteen hexadecimal digits of what a finding depends on."""
    return hashlib.sha256("\n".join(map(str, words)).encode()).hexdigest()[:16]


def read(name: str) -> Any:
    """What was kept under a name; None where there is nothing, or nothing that can be trusted."""
    try:
        path = folder() / f"{name}.json"
        kept = json.loads(path.read_text()) if path.is_file() else None  # a pipe never ends
        text = json.dumps(kept["values"]) if kept else ""
        return kept["values"] if kept and kept["sum"] == fingerprint(name, text) else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def write(name: str, values: Mapping[str, Any]) -> None:
    """Keep values under a name, with a checksum; whole or not at all."""
    try:
        kept = {"values": values, "sum": fingerprint(name, json.dumps(values))}
        with placed(folder() / f"{name}.json") as part:
            part.write_text(json.dumps(kept))
    except OSError:
        return


@contextmanager
def placed(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`, for what has the name once it is whole.

    Raises:
        OSError: nothing can be written there; what the disk took of it is gone.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def turn(name: str, waiting: str) -> Iterator[None]:
    """Let only one of this user's processes at a time into the block; one that dies frees it.

    `waiting` says what a process does that has to wait.
    """
    try:
        folder().mkdir(parents=True, exist_ok=True)
        number = os.open(folder() / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError:
        yield  # nothing can be kept here either: everybody for themselves
        return
    try:
        if not _locked(number):
            until = time.monotonic() + PATIENCE_SECONDS
            with doing(waiting):
                while not _locked(number) and time.monotonic() < until:
                    time.sleep(ASK_SECONDS)
        yield
    finally:
        os.close(number)


def _locked(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


@cache
def code_digest(*packages: str) -> str:
    """A digest of the source of packages or modules: new code is measured anew."""
    digest = hashlib.sha256()
    for name, path in _files(packages):
        digest.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _files(packages: Iterable[str]) -> Iterable[tuple[str, Path]]:
    """Names below their package, and paths, of all Python files."""
    for package in packages:
        spec = find_spec(package)
        if spec is None:
            continue
        if spec.submodule_search_locations is None:
            yield from [("", Path(spec.origin))] if spec.origin else []
        for folder in map(Path, spec.submodule_search_locations or ()):
            for path in sorted(folder.rglob("*.py")):
                yield path.relative_to(folder).as_posix(), path
