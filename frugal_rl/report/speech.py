"""How a command speaks: for people, quietly, or as JSON; never silent for long, never cut.

Standard output and standard error are watched. Where nothing was written for a while, what goes on
(`frugal_rl.doing`) is said: in a line that is overwritten on a terminal, in a line of its own
elsewhere. A line is flushed when it ends, also into a pipe.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from enum import Enum
from typing import IO, Any, TextIO, cast

from frugal_rl.doing import Work, hushed, now
from frugal_rl.errors import DiskError
from frugal_rl.report.streams import GONE, lead_nowhere, open_closed, visible

FIRST_SECONDS, PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 1.5, 30.0
"""Silence before the first words, before further ones, and in the log of a run of many hours."""
PATIENT_SECONDS = 900.0
"""So long nobody waits more than `PAUSE_SECONDS`; later a log need not grow that fast."""
LOOK_SECONDS = 0.25
CLEAR = "\r\x1b[2K"
UNHEARD = ("--quiet", "-sc", "--shell-completion", "--shell_completion")
"""Words behind which nobody reads what goes on."""


class Mode(Enum):
    """How a command speaks."""

    people = "people"
    """Everything, on standard output."""
    quiet = "quiet"
    """The names of the files that were written, and errors."""
    json = "json"
    """One JSON object on standard output; everything else on standard error."""


def pause_after(seconds: float) -> float:
    """The longest silence of a command that has run for so long."""
    return min(LONGEST_PAUSE_SECONDS, PAUSE_SECONDS * max(1.0, seconds / PATIENT_SECONDS))


class Watched:
    """A stream that knows when it was last written to, and flushes whole lines.

    What cannot be written ends no command on its way: where nobody reads any more all is silent,
    what a full disk does not take is told at the end.

    Args:
        stream: where the text goes.
        before: called before each text, to take away a line that would be overwritten.
        label: stands in front of each line, so that jobs of a sweep can be told apart.
    """

    def __init__(self, stream: TextIO, before: Callable[[], None], label: str = "") -> None:
        self.stream, self.before, self.label = stream, before, label
        self.fresh = True
        self.missing = ""
        """Why a part of the text was not written."""

    def write(self, text: str) -> int:
        """Pass a text on."""
        if text:
            with self._lasting():
                self.before()
                self.stream.write(self._labelled(text) if self.label else text)
                if "\n" in text:
                    self.stream.flush()
        return len(text)

    def flush(self) -> None:
        """Let go of what is held back."""
        with self._lasting():
            self.stream.flush()

    @contextmanager
    def _lasting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in GONE:
                lead_nowhere(self.stream)
            else:
                self.missing = error.strerror or str(error)

    def _labelled(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        marked = [self.label + line if i or self.fresh else line for i, line in enumerate(lines)]
        self.fresh = text.endswith("\n")
        return "".join(marked)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the stream's own."""
        return getattr(self.stream, name)


