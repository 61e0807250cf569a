"""One run, one folder: a lock that names its process and host, and outlives neither."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from frugal_rl.errors import DataError, FolderInUseError
from frugal_rl.run.disk import is_at, open_own, told, write_all
from frugal_rl.untrusted.nested import parse_json
from frugal_rl.untrusted.printing import printable, shown

LOCK = "run.lock"
LAUNCHER_LOCK = "launcher.lock"
SWEEP_LOCK = "sweep.lock"
STALE_SECONDS = 3600.0
"""A lock of another host that nobody has touched for so long is taken over."""
BEAT_SECONDS = 60.0
HELD: set[Path] = set()
"""Locks of this process: the system's locks do not keep a process from itself."""


@dataclass(frozen=True)
class Holder:
    """The run that writes into a folder."""

    pid: int
    host: str
    since: str

    @classmethod
    def own(cls) -> Holder:
        """This process."""
        return cls(os.getpid(), socket.gethostname(), time.strftime("%Y-%m-%d %H:%M:%S"))

    @classmethod
    def read(cls, number: int) -> Holder | None:
        """Who wrote the lock; None for an empty or damaged one."""
        try:
            values = parse_json(os.pread(number, 4096, 0))
            return cls(int(values["pid"]), str(values["host"]), str(values["since"]))
        except (DataError, TypeError, KeyError, ValueError):
            return None

    def words(self) -> str:
        """Process, host and time, as an error names them."""
        return f"process {self.pid} on {printable(self.host, 80)} (since {printable(self.since)})"


class FolderLock:
    """A held lock; `beat` keeps other hosts from thinking that its run is gone."""

    def __init__(self, path: Path, number: int) -> None:
        self.path, self.number, self.beaten = path, number, time.monotonic()

    def beat(self) -> None:
        """Say that the run goes on, at most once a minute."""
        if time.monotonic() - self.beaten > BEAT_SECONDS:
            self.beaten = time.monotonic()
            os.utime(self.number)

    def lost(self) -> bool:
        """Whether the folder was deleted, moved or replaced since: others might take it."""
        return not is_at(self.path, self.number)

    def take_again(self) -> None:
        """Make the folder again, and hold it.

        Raises:
            FolderInUseError: another run holds it by now.
            DiskError: it cannot be made.
        """
        with told(self.path.parent):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            number = open_own(self.path, os.O_RDWR)
            try:
                _take(self.path, number)
            except BaseException:
                os.close(number)
                raise
        os.close(self.number)
        self.number = number


KEPT: dict[Path, FolderLock] = {}
"""Locks that a command holds for the run that it is about to begin."""


@contextmanager
def kept_for_run(folder: Path, name: str = LOCK) -> Iterator[None]:
    """Hold a folder for a run that this process will begin, before anything is written there.

    Raises:
        FolderInUseError: another run holds it.
        DiskError: the folder cannot be written to.
    """
    with locked(folder, name) as lock:
        KEPT[lock.path] = lock
        try:
            yield
        finally:
            KEPT.pop(lock.path, None)


@contextmanager
def locked(folder: Path, name: str = LOCK) -> Iterator[FolderLock]:
    """Hold a run's folder, or take over what `kept_for_run` holds.

    A lock of a process that died is taken over: the system drops what it held. One of another host
    is taken over when nobody has touched it for an hour.

    Raises:
        FolderInUseError: another run holds it.
        DiskError: the folder cannot be written to.
    """
    with told(folder):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder.resolve() / name
        kept = KEPT.pop(path, None)
    if kept is not None:
        if kept.lost():
            kept.take_again()
        yield kept
        return
    with told(folder):
        if path in HELD:
            raise _in_use(path, Holder.own())
        number = open_own(path, os.O_RDWR)
    try:
        with told(folder):
            _take(path, number)
    except BaseException:
        os.close(number)
        raise
    HELD.add(path)
    lock = FolderLock(path, number)
    try:
        yield lock
    finally:
        HELD.discard(path)
        os.ftruncate(lock.number, 0)
        os.close(lock.number)


def refuse_written(folder: Path) -> None:
    """Refuse a folder that another run, or the launcher of one, holds at this moment.

    Raises:
        FolderInUseError: naming process and host.
    """
    for name in (LOCK, LAUNCHER_LOCK):
        if (holder := writer_of(folder, name)) is not None:
            raise _in_use(folder.resolve() / name, holder)


def writer_of(folder: Path, name: str = LOCK) -> Holder | None:
    """The process that writes into a run folder; None where nobody does, or it cannot be told."""
    path = folder / name
    try:
        return holder_of(path) if path.is_file() else None
    except PermissionError:  # of another user, or a folder that can only be read
        return None


def holder_of(path: Path) -> Holder | None:
    """Who holds a lock at this moment; None for one that nobody holds any more.

    One of another host counts as held until it is stale.
    """
    if path.resolve() in HELD:
        return Holder.own()  # opening the file again would drop this process's own lock
    number = os.open(path, os.O_RDWR)
    try:
        holder = Holder.read(number)
        if holder is None or holder.host != socket.gethostname():
            fresh = time.time() - os.fstat(number).st_mtime < STALE_SECONDS
            return holder if fresh else None
        fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return None  # it died, and the system dropped what it held
    except OSError:
        return holder
    finally:
        os.close(number)


def _take(path: Path, number: int) -> None:
    holder = Holder.read(number)
    try:
        fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise _in_use(path, holder) from error
    silent = time.time() - os.fstat(number).st_mtime
    if holder is not None and holder.host != socket.gethostname() and silent < STALE_SECONDS:
        raise _in_use(path, holder)
    os.ftruncate(number, 0)
    write_all(number, json.dumps(asdict(Holder.own())).encode())


def _in_use(path: Path, holder: Holder | None) -> FolderInUseError:
    who = "another run" if holder is None else holder.words()
    key = "hydra.sweep.dir" if path.name == SWEEP_LOCK else "hydra.run.dir"
    return FolderInUseError(
        f"{shown(path.parent)} is written by {who}. Let it end, or choose another folder with "
        f"{key}=...; if that process is gone for sure, delete {shown(path)}."
    )
