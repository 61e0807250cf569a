"""Who holds how much of this machine's memory: runs side by side never plan on more than it has.

One file, read and replaced under a lock. A run enters what it is planned to hold before it starts,
and waits while that does not fit beside the others. Entries of processes that are gone are dropped;
those of other machines that see the same file are left alone.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from frugal_rl.doing import doing
from frugal_rl.errors import CrowdedError, DataError, DiskError, LaunchError, MemoryBudgetError
from frugal_rl.invocation import command
from frugal_rl.memory.part import human
from frugal_rl.run.disk import told, write_whole
from frugal_rl.untrusted.files import read_text
from frugal_rl.untrusted.nested import parse_json

LOOK_SECONDS = 0.25
MOST_PID, MOST_BYTES = 2**31, 2**62
"""In a line that somebody wrote."""
SAME_PROCESS_SECONDS = 1.0
"""A process that began at another time has only inherited the number."""


@dataclass(frozen=True)
class Entry:
    """One process's line.

    held     bytes that count as taken
    wants    bytes that it waits for; 0 while it waits for nothing
    coming   bytes of a process that it has just started, until that has a line of its own
    beside   it only starts others: nobody need wait for its end
    """

    pid: int
    parent: int
    host: str
    began: float
    since: float
    what: str
    held: int
    wants: int = 0
    coming: int = 0
    beside: bool = False

    @classmethod
    def own(cls, what: str, held: int, beside: bool = False) -> Entry:
        """The line of this process."""
        me = psutil.Process()
        where = socket.gethostname(), me.create_time()
        return cls(me.pid, me.ppid(), *where, time.time(), what, held, beside=beside)

    @classmethod
    def read(cls, line: Any) -> Entry | None:
        """An entry as the file has it; None for anything else, as of another version."""
        try:
            entry = cls(**line)
            times = (entry.began, entry.since)
            sound = (
                all(type(n) is int and 0 <= n < MOST_PID for n in (entry.pid, entry.parent))
                and all(
                    type(n) is int and 0 <= n < MOST_BYTES
                    for n in (entry.held, entry.wants, entry.coming)
                )
                and all(type(t) in (int, float) and math.isfinite(t) for t in times)
                and all(isinstance(text, str) for text in (entry.host, entry.what))
                and isinstance(entry.beside, bool)
            )
        except TypeError:
            return None
        return entry if sound else None

    @property
    def alive(self) -> bool:
        """Whether its process is still there; another machine's is believed to be."""
        if self.host != socket.gethostname():
            return True
        try:
            process = psutil.Process(self.pid)
            known = abs(process.create_time() - self.began) < SAME_PROCESS_SECONDS
            return known and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    @property
    def key(self) -> tuple[str, int, float]:
        """Tells lines apart: one process may train several runs, and machines share a file."""
        return self.host, self.pid, self.since

    @property
    def place(self) -> tuple[bool, float, int]:
        """Its place in the queue: what has begun comes before what is to be started."""
        return self.beside, self.since, self.pid


def taken(entries: Sequence[Entry], but: Entry | None = None) -> int:
    """Bytes that the entries of one machine hold; `but` is there, and does not count."""
    parents = {entry.parent for entry in entries}
    return sum(e.held + (e.coming if e.pid not in parents else 0) for e in entries if e is not but)


