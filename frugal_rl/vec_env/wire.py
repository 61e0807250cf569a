"""Rows of frozen fields between a worker and the main process: only what differs from the last.

A message is a byte of flags and either the row as it is, or how many words of eight bytes differ,
their places and the words. Both sides keep the row before; where a form says that rows are stacks,
the row before is moved by one part first. A guess that fails makes a message long, never wrong.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.observation.fields import Stored

if TYPE_CHECKING:
    from frugal_rl.observation.found_form import FoundForm
    from frugal_rl.observation.spec import ObservationSpec

LEAST_BYTES = 256
"""Smaller rows cross as they are."""
FRESH, WHOLE, MOVED = 1, 2, 4
"""Flags: the row before is zeros; the row as it is; the row before has moved."""
WORD = np.dtype(np.uint64)

Message = tuple[int, str, bool, bytes]
"""Place among a worker's environments, field, whether it is an episode's last row, message."""


def wires_of(spec: ObservationSpec) -> dict[str, FoundForm]:
    """The frozen fields that cross as differences."""
    return {
        f.name: codec.form
        for f in spec.fields
        if isinstance(f, Stored) and f.nbytes >= LEAST_BYTES
        for codec in f.codecs
        if codec.form is not None
    }


class Wire:
    """One end of a field's line: the row before, [row bytes] filled up to whole words."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], form: FoundForm) -> None:
        self.shape, self.dtype, self.form = shape, dtype, form
        self.row_bytes = math.prod(shape) * dtype.itemsize
        self.last = np.zeros(-(-self.row_bytes // WORD.itemsize), WORD)
        self.places = np.dtype(np.uint16 if len(self.last) <= 1 << 16 else np.uint32)
        self._fresh = True

    def pack(self, row: np.ndarray) -> bytes:
        """The message for the next row."""
        words = np.zeros_like(self.last)
        words.view(np.uint8)[: self.row_bytes] = (
            np.ascontiguousarray(row).reshape(-1).view(np.uint8)
        )
        flags, base = FRESH * self._fresh, self.last
        if self.form.parts > 1 and not self._fresh:
            flags, base = flags | MOVED, self._moved()
        changed = np.flatnonzero(words != base)
        self.last, self._fresh = words, False
        if len(changed) * (self.places.itemsize + WORD.itemsize) >= self.row_bytes:
            return bytes([flags | WHOLE]) + words.tobytes()
        at = changed.astype(self.places)
        return bytes([flags]) + at.tobytes() + words[changed].tobytes()

    def unpack(self, message: bytes) -> np.ndarray:
        """The row of the next message, [*shape]; valid until the one after it."""
        flags, body = message[0], memoryview(message)[1:]
        if flags & FRESH:
            self.last = np.zeros_like(self.last)
        if flags & WHOLE:
            self.last = np.frombuffer(body, WORD).copy()
        else:
            if flags & MOVED:
                self.last = self._moved()
            count = len(body) // (self.places.itemsize + WORD.itemsize)
            at = np.frombuffer(body, self.places, count)
            self.last[at] = np.frombuffer(bytes(body[at.nbytes :]), WORD)
        return self.last.view(np.uint8)[: self.row_bytes].view(self.dtype).reshape(self.shape)

    def _moved(self) -> np.ndarray:
        """The row before as a stack whose newest part has come twice."""
        form, moved = self.form, self.last.copy()
        parts = moved.view(np.uint8)[: self.row_bytes].reshape(form.outer, form.parts, form.inner)
        if form.newest_last:
            parts[:, :-1] = parts[:, 1:].copy()
        else:
            parts[:, 1:] = parts[:, :-1].copy()
        return moved
