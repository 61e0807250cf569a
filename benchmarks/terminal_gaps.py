"""How long a command stays silent: run it in a terminal of 80 and 60 columns and in a pipe.

    python benchmarks/terminal_gaps.py                      # all commands below, tiny settings
    python benchmarks/terminal_gaps.py --folder F --seconds 400  # in parts: goes on where it ended
    python benchmarks/terminal_gaps.py train env=toy        # one command
    python benchmarks/terminal_gaps.py report --columns 60  # where: so many columns, 0 is a pipe
    python benchmarks/terminal_gaps.py make train --columns 80  # in a new clone with an empty home

Prints the longest gap without a byte, the words before it, the exit status and whether escape codes
were printed (a pipe gets none); with --folder what was printed stands there too. A gap is measured
on this machine as it is: a busy one makes it longer. Windows need a display (`Xvfb :77`).
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHORT = "algo.total_steps=32768 evaluation.episodes=64 tracking=offline"
COMMANDS = (
    f"train env=toy {SHORT} hydra.run.dir=RUN",
    "evaluate checkpoint=RUN evaluation.episodes=128",
    f"train -m env=toy seed=0,1 {SHORT} hydra.sweep.dir=SWEEP",
    "report runs=[RUN,SWEEP] out=REPORT",
    "generate env=mine count=2 folder=DEPOSITS",
    "evaluate env=fighting tournament=true checkpoint=none evaluation.episodes=2",
    "solve method=toposort instance=porphyry_small",
    "train env=nclone algo.total_steps=8192 tracking=disabled hydra.run.dir=PLAYED",
    "play env=nclone checkpoint=PLAYED episodes=1 frames=120",
    "play env=nclone checkpoint=PLAYED episodes=1 video=FILM/film.gif every=8",
    "record env=nclone env.levels=[walk] dataset=FILM/walk.npz",
)
"""Names in capitals become folders of this recording."""


@dataclass(frozen=True)
class Recording:
    """What one command printed, and when: (seconds, bytes), and how it ended."""

    pieces: tuple[tuple[float, bytes], ...]
    seconds: float
    status: int

    @property
    def gaps(self) -> list[tuple[float, str]]:
        """(seconds of silence, what had been said last), the longest first."""
        times = [0.0, *(at for at, _ in self.pieces), self.seconds]
        said = ["(start)", *(_last_words(text) for _, text in self.pieces)]
        gaps = [(b - a, w) for a, b, w in zip(times, times[1:], said, strict=False)]
        return sorted(gaps, reverse=True)

    @property
    def text(self) -> bytes:
        """All of it."""
        return b"".join(piece for _, piece in self.pieces)


def _last_words(text: bytes) -> str:
    lines = text.decode(errors="replace").replace("\r", "\n").split("\n")
    return next((line.strip()[:60] for line in reversed(lines) if line.strip()), "")


@dataclass(frozen=True)
class Command:
    """Words of a process, the folder that it starts in, and its environment."""

    words: list[str]
    folder: Path
    environ: dict[str, str]

    @classmethod
    def ours(cls, words: list[str], folder: Path) -> Command:
        """`frugal-rl WORDS` of this checkout."""
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
        return cls([sys.executable, "-m", "frugal_rl", *words], folder, environ)

    @classmethod
    def make(cls, words: list[str], folder: Path) -> Command:
        """`make WORDS` as a newcomer has it: a clone of the last commit, nothing in the home."""
        clone, home = folder / "clone", folder / "home"
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, clone], check=True)
        kept = {k: v for k, v in os.environ.items() if k.startswith(("PATH", "PIP_", "SSL_"))}
        environ = {**kept, "HOME": str(home), "TERM": "xterm-256color"}
        return cls(["make", *words], clone, environ)


def record(command: Command, columns: int) -> Recording:
    """Run a command in a terminal of so many columns; 0 means a pipe."""
    ours, theirs = pty.openpty() if columns else os.pipe()
    if columns:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    began = time.perf_counter()
    with subprocess.Popen(
        command.words,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=command.folder,
        env=command.environ,
    ) as process:
        os.close(theirs)
        pieces = tuple(_heard(ours, began))
        status = process.wait()
    return Recording(pieces, time.perf_counter() - began, status)


def _heard(source: int, began: float):
    while True:
        select.select([source], [], [])
        try:
            text = os.read(source, 1 << 16)
        except OSError:  # how a terminal says that its other end is closed
            text = b""
        if not text:
            os.close(source)
            return
        yield time.perf_counter() - began, text


def main() -> None:
    """Record each command three times."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--columns", type=int, nargs="+", default=[80, 60, 0], help="0: a pipe")
    options.add_argument("--folder", help="keep what is recorded there, and begin nothing again")
    options.add_argument("--seconds", type=float, default=1e9, help="begin none after these")
    asked, typed = options.parse_known_args()
    began = time.monotonic()
    print("| command | where | seconds | longest silence | after | exit | escape codes |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        for columns in asked.columns:
            folder = Path(asked.folder or name).absolute() / str(columns)
            folder.mkdir(parents=True, exist_ok=True)
            for line in [" ".join(typed)] if typed else COMMANDS:
                row = folder / f"{re.sub(r'[^A-Za-z0-9]+', '_', line)[:60]}.md"
                if not row.exists() and time.monotonic() - began <= asked.seconds:
                    row.write_text(recorded(line, columns, folder, row.with_suffix(".txt")))
                if row.exists():
                    print(row.read_text(), flush=True)


def recorded(line: str, columns: int, folder: Path, printed: Path) -> str:
    """A row of the table for one command; all that it printed goes to a file."""
    words = [_placed(word, folder) for word in line.split(" ")]
    made = words[0] == "make"
    command = Command.make(words[1:], folder) if made else Command.ours(words, folder)
    seen = record(command, columns)
    printed.write_bytes(seen.text)
    if seen.status:
        print(seen.text.decode(errors="replace")[-2000:], file=sys.stderr)
    (gap, after), where = seen.gaps[0], f"{columns} columns" if columns else "pipe"
    codes, shown = "yes" if b"\x1b" in seen.text else "no", line.replace("|", "\\|")
    said = after.replace(str(folder), "").replace("|", "\\|")
    return (
        f"| `{shown}` | {where} | {seen.seconds:.1f} | {gap:.1f} s | {said} | {seen.status} | "
        f"{codes} |"
    )


def _placed(word: str, folder: Path) -> str:
    for name in ("RUN", "SWEEP", "REPORT", "DEPOSITS", "PLAYED", "FILM"):
        word = word.replace(name, str(folder / name.lower()))
    return word


if __name__ == "__main__":
    main()