class Ledger:
    """The file, and the bytes that all runs of this machine may hold together."""

    def __init__(self, path: Path, budget_bytes: int, source: str) -> None:
        self.path, self.budget_bytes, self.source = path, budget_bytes, source

    @contextmanager
    def entered(self, what: str, held: int, beside: bool = False) -> Iterator[Reservation]:
        """A line in the ledger while the block lasts; `resize` it to what the run needs.

        Args:
            what: names the run to others.
            held: bytes that this process holds already, also while it waits for more.
            beside: it starts others, and trains nothing itself.
        """
        reservation = Reservation(self, Entry.own(what, held, beside))
        try:
            reservation.write(reservation.entry)
            yield reservation
        finally:
            with suppress(DiskError), self.changing() as entries:  # full: it goes with the process
                entries[:] = [e for e in entries if e.key != reservation.entry.key]

    @contextmanager
    def changing(self) -> Iterator[list[Entry]]:
        """All living entries under the lock; what is left in the list is written back.

        A ledger without entries is no file: a run that is refused leaves nothing behind.
        """
        number = self._locked()
        try:
            entries = [entry for entry in self._read() if entry.alive]
            yield entries
            with told(self.path.parent, "sweep.ledger"):
                lines = [asdict(entry) for entry in entries]
                if lines:
                    write_whole(self.path, [json.dumps(lines, indent=1).encode()])
                else:
                    self._remove()
        finally:
            os.close(number)

    def _locked(self) -> int:
        """The lock's file, open and locked; it may be removed by others until then."""
        lock = self.path.with_suffix(".lock")
        while True:
            with told(self.path.parent, "sweep.ledger"):
                try:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                    number = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
                except (FileNotFoundError, FileExistsError):
                    if self.path.parent.is_file():
                        raise
                    continue  # somebody's last entry took the folder with it
            fcntl.lockf(number, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(number), os.stat(lock)):
                    return number
            os.close(number)

    def _remove(self) -> None:
        """Take away the file and its lock, and the folder if nothing else lies in it."""
        self.path.unlink(missing_ok=True)
        self.path.with_suffix(".lock").unlink(missing_ok=True)
        with suppress(OSError):
            self.path.parent.rmdir()

    def _read(self) -> list[Entry]:
        try:
            lines = parse_json(read_text(self.path))
        except DataError:
            return []  # none yet, or damaged: running ones wait for nobody
        found = [Entry.read(line) for line in lines] if isinstance(lines, list) else []
        return [entry for entry in found if entry is not None]

    def admits(self, own: Entry, others: Sequence[Entry]) -> bool:
        """Whether an entry may have what it wants; those who came earlier are served first.

        Raises:
            CrowdedError: everybody waits, and this one came last.
            LaunchError: the processes that start a sweep's jobs leave no room for one.
        """
        self.refuse_crowd(own, others)
        waiting = [e for e in others if e.wants]
        first = min([own, *waiting], key=lambda e: e.place)
        room = self.budget_bytes - taken([own, *others], but=first)
        if first.wants <= room:
            return first is own
        stuck = waiting and all(e.wants or e.beside for e in others)
        if stuck and own is max([own, *waiting], key=lambda e: e.place):
            raise CrowdedError(
                f"{own.what} needs {human(own.wants)} beside {len(waiting)} runs that wait for "
                f"memory, too, and {self.source} has no more. Start fewer at once."
            )
        return False

    def refuse_crowd(self, own: Entry, others: Sequence[Entry]) -> None:
        """A sweep's job does not wait for those who start the other jobs: they stay.

        Raises:
            LaunchError: with all of them there is never room for it.
        """
        starters = [e for e in others if e.beside]
        idle = sum(e.held for e in starters)
        of_sweep = own.beside or own.parent in {e.pid for e in starters}
        if of_sweep and own.wants + idle > self.budget_bytes:
            raise LaunchError(
                f"{own.what} needs {human(own.wants)} beside the {human(idle)} of {len(starters)} "
                f"processes that start the sweep's jobs, and {self.source} has no more. Start "
                "fewer at once (hydra.launcher.n_jobs=)."
            )


class Reservation:
    """This process's line."""

    def __init__(self, ledger: Ledger, entry: Entry) -> None:
        self.ledger, self.entry = ledger, entry
        self.base = entry.held
        """What the process holds in fact before it trains."""

    def resize(self, wants: int, way: str = "") -> None:
        """Hold so many bytes from now on; waits for room where that is more than before.

        Who waits gives back what it has reserved without holding it, so that nobody waits for
        somebody who waits for him.

        Args:
            wants: bytes.
            way: what to do where they never fit, if the plan does not tell.

        Raises:
            MemoryBudgetError: they will never fit.
        """
        ledger = self.ledger
        if wants > ledger.budget_bytes:
            if self.entry.beside:
                way = "so much is held before a job has planned: raise sweep.budget_gib="
            way = way or f"{command('plan')} with the same words tells what it needs less with"
            raise MemoryBudgetError(
                f"{self.entry.what} needs {human(wants)}, above the {human(ledger.budget_bytes)} "
                f"that all runs of this machine share ({ledger.source}); {way}."
            )
        if wants <= self.entry.held:
            self.write(replace(self.entry, held=wants))
            return
        with doing(f"waiting for {human(wants)} of memory beside other runs"):
            while not self.tried(wants):
                time.sleep(LOOK_SECONDS)

    def tried(self, wants: int) -> bool:
        """Whether there is room now; else the wish stands in the ledger."""
        with self.ledger.changing() as entries:
            others = [e for e in entries if e.key != self.entry.key]
            here = [e for e in others if e.host == self.entry.host]
            asking = replace(self.entry, wants=wants)
            admitted = self.ledger.admits(asking, here)
            waits = replace(asking, held=min(asking.held, self.base))
            self.entry = replace(asking, held=wants, wants=0) if admitted else waits
            entries[:] = [*others, self.entry]
        return admitted

    def write(self, entry: Entry) -> None:
        """Put a changed line into the ledger."""
        self.entry = entry
        with self.ledger.changing() as entries:
            entries[:] = [*(e for e in entries if e.key != entry.key), entry]

    def starting(self, coming: int) -> None:
        """Count a process that is about to be started, until it has a line of its own."""
        self.write(replace(self.entry, coming=coming))
