"""Reading MineLib text: comments, separators, sections and tables of numbers, with line numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from frugal_rl.errors import DataError
from frugal_rl.untrusted.files import read_bytes
from frugal_rl.untrusted.printing import printable

HELD_PER_BYTE = 4
"""Of a text: its bytes, characters and lines, 9 where lines are short. Fewer than any takes."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SEPARATORS = str.maketrans(":\t\r", "   ")


@dataclass(frozen=True)
class Lines:
    """Lines of one file that carry something, with their places for messages."""

    path: Path
    number: list[int]
    text: list[str]
    complete: bool = False
    """Whether the file says EOF: one that was cut off does not."""

    def __len__(self) -> int:
        return len(self.text)

    def error(self, at: int, message: str) -> DataError:
        """An error that names the file and the line of entry `at`."""
        return DataError(f"{self.path}, line {self.number[at]}: {printable(message)}")


def read_lines(path: Path) -> Lines:
    """Every line without comments and blank lines; colon, tab and CR count as separators.

    Raises:
        DataError: there is no such file, or it is not ASCII text.
    """
    if not path.exists():
        raise DataError(f"{path} does not exist; a MineLib instance needs it.")
    try:
        content = read_bytes(path, held_per_byte=HELD_PER_BYTE).decode("ascii")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not ASCII text (byte {error.start}).") from None
    refuse_control_characters(path, content)
    number, text, complete = [], [], False
    for place, line in enumerate(content.translate(_SEPARATORS).split("\n"), start=1):
        bare = line.strip()
        complete = bare == "EOF"
        if complete:
            break
        if bare and not bare.startswith("%"):
            number.append(place)
            text.append(bare)
    return Lines(path, number, text, complete)


def refuse_control_characters(path: Path, content: str) -> None:
    """Refuse what no text file of numbers holds, and no terminal should be sent."""
    if found := _CONTROL.search(content):
        line = content.count("\n", 0, found.start()) + 1
        code = f"0x{ord(found[0]):02x}"
        raise DataError(f"{path}, line {line}: a control character ({code}); is it a text file?")


def read_sections(path: Path, known: frozenset[str]) -> dict[str, Lines]:
    """A file of `KEYWORD: value` lines and tables, in any order, by keyword.

    A one-line keyword keeps its value as its single line. Blanks inside keywords are read as
    underscores, as the format's specification prints them.

    Raises:
        DataError: a line starts with a word that is not `known`: what follows it would be taken
            out of the table that it stands in.
    """
    lines = read_lines(path)
    sections: dict[str, Lines] = {}
    current: Lines | None = None
    for place, text in zip(lines.number, lines.text, strict=True):
        if text[0].isalpha():
            keyword, value = _split_keyword(text)
            if keyword not in known:
                near = get_close_matches(keyword, known, 1)
                meant = f"; {near[0]} is meant?" if near else ""
                raise DataError(
                    f"{path}, line {place}: no section of a MineLib file is called "
                    f"{printable(keyword)}{meant or '; put % before a comment.'}"
                )
            if keyword in sections:
                raise DataError(
                    f"{path}, line {place}: section {printable(keyword)} appears twice."
                )
            current = sections[keyword] = Lines(path, [], [], lines.complete)
            if value:
                current.number.append(place)
                current.text.append(value)
        elif current is None:
            raise DataError(f"{path}, line {place}: a row stands before the first section.")
        else:
            current.number.append(place)
            current.text.append(text)
    return sections


def _split_keyword(text: str) -> tuple[str, str]:
    words = text.split()
    if words[0] in ("NAME", "TYPE"):
        return words[0], " ".join(words[1:])
    length = 1
    while length < len(words) and words[length][0].isalpha():
        length += 1
    return "_".join(words[:length]), " ".join(words[length:])


def scalar(sections: dict[str, Lines], keyword: str, path: Path, kind: type = int) -> float:
    """The single number of a section.

    Raises:
        DataError: the section is missing or does not hold one number.
    """
    if keyword not in sections or len(sections[keyword]) == 0:
        raise DataError(f"{path}: section {keyword} is missing or empty.")
    lines = sections[keyword]
    try:
        (word,) = lines.text[0].replace("_", " _ ").split()  # Python takes 1_5 for 15
        return kind(word)
    except ValueError:
        raise lines.error(0, f"{keyword} must be one {kind.__name__}.") from None


def table(lines: Lines, width: int, what: str) -> np.ndarray:
    """Rows of exactly `width` numbers.

    Returns:
        (rows, width) float64.

    Raises:
        DataError: names the first line with another count or something that is no number.
    """
    words = " ".join(lines.text).split()
    counts_fit = len(words) == width * len(lines)
    counts_fit = counts_fit and not any("_" in text for text in lines.text)
    if counts_fit and all(len(text.split()) == width for text in lines.text):
        try:
            return np.array(words, dtype=np.float64).reshape(-1, width)
        except ValueError:
            pass
    for at, text in enumerate(lines.text):
        row = text.split()
        if len(row) != width:
            raise lines.error(at, f"{what} needs {width} numbers, found {len(row)}.")
        for word in row:
            if not _is_number(word):
                raise lines.error(at, f"'{word}' in {what} is not a number.")
    return np.empty((0, width))


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word


def whole(lines: Lines, column: np.ndarray, bound: int, what: str) -> np.ndarray:
    """A column of ids in [0, bound) as int32.

    Raises:
        DataError: names the first line whose id is not a whole number in that range.
    """
    wrong = (column != np.floor(column)) | (column < 0) | (column >= bound)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise lines.error(at, f"{what} {column[at]:g} is unknown; known are 0 to {bound - 1}.")
    return column.astype(np.int32)
