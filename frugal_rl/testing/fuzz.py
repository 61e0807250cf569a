"""Files changed at random, and what a reader may do with them: read them, or refuse in one line."""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from frugal_rl.errors import FrugalError

MIB = 1 << 20
NUMBERS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
WORDS = (
    *(b"nan", b"-1", b"1e999", b"99999999999999999999", b"0x", b"", b"\x1b[31m", b"\xff\xfe"),
    *(b"[" * 300, b"{a: " * 300, b"null", b"true", b"-", b":", b"\n", b"&a [*a]", b"0.5", b"'"),
    *(b"!!python/object:os.system x", b"2001-99-99", b"9" * 5000, b"a: 1", b"[1]", b"{}"),
)
"""What stands where another word was expected."""


def mutations(raw: bytes, count: int, seed: int, text: bool = False) -> Iterator[tuple[str, bytes]]:
    """What was done, and the changed bytes; of a `text` single words are changed too."""
    rng = np.random.default_rng(seed)
    ways = (_flip, _cut, _number, _overwrite, _remove, _repeat, _insert)
    for k in range(count):
        way = _word if text and rng.random() < 0.5 else ways[rng.integers(len(ways))]
        yield f"{k} {way.__name__.strip('_')}", way(raw, rng)


@dataclass
class Reading:
    """Reads changed files and writes down what it finds wrong.

    `read` takes the path and may go on to use what it read.
    """

    path: Path
    read: Callable[[Path], Any]
    name: str = ""
    """What a refusal must name; the file's name if empty."""
    bytes_allowed: int = 64 * MIB
    seconds_allowed: float = 20.0
    accepted: int = 0
    refused: int = 0

    def problems(self, changed: Iterator[tuple[str, bytes]]) -> list[str]:
        """Everything that was neither read nor refused in one line, within memory and time."""
        tracemalloc.start()
        try:
            return [f"{what}: {why}" for what, raw in changed for why in self._problem(raw)]
        finally:
            tracemalloc.stop()

    def _problem(self, raw: bytes) -> Iterator[str]:
        self.path.write_bytes(raw)
        tracemalloc.reset_peak()
        before, began = tracemalloc.get_traced_memory()[0], time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.read(self.path)
            self.accepted += 1
        except FrugalError as error:
            self.refused += 1
            words = str(error)
            if not words.isprintable() or (self.name or self.path.name) not in words:
                yield repr(words)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            yield f"{type(error).__name__}: {error!s:.200} at {_place(error)}"
        if (taken := tracemalloc.get_traced_memory()[1] - before) > self.bytes_allowed:
            yield f"it took {taken / MIB:.0f} MiB"
        if (spent := time.process_time() - began) > self.seconds_allowed:
            yield f"it took {spent:.0f} s"


def _place(error: BaseException) -> str:
    """File and line of our own code that an error came through last."""
    found, frame = "?", error.__traceback__
    while frame is not None:
        name = frame.tb_frame.f_code.co_filename
        if "site-packages" not in name:
            found = f"{Path(name).name}:{frame.tb_lineno}"
        frame = frame.tb_next
    return found


def _span(raw: bytes, rng: np.random.Generator, longest: int = 64) -> tuple[int, int]:
    begin = int(rng.integers(max(1, len(raw))))
    return begin, min(len(raw), begin + int(rng.integers(1, longest + 1)))


def _flip(raw: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(raw)
    bit = int(rng.integers(8 * len(raw)))
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


def _cut(raw: bytes, rng: np.random.Generator) -> bytes:
    return raw[: int(rng.integers(len(raw)))]


def _number(raw: bytes, rng: np.random.Generator) -> bytes:
    """A little-endian number of 1, 2 or 4 bytes that lies at a border."""
    size, at = int(2 ** rng.integers(3)), int(rng.integers(len(raw)))
    value = NUMBERS[rng.integers(len(NUMBERS))] & ((1 << 8 * size) - 1)
    return raw[:at] + value.to_bytes(size, "little") + raw[at + size :]


def _overwrite(raw: bytes, rng: np.random.Generator) -> bytes:
    begin, end = _span(raw, rng)
    return raw[:begin] + bytes([int(rng.choice([0, 255]))]) * (end - begin) + raw[end:]


def _remove(raw: bytes, rng: np.random.Generator) -> bytes:
    begin, end = _span(raw, rng)
    return raw[:begin] + raw[end:]


def _repeat(raw: bytes, rng: np.random.Generator) -> bytes:
    begin, end = _span(raw, rng)
    return raw[:end] + raw[begin:end] * int(rng.integers(1, 50)) + raw[end:]


def _insert(raw: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(raw) + 1))
    return raw[:at] + rng.bytes(int(rng.integers(1, 32))) + raw[at:]


def _word(raw: bytes, rng: np.random.Generator) -> bytes:
    """One word between blanks, commas or brackets becomes another."""
    ends = [i for i, b in enumerate(raw) if b in b" \t\n,;:[]{}"]
    if len(ends) < 2:
        return WORDS[rng.integers(len(WORDS))]
    k = int(rng.integers(len(ends) - 1))
    return raw[: ends[k] + 1] + WORDS[rng.integers(len(WORDS))] + raw[ends[k + 1] :]
