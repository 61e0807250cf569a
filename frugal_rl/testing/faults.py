"""Faults on purpose: damaged files, a disk that is full or writes short, numbers that are none."""

from __future__ import annotations

import _pyio  # type: ignore[import-not-found]
import builtins
import errno
import io
import os
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from frugal_rl.vec_env.interface import Step, VectorEnv


def flip_bit(raw: bytes, bit: int) -> bytes:
    """The bytes with one bit the other way round."""
    damaged = bytearray(raw)
    damaged[bit // 8] ^= 1 << (bit % 8)
    return bytes(damaged)


def damages(raw: bytes, flips: int, cuts: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """What was done and the damaged bytes: single flipped bits, and missing ends."""
    rng = np.random.default_rng(seed)
    for bit in rng.integers(8 * len(raw), size=flips):
        yield f"bit {bit}", flip_bit(raw, int(bit))
    for length in rng.integers(len(raw), size=cuts):
        yield f"cut to {length}", raw[:length]


class FullDisk:
    """A disk that takes nothing: call number `fails_at` of those that reach it fails.

    Calls are counted from 0; with `until` those from `fails_at` up to it fail. Without a number all
    succeed, and `calls` says how many there were. `why` is the system's number of the error.
    """

    def __init__(
        self, fails_at: int | None = None, until: int | None = None, why: int = errno.ENOSPC
    ) -> None:
        self.fails_at, self.calls, self.why = fails_at, 0, why
        self.until = until if until is not None else (fails_at or 0) + 1

    def __call__(self) -> None:
        """One call that reaches the disk."""
        number, self.calls = self.calls, self.calls + 1
        if self.fails_at is not None and self.fails_at <= number < self.until:
            raise OSError(self.why, os.strerror(self.why))


@contextmanager
def disk(full: FullDisk) -> Iterator[None]:
    """Let whatever Python asks of a disk ask `full` first.

    These are files and folders that are made, second and other names, bytes of ordinary files (in
    any library, as far as it writes by Python's own files) and what is forced to the disk.
    """
    names = ("write", "fsync", "link", "replace", "rename", "mkdir", "open")
    real: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in names}
    real_open = io.open

    def asking(name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if _reaches_disk(name, *args):
                full()
            return real[name](*args, **kwargs)

        return call

    def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        """A file that writes by `os.write`, which the compiled ones do not."""
        written = set(mode) & set("wxa+")
        return (_pyio.open if written else real_open)(file, mode, *args, **kwargs)

    with ExitStack() as stack:
        for name in names:
            stack.callback(setattr, os, name, real[name])
            setattr(os, name, asking(name))
        for place in (io, builtins):
            stack.callback(setattr, place, "open", real_open)
            place.open = opened  # type: ignore[attr-defined]
        yield


def _reaches_disk(name: str, what: Any, *args: Any) -> bool:
    """Whether a call needs room: pipes need none, nor what is there already."""
    if name == "write":
        return stat.S_ISREG(os.fstat(what).st_mode)
    if name == "open":
        return bool(args and args[0] & os.O_CREAT) and not os.path.exists(what)
    return name != "mkdir" or not os.path.exists(what)


class SmallDisk:
    """A file system in memory with little room, which any library fills up for real."""

    def __init__(self, folder: Path, total_kib: int) -> None:
        self.folder, self.total_kib = folder, total_kib

    def leave(self, kib: int) -> None:
        """Fill the disk with one file, so that so much is free."""
        self.empty()
        free = os.statvfs(self.folder)
        with suppress(OSError):  # somebody else takes the room at the same time
            (self.folder / "ballast").write_bytes(bytes(free.f_bavail * free.f_frsize - kib * 1024))

    def empty(self) -> None:
        """Take the file away that fills it."""
        (self.folder / "ballast").unlink(missing_ok=True)

    def used_kib(self) -> int:
        """What lies there."""
        seen = os.statvfs(self.folder)
        return (seen.f_blocks - seen.f_bfree) * seen.f_frsize // 1024


@contextmanager
def small_disk(folder: Path, kib: int) -> Iterator[SmallDisk]:
    """Mount a small disk at a folder, as only root may.

    Raises:
        PermissionError: this user mounts nothing here.
    """
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PermissionError("No small disk can be mounted here.") from error
    try:
        yield SmallDisk(folder, kib)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def slow_disk(seconds: float) -> Iterator[None]:
    """Let every `fsync`, `link` and `replace` wait first, so that a save can be hit."""
    real: dict[str, Callable[..., Any]] = {n: getattr(os, n) for n in ("fsync", "link", "replace")}

    def waiting(name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            time.sleep(seconds)
            return real[name](*args, **kwargs)

        return call

    for name in real:
        setattr(os, name, waiting(name))
    try:
        yield
    finally:
        for name, call in real.items():
            setattr(os, name, call)


@contextmanager
def short_writes(at_most: int) -> Iterator[None]:
    """`os.write` takes no more than `at_most` bytes at once, as it may."""
    real = os.write

    def write(number: int, data: Any) -> int:
        return real(number, bytes(data)[:at_most])

    os.write = write
    try:
        yield
    finally:
        os.write = real


@dataclass
class Poison:
    """Makes a vector environment give a value that is not finite in one step.

    `where` is `reward` or the name of a stored row of floats; `env` gives it at step `at`.
    """

    where: str
    at: int
    env: int
    value: float = float("nan")
    steps: int = 0

    def into(self, vec_env: VectorEnv) -> VectorEnv:
        """The same environment, poisoned."""
        real = vec_env.step

        def step(actions: np.ndarray) -> Step:
            given = real(actions)
            if self.steps == self.at:
                values = given.reward if self.where == "reward" else given.rows[self.where]
                values[self.env] = self.value
            self.steps += 1
            return given

        vec_env.step = step  # type: ignore[method-assign]
        return vec_env


def file_sizes(folder: Path) -> dict[str, int]:
    """Bytes of all files below a folder, by relative path."""
    return {str(p.relative_to(folder)): p.stat().st_size for p in folder.rglob("*") if p.is_file()}
