"""Arrays that were found once and are asked for again: plain files in the user's cache folder.

A file is named by a fingerprint of all that its arrays depend on, so that nothing stale is ever
read. It is a line of JSON (what the finder says of the arrays, dtype, shape and checksum of each,
and a checksum of the line), then the bytes of array after array. Nothing in it is code. Deleting
the folder is harmless; one that cannot be written or is full costs finding the arrays again.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from frugal_rl import remembered

MOST_BYTES = 1 << 30
"""Of all files together: those that were asked for longest ago make room for new ones."""
DEAD_SECONDS = 3600
"""Nobody writes a file for so long."""
_MOST_HEAD = 1 << 24
_KINDS = "biuf"


class _Form(NamedTuple):
    """How an array lies in a file: `fortran` where its first axis is the innermost."""

    dtype: str
    shape: list[int]
    fortran: bool
    checksum: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def empty(self) -> np.ndarray:
        order = "F" if self.fortran else "C"
        return np.empty(self.shape, self.dtype, order)  # type: ignore[call-overload, no-any-return]

    def fits(self, values: np.ndarray) -> bool:
        form = (values.dtype.str, list(values.shape), _is_fortran(values))
        return form == self[:3] and values.flags.forc


def folder() -> Path:
    """Where the files are kept.

    Raises:
        OSError: this user has no home.
    """
    return remembered.folder() / "arrays"


def read(name: str) -> tuple[Any, list[np.ndarray]] | None:
    """The words and arrays that were kept under a name; None where none can be trusted."""
    return _read(name, lambda forms: [form.empty() for form in forms])


def read_into(name: str, arrays: Sequence[np.ndarray]) -> bool:
    """Fill arrays with those that were kept under a name, where they are of the same forms.

    Returns:
        Whether they hold them now; if not, what they hold is undefined.
    """

    def given(forms: list[_Form]) -> list[np.ndarray]:
        if len(forms) != len(arrays) or not all(map(_Form.fits, forms, arrays)):
            raise ValueError("arrays of other forms")
        return list(arrays)

    return _read(name, given) is not None


def write(name: str, words: Any, arrays: Sequence[np.ndarray]) -> None:
    """Keep arrays of numbers, and words that JSON holds, under a name; whole or not at all."""
    need = sum(values.nbytes for values in arrays)
    try:
        folder().mkdir(parents=True, exist_ok=True)
        if need > MOST_BYTES // 4 or 2 * need > shutil.disk_usage(folder()).free:
            return  # it would push out everything else, or fill the disk
        _make_room(need)
        with remembered.placed(_path(name)) as part, part.open("wb") as file:
            _write(file, name, words, arrays)
    except OSError:
        return


def _path(name: str) -> Path:
    return folder() / f"{name}.arrays"


def _is_fortran(values: np.ndarray) -> bool:
    return values.flags.f_contiguous and not values.flags.c_contiguous


def _bytes_of(values: np.ndarray) -> memoryview:
    """The bytes of an array as they lie in memory; of one with gaps, a copy's."""
    lying = values.T if _is_fortran(values) else np.ascontiguousarray(values)
    return lying.reshape(-1).view(np.uint8).data


def _write(file: BinaryIO, name: str, words: Any, arrays: Sequence[np.ndarray]) -> None:
    forms = [
        _Form(a.dtype.str, list(a.shape), _is_fortran(a), zlib.crc32(_bytes_of(a))) for a in arrays
    ]
    said = json.dumps([words, forms])
    head = json.dumps({"said": said, "sum": remembered.fingerprint(name, said)})
    file.write(head.encode() + b"\n")
    for values in arrays:
        file.write(_bytes_of(values))


def _read(
    name: str, take: Callable[[list[_Form]], list[np.ndarray]]
) -> tuple[Any, list[np.ndarray]] | None:
    try:
        path = _path(name)
        if not path.is_file():  # a pipe never ends
            return None
        with path.open("rb") as file:
            words, forms = _head(file, name)
            arrays = take(forms)
            for form, values in zip(forms, arrays, strict=True):
                held = _bytes_of(values)
                if file.readinto(held) != len(held) or zlib.crc32(held) != form.checksum:
                    return None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    with suppress(OSError):
        os.utime(path)  # it was of use: others go first
    return words, arrays


def _head(file: BinaryIO, name: str) -> tuple[Any, list[_Form]]:
    """Words and forms of a file that is as long as they say.

    Raises:
        ValueError: it is not, or they are damaged.
    """
    head = json.loads(file.readline(_MOST_HEAD))
    if head["sum"] != remembered.fingerprint(name, head["said"]):
        raise ValueError("damaged")
    words, rows = json.loads(head["said"])
    forms = [_Form(*row) for row in rows]
    length = file.tell() + sum(form.nbytes for form in forms)
    if length != os.fstat(file.fileno()).st_size or any(
        np.dtype(form.dtype).kind not in _KINDS for form in forms
    ):
        raise ValueError("damaged")
    return words, forms


def _make_room(need: int) -> None:
    """Delete files, the one asked for longest ago first, until all and `need` fit.

    What processes left behind that were killed while they wrote goes first.
    """
    for part in folder().glob(".*.part"):
        if time.time() - part.stat().st_mtime > DEAD_SECONDS:
            part.unlink(missing_ok=True)
    files = sorted((path.stat().st_mtime, path) for path in folder().glob("*.arrays"))
    held = sum(path.stat().st_size for _, path in files)
    for _, path in files:
        if held + need <= MOST_BYTES:
            return
        held -= path.stat().st_size
        path.unlink(missing_ok=True)
