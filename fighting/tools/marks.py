"""Marks: what a person said had just happened, and files of them.

A file has a line per mark: the frame in which the key was pressed (0 is the recording's first) and
a word, as in `312,lost`. Blank lines and what follows a `#` say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from frugal_rl.errors import DataError
from frugal_rl.run.disk import finished_or_absent
from frugal_rl.untrusted.files import read_text
from frugal_rl.untrusted.printing import printable, shown


class Mark(Enum):
    """What happened."""

    lost = "lost"
    """A hit was taken, a life lost, within the last two seconds."""
    gained = "gained"
    """Something was scored, the opponent hit, within the last two seconds."""
    nothing = "nothing"
    """Neither, since the mark before."""


KEYS: Mapping[str, Mark] = {"x": Mark.lost, "c": Mark.gained, "v": Mark.nothing}
"""Neighbours on most keyboards, free of the joypad's keys."""
ASKED = "X: I lost something (a hit, a life). C: I gained something (a point, a hit landed). "
ASKED += "V: nothing happened since the last mark. Esc: done (five minutes at most)."
WITHOUT_SCREEN = "probe=replay replay=FILE.replay marks=FILE.csv listens to a recording instead"
"""What one can do where no window opens."""
FORM = "write a frame and lost, gained or nothing, as '312,lost'"


@dataclass(frozen=True)
class Moment:
    """A mark and the frame that was on the screen as it was made."""

    frame: int
    mark: Mark

    @property
    def line(self) -> str:
        """As a file has it."""
        return f"{self.frame},{self.mark.name}"


def write_marks(path: Path, moments: Sequence[Moment]) -> None:
    """A file that `read_marks` reads, whole or not at all."""
    text = "".join(f"{moment.line}\n" for moment in moments)
    with finished_or_absent(path) as part:
        part.write_text(f"# frame, what happened\n{text}", encoding="utf-8")


def read_marks(path: Path, frames: int, recording: str) -> list[Moment]:
    """The marks of a recording of so many frames, the earliest first.

    Raises:
        DataError: a line says no mark of this recording, or there are none that tell anything.
    """
    found = []
    for number, line in enumerate(read_text(path).lstrip("\ufeff").splitlines(), 1):
        if words := re.findall(r"[^\s,;]+", line.partition("#")[0]):
            found.append(_moment(words, f"{shown(path)}, line {number}", frames, recording))
    if not any(moment.mark is not Mark.nothing for moment in found):
        what = "marks nothing that was lost or gained" if found else "has no marks at all"
        raise DataError(f"{shown(path)}, line 1: the file {what}; for each mark {FORM}.")
    return sorted(found, key=lambda moment: moment.frame)


def _moment(words: Sequence[str], where: str, frames: int, recording: str) -> Moment:
    """One line's mark; `where` names file and line."""
    if len(words) != 2:
        raise DataError(f"{where}: {printable(' '.join(words))!r} is no mark; {FORM}.")
    frame, word = words
    if word not in Mark.__members__:
        known = ", ".join(Mark.__members__)
        raise DataError(f"{where}: there is no mark {printable(word)!r}; write one of {known}.")
    if not (frame.isascii() and frame.isdecimal() and len(frame) < 10):
        raise DataError(f"{where}: {printable(frame)!r} is no frame; {FORM}.")
    if int(frame) >= frames:
        raise DataError(
            f"{where}: frame {int(frame)} lies beyond {recording}, which has the frames 0 to "
            f"{frames - 1}. Take the line out, or name the recording that it belongs to."
        )
    return Moment(int(frame), Mark[word])
