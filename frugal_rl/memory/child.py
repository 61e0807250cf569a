"""A measurement in a process of its own, with a word now and then while it goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from frugal_rl.doing import may_speak
from frugal_rl.errors import ConfigError

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

WORDS = "FRUGAL_RL_WORDS"
"""Names the file into which a child writes what it is doing at the moment."""
BUSY = "FRUGAL_RL_BUSY"
"""Names a file that is there while other children of the same process compile."""
WORD_SECONDS = 1.2
MOST_SECONDS = 900.0
"""A busy machine that compiles its first kernels takes minutes."""
_SIGNS: list[Path] = []
_READY: dict[str, _Child] = {}


def ask_child(
    module: str,
    run: RunConfig,
    doing: str,
    most_seconds: float = MOST_SECONDS,
    aloud: bool | None = None,
    stop: threading.Event | None = None,
) -> Any:
    """What `python -m module` answers about a run: the last line that it prints, as JSON.

    Args:
        module: reads the run from standard input, by `frugal_rl.run.asked`.
        run: its values and plug-ins are handed over.
        doing: what to say on standard error while it goes on.
        most_seconds: after which it is ended.
        aloud: whether that is said; None leaves the word to children that compile beside it.
        stop: ends it once it is set.

    Raises:
        ConfigError: it failed, with the last line of what it said, or took too long.
    """
    request = {"values": dict(run.resolved), "plugins": run.resolved.get("plugins")}
    request["parent"] = os.getpid()
    child = _READY.pop(module, None) or _Child.started(module)
    process = child.process
    with child.words, process:
        asked = _Asked(doing, child.path, most_seconds, aloud, stop or threading.Event())
        try:
            answer, said = asked.heard(process, json.dumps(request))
        except BaseException:  # whoever is asked to stop waits for no answer
            process.kill()
            raise
    if process.returncode != 0:
        raise ConfigError(f"{doing} fails: {_last_words(said, process.returncode)}")
    try:
        return json.loads(answer.strip().splitlines()[-1])
    except (IndexError, ValueError) as error:  # the environment ended it, or printed the last line
        raise ConfigError(f"{doing} ends without an answer.") from error


def _last_words(said: str, status: int) -> str:
    """Why a process failed: the signal that ended it, or its error, without a name and notes."""
    if status < 0:
        name = (
            signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
        )
        full = "; is the machine's memory full?" if -status == signal.SIGKILL else ""
        return f"it was ended by {name}{full}"
    lines = said.strip().splitlines() or ["nothing was said"]
    inside = [number for number, line in enumerate(lines[:-1]) if line.startswith("  ")]
    error = lines[inside[-1] + 1] if inside else lines[-1]  # a traceback ends there, notes follow
    return error.removeprefix("frugal_rl.errors.ConfigError: ")


def words_file() -> Path | None:
    """Where this process, a child, says what it is doing; None where nobody asked."""
    path = os.environ.get(WORDS)
    return Path(path) if path else None


@dataclass(frozen=True)
class _Child:
    """A process that waits for its question, and the file in which it says what it does."""

    process: subprocess.Popen[str]
    words: IO[bytes]

    @property
    def path(self) -> Path:
        """Of the file."""
        return Path(self.words.name)

    @classmethod
    def started(cls, module: str) -> _Child:
        """`python -m module`, which imports what it needs before it reads its question."""
        words = tempfile.NamedTemporaryFile(prefix="frugal_rl_")  # noqa: SIM115 - the child's
        own = {"PYTHONPATH": os.pathsep.join(sys.path), BUSY: str(_SIGNS[-1] if _SIGNS else "")}
        process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="backslashreplace",  # an environment may print any bytes
            env={**os.environ, **own, WORDS: words.name},
        )
        return cls(process, words)


@contextmanager
def standing_by() -> Iterator[Callable[[str], None]]:
    """Let children be started inside the block before they are asked, by the call it is given.

    One imports for two seconds before it can hear a question: on a core that is free meanwhile
    that costs nothing. Those that nobody asked end with the block.
    """

    def start(module: str) -> None:
        if module not in _READY:
            _READY[module] = _Child.started(module)

    try:
        yield start
    finally:
        while _READY:
            _, left = _READY.popitem()
            left.process.kill()
            with left.words, left.process:
                pass


@contextmanager
def busy() -> Iterator[Callable[[], None]]:
    """Tell children that are asked inside the block that others compile, until it is called."""
    with tempfile.TemporaryDirectory(prefix="frugal_rl_") as folder:
        sign = Path(folder) / "busy"
        sign.touch()
        _SIGNS.append(sign)
        try:
            yield lambda: sign.unlink(missing_ok=True)
        finally:
            _SIGNS.remove(sign)


def wait_for_quiet() -> None:
    """In a child that will time something: wait until nothing is compiled beside it."""
    until = time.monotonic() + MOST_SECONDS
    while os.environ.get(BUSY) and Path(os.environ[BUSY]).exists() and time.monotonic() < until:
        time.sleep(0.05)


@dataclass(frozen=True)
class _Asked:
    """A question that was put: what is being done, and where the child says how far it is."""

    doing: str
    words: Path
    most_seconds: float
    aloud: bool | None
    stop: threading.Event

    def heard(self, process: subprocess.Popen[str], request: str) -> tuple[str, str]:
        """Both outputs of a process that has ended."""
        began, given = time.perf_counter(), request
        while True:
            try:
                return process.communicate(given or None, timeout=WORD_SECONDS)
            except subprocess.TimeoutExpired:
                given = ""  # communicate goes on with what it was given first
            self.tell(time.perf_counter() - began)

    def tell(self, seconds: float) -> None:
        """Say how far it is; give up what takes too long, or is not wanted any more."""
        if self.stop.is_set():
            raise ConfigError(f"{self.doing} was stopped.")
        if seconds > self.most_seconds:
            raise ConfigError(
                f"{self.doing} took longer than {self.most_seconds:.0f} s. Try again when the "
                "machine is less busy, or plan by arithmetic: plan=arithmetic."
            )
        words = self.words.read_text()
        aloud = not any(sign.exists() for sign in _SIGNS) if self.aloud is None else self.aloud
        if aloud and may_speak():
            print(f"{self.doing}, {seconds:.0f} s{words and f' ({words})'}", file=sys.stderr)
