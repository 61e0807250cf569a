"""The jobs of a sweep: each is a process of its own, and none can take another one with it.

What became of a job stands in its folder (`cell.json`). A sweep that is started again in the same
folder (`hydra.sweep.dir=`) passes over what is finished and goes on from checkpoints.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING

from frugal_rl.errors import CrowdedError, DataError, FrugalError
from frugal_rl.invocation import starting, value
from frugal_rl.memory import usage
from frugal_rl.report.files import JOB, SUMMARY, read_json, write_json
from frugal_rl.run.admission import open_ledger
from frugal_rl.run.building import build_as
from frugal_rl.run.config import Sweep
from frugal_rl.run.disk import AppendedLines
from frugal_rl.run.outcome import Outcome
from frugal_rl.run.search_path import folder
from frugal_rl.run.signals import passing_on, stops_with_this
from frugal_rl.untrusted.files import read_text
from frugal_rl.untrusted.nested import parse_yaml

if TYPE_CHECKING:
    from frugal_rl.run.ledger import Reservation
    from frugal_rl.run.preflight import Job

CELL = "cell.json"
STARTING_BYTES = 400 << 20
"""A process that reads its configuration and imports torch, before it reserves what it needs."""
REFUSED = ("ConfigError", "MemoryBudgetError")
"""Errors that say that a combination is impossible here."""
CROWDED, OTHER_RUN = "CrowdedError", "CheckpointError"
MEASURED = ("memory", "vec", "seed")
"""What a resume lets differ although it makes another job."""
LIMITS = ("memory.budget_gib", "memory.max_hours", "memory.watchdog_share")
"""Those of them that make no other job."""
MOST_WORDS = 400
"""Letters of a reason."""
AGAIN_SECONDS = 5.0
"""Before a job tries again that found no room beside others that waited, too."""
LOST = "the process that watched it ended before it did"
SAID = re.compile(r"(\w+(?:Error|Interrupt)): .+")


class End(Enum):
    """What became of a job."""

    finished = "finished"
    failed = "failed"
    refused = "refused"
    skipped = "skipped"
    """Refused, where `sweep.skip_impossible` passes over that."""
    stopped = "stopped"
    submitted = "submitted"
    """Handed to Slurm, which starts it when it has room."""


UNWANTED = (End.failed, End.refused)
"""Ends that make a sweep end with status 1."""


@dataclass(frozen=True)
class Cell:
    """One job of a sweep."""

    words: tuple[str, ...]
    end: End
    reason: str = ""
    seconds: float = 0.0

    def write(self, at: Path) -> None:
        """Keep it in the job's folder."""
        write_json(at / CELL, {**asdict(self), "end": self.end.value})

    @classmethod
    def read(cls, at: Path) -> Cell | None:
        """The cell of a folder; None where no job has ended there."""
        try:
            values = read_json(at / CELL)
            return cls(**{**values, "words": tuple(values["words"]), "end": End(values["end"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None


def run_cell(job: Job) -> Outcome:
    """Run one job of a sweep in a process of its own; it never raises for what happens there."""
    at = job.command.folder
    known = known_cell(at)
    if known is not None and known.words == job.words:
        if known.end is End.finished:
            print(f"Finished already: {at}")
            return Outcome(files=[at])
        if known.end is End.submitted:
            print(f"With Slurm already: {at}. Delete {at / CELL} to hand it over again.")
            return Outcome(files=[at])
    sweep = build_as(Sweep, dict(job.command.values.get("sweep") or {}))
    began = time.monotonic()
    others = words_of_another(known, job)
    if known is not None and others:
        cell = replace(known, end=End.failed, reason=other_words(at, others))
    else:
        kept(Cell(job.words, End.failed, LOST), at)
        cell = tried(job, sweep)
    cell = replace(cell, seconds=round(time.monotonic() - began, 1))
    if known is not None and known.words != job.words and cell.reason.startswith(OTHER_RUN):
        cell = replace(cell, reason=other_words(at, cell.reason))
    if cell.end is End.refused and sweep.skip_impossible:
        cell = replace(cell, end=End.skipped)
    kept(cell, at)
    if cell.reason:
        print(f"{cell.end.value}: {' '.join(job.words)}: {cell.reason}")
    return Outcome({"interrupted": cell.end is End.stopped}, [at], int(cell.end in UNWANTED))


def known_cell(at: Path) -> Cell | None:
    """The cell of a folder; one that was handed to Slurm has finished once its run says so."""
    cell = Cell.read(at)
    if cell is None or cell.end is not End.submitted:
        return cell
    try:
        stopped = read_json(at / SUMMARY).get("interrupted")
    except DataError:
        return cell  # none yet, or damaged
    return cell if stopped else replace(cell, end=End.finished)


def words_of_another(known: Cell | None, job: Job) -> str:
    """Words by which what a folder's checkpoints hold is another job, and resume would not tell."""
    if known is None or not any((job.command.folder / "checkpoints").glob("*.pt")):
        return ""

    def makes_another(word: str) -> bool:
        key = word.lstrip("+").partition("=")[0]
        return key.partition(".")[0] in MEASURED and key not in LIMITS

    theirs, ours = (
        [word for word in words if makes_another(word)] for words in (known.words, job.words)
    )
    if set(theirs) == set(ours):
        return ""
    return f"It was trained with {' '.join(theirs) or 'none of them'}."


def other_words(at: Path, why: str) -> str:
    """The reason of a job whose folder holds another."""
    words = f"{at} holds a job of other words; choose another hydra.sweep.dir= for these."
    return f"{words} {why}"[:MOST_WORDS]


def kept(cell: Cell, at: Path) -> None:
    """Write a job's cell; a full disk is told, as the others may have room again."""
    try:
        cell.write(at)
    except OSError as error:  # this one is tried again some day
        print(f"Warning: {at / CELL} is not written ({error.strerror or error}).")


def tried(job: Job, sweep: Sweep) -> Cell:
    """The job's end; what keeps it from starting is one, too."""
    try:
        return in_turn(job, sweep)
    except (FrugalError, OSError) as error:  # the others still may
        return ended_by(job.words, f"{type(error).__name__}: {error}")


def in_turn(job: Job, sweep: Sweep) -> Cell:
    """The job's end, once there was room for it beside what runs.

    Raises:
        MemoryBudgetError: not even its start fits.
    """
    with beside(sweep, job.command.folder) as line:
        while True:
            if line is not None:
                make_room(line)
            cell = trained(job, line)
            if not cell.reason.startswith(CROWDED) or cell.end is End.stopped:
                return cell
            if line is not None:
                line.starting(0)  # others may use it until this one tries again
            time.sleep(AGAIN_SECONDS)


@contextmanager
def beside(sweep: Sweep, at: Path) -> Iterator[Reservation | None]:
    """This process's own line in the ledger, as it holds memory while its job trains."""
    ledger = open_ledger(sweep)
    if ledger is None:
        yield None
        return
    own = usage.of_tree()[:1]
    with ledger.entered(f"The sweep of {at.parent}", usage.held_bytes(own), beside=True) as line:
        yield line


def make_room(line: Reservation) -> None:
    """Wait until a process can be started, and count it until it has a line of its own."""
    held = line.base
    find_room(line, held + STARTING_BYTES)
    line.write(replace(line.entry, held=held, coming=STARTING_BYTES))


def find_room(line: Reservation, wants: int) -> None:
    """Wait for room to start a job; where everybody waits, those go first that hold more."""
    while True:
        try:
            line.resize(wants)
            return
        except CrowdedError:
            line.write(replace(line.entry, wants=0))
            time.sleep(AGAIN_SECONDS)


def trained(job: Job, line: Reservation | None) -> Cell:
    """The job's process, its output passed on line by line, and what became of it."""
    words, at = job.words, job.command.folder
    said = ""
    (at / JOB).unlink(missing_ok=True)  # of an earlier try
    with Output(at / "output.log") as log, started(job) as (child, asked):
        assert child.stdout is not None
        for text in child.stdout:
            log.keep(text)
            print(text, end="")
            said = text.strip() if SAID.match(text) or not SAID.match(said) else said
    code = child.returncode
    if code == 0:
        if (at / JOB).is_file():
            return Cell(words, End.submitted)
        stopped = (at / SUMMARY).is_file() and read_json(at / SUMMARY).get("interrupted")
        return Cell(words, End.stopped if stopped else End.finished)
    if asked:
        return Cell(words, End.stopped)  # before it listened, or before it had anything to save
    if code < 0:
        return Cell(words, End.failed, f"ended by {Signals(-code).name}")
    return ended_by(words, said)


def ended_by(words: tuple[str, ...], said: str) -> Cell:
    """A job that ended with an error, by its last words."""
    return Cell(words, End.refused if said.startswith(REFUSED) else End.failed, said[:MOST_WORDS])


class Output:
    """`output.log` of a job; what a full disk does not take is left out, and the job goes on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: AppendedLines | None = None

    def __enter__(self) -> Output:
        with self.spared():
            self.lines = AppendedLines(self.path)
        return self

    def __exit__(self, *raised: object) -> None:
        if self.lines is not None:
            self.lines.close()

    def keep(self, line: str) -> None:
        """Append a line, until the disk refuses one."""
        if self.lines is not None:
            with self.spared():
                self.lines.append(line.rstrip("\n"))

    @contextmanager
    def spared(self) -> Iterator[None]:
        """Say once that no more is kept."""
        try:
            yield
        except OSError as error:
            print(f"Warning: {self.path} ends here ({error.strerror or error}).")
            self.__exit__()
            self.lines = None


@contextmanager
def started(job: Job) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """The training process, and the requests to stop, which are handed on to it."""
    at = job.command.folder
    beside_ours = ["--config-dir", job.config_dir] if job.config_dir else []
    again = [f"resume={value(at)}"] if any((at / "checkpoints").glob("*.pt")) else []
    words = [w for w in job.words if not (again and w.startswith("resume="))]
    own = [*again, f"hydra.run.dir={value(at)}", "hydra.output_subdir=null"]
    child = subprocess.Popen(
        [*starting("train", folder("scripts")), *beside_ours, *words, *own, *stops_with_this()],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="backslashreplace",  # an environment may print any bytes
    )
    with child, passing_on(lambda: [child.pid]) as asked:
        yield child, asked


def cells_in(sweep_dir: Path) -> list[tuple[Path, Cell]]:
    """All jobs of a sweep that were begun, in their order; one without an end was lost."""

    def number(at: Path) -> tuple[int, str]:
        head = at.name.partition("_")[0]
        return (int(head) if head.isdigit() else 0, at.name)

    found = [(at, known_cell(at) or _lost(at)) for at in sorted(sweep_dir.iterdir(), key=number)]
    return [(at, cell) for at, cell in found if cell is not None]


def _lost(at: Path) -> Cell | None:
    """A job that Hydra began and whose end nobody wrote; None for any other folder."""
    path = at / ".hydra" / "overrides.yaml"
    if not path.is_file():
        return None
    try:
        typed = parse_yaml(read_text(path))
    except DataError:
        typed = None
    words = typed if isinstance(typed, list) else []  # a full disk keeps an empty file
    return Cell(tuple(map(str, words)), End.failed, LOST)
