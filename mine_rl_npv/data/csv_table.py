"""Tables of words as people export them: any usual delimiter, encoding and decimal sign."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from frugal_rl.errors import DataError
from frugal_rl.untrusted.files import read_bytes
from frugal_rl.untrusted.printing import printable
from mine_rl_npv.data.sections import refuse_control_characters

HELD_PER_BYTE = 8
"""Of a table: its text, lines and words, 36 where words are short. Fewer than any takes."""
DELIMITERS = (",", ";", "\t", "|")
_EXCEL = re.compile(r'"?sep=.?"?[,;\t|]*', re.IGNORECASE)
"""A first line by which spreadsheets tell their delimiter."""
_FAULTY = re.compile(r"#(N/A|REF!|VALUE!|DIV/0!|NAME\?|NUM!|NULL!)", re.IGNORECASE)
"""First cells of rows in which a spreadsheet could not compute a number; no comments."""
_ABOUT_COLUMNS = re.compile(r'"?variable (descriptions|types|defaults)\b', re.IGNORECASE)
"""Lines below the header that say what its columns are, as a mine planning package exports them."""
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_POINTS = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")
_DECIMALS = re.compile(r"[+-]?(\d{4,}|\d*\.\d*)([eE][+-]?\d+)?")
"""Numbers that show how others are meant: four digits on end, or a point."""


@dataclass(frozen=True)
class CsvTable:
    """Rows of words under named columns, with their line numbers for messages."""

    path: Path
    names: tuple[str, ...]
    """As the file spells them."""
    place: list[int]
    """Line number of each row."""
    lines: list[str]
    """The rows as they stand in the file."""
    words: list[list[str]]
    delimiter: str
    """One of `DELIMITERS`, or a blank where columns are divided by white space."""
    decimal_comma: bool

    def numbers(self, column: int, absent: str = "") -> np.ndarray | None:
        """A column as (N,) float64, None where a word is no finite number.

        Args:
            column: its number.
            absent: word that stands for a number that is missing, read as 0; see `stands_for`.
        """
        words = [self._plain(row[column]) for row in self.words]
        if absent:
            words = ["0" if stands_for(word, absent) else word for word in words]
        try:
            values = np.array(words, np.float64)
        except ValueError:
            return None
        damaged = any("_" in word for word in words)  # Python takes 1_5 for 15
        return values if np.isfinite(values).all() and not damaged else None

    def missing(self, column: int, absent: str) -> np.ndarray:
        """Rows (N,) bool in which a column holds the word for missing numbers."""
        return np.array([stands_for(self._plain(row[column]), absent) for row in self.words], bool)

    def text(self, column: int) -> np.ndarray:
        """A column as (N,) words."""
        return np.array([row[column] for row in self.words])

    def refused(self, column: int) -> DataError:
        """The error that names the first word of a column that is no number."""
        name = printable(self.names[column])
        place, word = self.no_number(column)
        if not place:
            return DataError(f"{self.path}: column '{name}' cannot be read as numbers.")
        return DataError(
            f"{self.path}, line {place}: '{printable(word)}' in column '{name}' is not a number."
        )

    def no_number(self, column: int) -> tuple[int, str]:
        """Line and word of the first cell that holds no number; line 0 where all do."""
        for place, row in zip(self.place, self.words, strict=True):
            try:
                finite = "_" not in row[column] and np.isfinite(float(self._plain(row[column])))
            except ValueError:
                finite = False
            if not finite:
                return place, row[column]
        return 0, ""

    def _plain(self, word: str) -> str:
        """A word as Python writes numbers; beside decimal commas a point divides thousands."""
        if not self.decimal_comma:
            return word
        return "" if "." in word else word.replace(",", ".")


def stands_for(word: str, absent: str) -> bool:
    """Whether a word is the one for missing numbers: `blank`, a word, or a number in any form."""
    if absent.lower() == "blank" or not word:
        return absent.lower() == "blank" and not word
    try:
        return float(word) == float(absent)
    except ValueError:
        return word.lower() == absent.lower()


def read_table(path: Path) -> CsvTable:
    """A header and rows of equal width; blank lines and lines with `%` or `#` are skipped.

    So is what spreadsheets and mine planning packages add: `sep=;` above, kinds of columns below.

    Raises:
        DataError: no such file, no rows, a row of another width or of several lines, or a column
            named twice.
    """
    lines = [
        (number, line)
        for number, line in enumerate(_decoded(path).splitlines(), start=1)
        if line.strip() and (line.lstrip()[0] not in "%#" or _FAULTY.match(line.strip()))
    ]
    if lines and _EXCEL.fullmatch(lines[0][1].strip()):
        del lines[0]
    lines[1:4] = [line for line in lines[1:4] if not _ABOUT_COLUMNS.match(line[1].strip())]
    if len(lines) < 2:
        raise DataError(f"{path} needs a header line and at least one block.")
    place, texts = [number for number, _ in lines], [line for _, line in lines]
    delimiter = _delimiter(texts)
    try:
        words = _split([*texts, "after the last"], delimiter)
    except csv.Error as error:  # a cell longer than the module takes
        raise DataError(f"{path} cannot be divided into cells: {printable(str(error))}.") from error
    if len(words) <= len(texts):
        at = next((i for i, line in enumerate(texts) if line.count('"') % 2), 0)
        raise DataError(
            f"{path}, line {place[at]}: a quotation mark opens a cell that ends in another line; "
            "write each block into one line."
        )
    del words[-1]
    names = tuple(words[0])
    for number, row in zip(place, words, strict=True):
        if len(row) != len(names):
            raise DataError(f"{path}, line {number}: {len(row)} values for {len(names)} columns.")
    twice = [name for name, n in Counter(map(str.lower, names)).items() if n > 1]
    if twice:
        raise DataError(
            f"{path}, line {place[0]}: a column name appears twice ({printable(', '.join(twice))})."
        )
    comma = delimiter != "," and _has_decimal_commas(words[1:])
    if comma:
        _refuse_thousands(path, words[1:])
    else:
        _refuse_points(path, words[1:])
    return CsvTable(path, names, place[1:], texts[1:], words[1:], delimiter, comma)


def _decoded(path: Path) -> str:
    if not path.exists():
        raise DataError(f"{path} does not exist; a CSV block model is expected.")
    text = _text(path, read_bytes(path, held_per_byte=HELD_PER_BYTE))
    refuse_control_characters(path, text)
    return text


def _text(path: Path, raw: bytes) -> str:
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16", errors="replace")
    if b"\0" in raw[:4096]:
        raise DataError(f"{path} is not a text file; a CSV block model is expected.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace")


def _delimiter(lines: list[str]) -> str:
    """The delimiter that the header holds most often and the next rows hold as often."""
    head, rows = lines[0], lines[1:50]
    best = max(
        DELIMITERS,
        key=lambda d: (head.count(d), sum(row.count(d) == head.count(d) for row in rows)),
    )
    return best if head.count(best) else " "


def _split(lines: list[str], delimiter: str) -> list[list[str]]:
    if delimiter == " ":
        return [line.split() for line in lines]
    rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    return [[word.strip() for word in row] for row in rows]


def _has_decimal_commas(words: list[list[str]]) -> bool:
    """Whether numbers are written 1,5: some are, and none is written 1.5."""
    sample = [word for row in words[:500] for word in row]
    return any(_COMMA_NUMBER.fullmatch(word) for word in sample) and not any(
        re.fullmatch(r"[+-]?\d*\.\d+", word) for word in sample
    )


def _refuse_thousands(path: Path, words: list[list[str]]) -> None:
    """Raises DataError where every comma may as well divide thousands: 15,600 is not 15.6."""
    written = [word for row in words for word in row if _COMMA_NUMBER.fullmatch(word)]
    if all(map(_THOUSANDS.fullmatch, written)):
        raise DataError(
            f"{path}: the commas of numbers such as {printable(written[0])} may divide thousands "
            "or decimals; write decimal points and no thousands."
        )


def _refuse_points(path: Path, words: list[list[str]]) -> None:
    """Raises DataError where every point may as well divide thousands, and no number is longer.

    3.015 is not 3015; a file that writes 0.35, 15.5, 1.0 or 3015 anywhere divides none.
    """
    seen = ""
    for row in words:
        for word in row:
            if _POINTS.fullmatch(word):
                seen = seen or word
            elif _DECIMALS.fullmatch(word):
                return
    if seen:
        raise DataError(
            f"{path}: the points of numbers such as {printable(seen)} may divide thousands or "
            "decimals; write thousands without points, or decimals with another number of digits."
        )