class Heartbeat:
    """Says what goes on where nobody has said anything for a while."""

    otherwise: Work | None = None
    """What is said where nobody says anything more exact."""

    def __init__(self, out: TextIO, error: TextIO, clock: Callable[[], float] = time.monotonic):
        self.clock, self.began = clock, clock()
        self.last, self.spoken, self.drawn = self.began, False, False
        self.out = Watched(out, self.heard)
        self.error = Watched(error, self.heard)
        self.raw: IO[str] = error if error.isatty() or not out.isatty() else out
        self.ended, self.ending = threading.Event(), False
        self.lock = threading.RLock()
        self.thread = threading.Thread(target=self.run, name="heartbeat", daemon=True)

    def heard(self) -> None:
        """Somebody is about to write."""
        with self.lock:
            if self.drawn:
                self.drawn = False
                with suppress(OSError):  # on a terminal that was closed meanwhile
                    self.raw.write(CLEAR)
                    self.raw.flush()
            self.last, self.spoken = self.clock(), True

    def look(self) -> None:
        """Speak, if it was silent for too long."""
        with self.lock:
            work, time_now = now() or self.otherwise, self.clock()
            if self.ending and work is None:
                work = Work("ending", since=self.last)
            most = pause_after(time_now - self.began) if self.spoken else FIRST_SECONDS
            overdue = time_now - self.last >= (LOOK_SECONDS if self.drawn else most)
            if work is None or not overdue:
                return
            words = visible(work.timed())
            if self.raw.isatty():
                self.raw.write(CLEAR + words[: self._width() - 1])
                self.drawn = True
            else:
                self.raw.write(words + "\n")
                self.last, self.spoken = time_now, True
            self.raw.flush()

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self.raw.fileno()).columns or 80
        except (OSError, ValueError):
            return 80

    def stop(self) -> None:
        """Say nothing any more."""
        self.ended.set()
        if self.thread.is_alive():
            self.thread.join()
        self.heard()

    def run(self) -> None:
        """Look now and then until the command has ended."""
        while not self.ended.wait(LOOK_SECONDS):
            try:
                self.look()
            except (OSError, ValueError):
                return  # nobody listens any more: the pipe is closed


_EARLY: list[Heartbeat] = []


def speak_early() -> None:
    """Say that a command starts while it is still being imported, until `speaking` begins."""
    open_closed()
    if _EARLY or set(UNHEARD) & set(sys.argv):
        return
    beat = Heartbeat(sys.stderr if "--json" in sys.argv else sys.stdout, sys.stderr)
    beat.otherwise = Work("starting")
    _EARLY.append(beat)
    atexit.register(beat.stop)  # an import may fail
    beat.thread.start()


def _go_on_from_early(beat: Heartbeat) -> None:
    for early in _EARLY:
        early.ended.set()
        early.thread.join()
        beat.last, beat.spoken, beat.drawn = early.last, early.spoken, early.drawn
        early.drawn = False
    _EARLY.clear()


def _end(beat: Heartbeat) -> None:
    """The last words; what comes behind them is made short.

    The interpreter would search the objects of all libraries for circles: half a second.
    """
    beat.stop()
    gc.disable()
    gc.freeze()


@contextmanager
def speaking(mode: Mode = Mode.people) -> Iterator[TextIO]:
    """Speak in a mode; gives the stream that results go to.

    Raises:
        DiskError: at the end, when a part of what was said could not be written.
    """
    out = sys.stdout
    with open(os.devnull, "w") as nowhere:
        if mode is Mode.quiet:
            results = Watched(out, lambda: None)
            with redirect_stdout(nowhere), hushed():
                yield cast(TextIO, results)
            _tell_missing(results)
            return
        beat = Heartbeat(sys.stderr if mode is Mode.json else out, sys.stderr)
        results = Watched(out, beat.heard)
        _go_on_from_early(beat)
        atexit.register(_end, beat)  # libraries take seconds to end, which is not silent either
        beat.thread.start()
        try:
            with (
                redirect_stdout(cast(TextIO, beat.out)),
                redirect_stderr(cast(TextIO, beat.error)),
            ):
                yield cast(TextIO, results)
        except BaseException:
            beat.stop()
            raise
        beat.ending = True
        _tell_missing(results, beat.out, beat.error)


def _tell_missing(*streams: Watched) -> None:
    """Say at the end that a disk did not take all words.

    Raises:
        DiskError: with the reason.
    """
    for missing in (stream.missing for stream in streams if stream.missing):
        raise DiskError(
            f"A part of what this command said is missing where its output goes ({missing}). "
            "What it did is done."
        )


@contextmanager
def labelled(label: str) -> Iterator[None]:
    """Put a label in front of every line that is written inside the block."""
    out = Watched(sys.stdout, lambda: None, label)
    error = Watched(sys.stderr, lambda: None, label)
    with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, error)):
        yield
