"""Files from strangers, read under limits: nothing is executed, and nothing is believed unchecked.

Whatever a file says (a length, a depth, a shape, a type) is compared with a limit, or with the
file's own size, before memory is taken for it.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from frugal_rl.errors import DataError

MIB = 1 << 20
PLAIN_DTYPE = re.compile(r"[<>|=]?[?biufcSUVMm]\d{0,9}(\[\d{0,9}[a-zA-Z]{1,2}\])?")
"""Types of fixed size that hold no references, as NumPy writes them."""
HEADERS: dict[tuple[int, int], Callable[..., Any]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
MOST_DIGITS = 1000
LONGEST_WORDS = 300
"""Characters of a stranger's text that an error repeats."""


@dataclass(frozen=True)
class Limits:
    """The most that a file may ask for."""

    file_bytes: int = 1 << 40
    text_bytes: int = 64 * MIB
    """JSON, or any other text."""
    entries: int = 200_000
    depth: int = 100
    """Lists and mappings inside each other."""
    array_bytes: int = 16384 * MIB
    """All arrays of an archive together, unpacked."""
    ratio: float = 400.0
    """Unpacked bytes per byte on disk."""


LIMITS = Limits()


def read_text(path: Path, limits: Limits = LIMITS) -> str:
    """A text file, refused above `text_bytes`.

    Raises:
        DataError: the file is missing, too long, or not UTF-8.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(limits.text_bytes + 1)
    except OSError as error:
        raise DataError(f"{shown(path)} cannot be read: {error.strerror or error}.") from error
    if len(raw) > limits.text_bytes:
        raise DataError(f"{shown(path)} is longer than {limits.text_bytes / MIB:g} MiB.")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{shown(path)} is no UTF-8 text: {error.reason}.") from error


def parse_json(text: str | bytes, limits: Limits = LIMITS) -> Any:
    """JSON of bounded length and depth.

    Raises:
        DataError: it is longer or deeper, or no JSON.
    """
    if len(text) > limits.text_bytes:
        raise DataError(f"{len(text) / MIB:.1f} MiB of JSON, above {limits.text_bytes / MIB:g}.")
    try:
        values = json.loads(text, parse_int=_whole)
    except RecursionError as error:
        raise DataError(f"JSON is nested deeper than {limits.depth} levels.") from error
    except ValueError as error:
        raise DataError(f"no JSON: {printable(str(error))}") from error
    if deeper_than(values, limits.depth):
        raise DataError(f"JSON is nested deeper than {limits.depth} levels.")
    return values


def _whole(digits: str) -> int:
    """A whole number; reading very long ones takes a time that grows with their square."""
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)


def deeper_than(values: Any, depth: int) -> bool:
    """Whether lists and mappings lie deeper inside each other; found without recursion."""
    level = [values]
    for _ in range(depth + 1):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below += value.values()
            elif isinstance(value, list):
                below += value
        if not below:
            return False
        level = below
    return True


def plain_dtype(described: Any, depth: int = 4) -> np.dtype[Any]:
    """A NumPy type from its description: fixed size, no objects.

    Raises:
        DataError: it describes anything else.
    """
    if isinstance(described, str) and PLAIN_DTYPE.fullmatch(described):
        try:
            return np.dtype(described)
        except TypeError as error:
            raise DataError(f"'{printable(described)}' is no type of array.") from error
    if isinstance(described, list) and 0 < len(described) <= 1000 and depth:
        try:
            fields = [(str(d[0]), plain_dtype(d[1], depth - 1), *_sub(d[2:])) for d in described]
            return np.dtype(fields)
        except (TypeError, ValueError, IndexError, KeyError) as error:
            raise DataError("a record's fields are described wrongly.") from error
    raise DataError(f"'{printable(str(described))}' is no type of array.")


def _sub(shape: list[Any]) -> tuple[tuple[int, ...], ...]:
    return tuple(checked_shape(s) for s in shape)


def checked_shape(shape: Any) -> tuple[int, ...]:
    """At most 32 whole numbers of at least 0.

    Raises:
        DataError: it is anything else.
    """
    whole = isinstance(shape, list | tuple) and len(shape) <= 32
    if not whole or not all(type(n) is int and 0 <= n < 1 << 48 for n in shape):
        raise DataError(f"'{printable(str(shape))}' is no shape of an array.")
    return tuple(shape)


def read_npz(path: Path, limits: Limits = LIMITS) -> dict[str, np.ndarray]:
    """The arrays of an `.npz`: checksums compared, sizes known before anything is unpacked.

    Raises:
        DataError: the file is damaged, or asks for more than the limits.
        FileNotFoundError: there is none.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _check_archive(archive, limits)
            return {
                info.filename.removesuffix(".npy"): _array(archive, info)
                for info in archive.infolist()
            }
    except DataError as error:
        raise DataError(f"{shown(path)}: {error}") from error
    except FileNotFoundError:
        raise
    except (OSError, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{shown(path)} cannot be read: {printable(str(error))}") from error
    except (zipfile.BadZipFile, zipfile.LargeZipFile, zipfile.zlib.error) as error:  # type: ignore[attr-defined]
        raise DataError(f"{shown(path)} is damaged: {printable(str(error))}") from error


def _check_archive(archive: zipfile.ZipFile, limits: Limits) -> None:
    members = archive.infolist()
    if len(members) > limits.entries:
        raise DataError(f"{len(members)} entries, above {limits.entries}.")
    unpacked = sum(m.file_size for m in members)
    if unpacked > limits.array_bytes:
        raise DataError(f"{unpacked / MIB:,.0f} MiB unpacked, above {limits.array_bytes / MIB:g}.")
    packed = max(1, sum(m.compress_size for m in members))
    if unpacked > MIB and unpacked / packed > limits.ratio:
        raise DataError(f"it unpacks to {unpacked / packed:,.0f} times its size.")


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """One array; reading to its end compares the archive's checksum."""
    name = printable(info.filename)
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        if version not in HEADERS:
            raise DataError(f"'{name}' has an unknown form {version}.")
        shape, fortran, dtype = HEADERS[version](file)
        if dtype.hasobject:
            raise DataError(f"'{name}' holds objects.")
        num_bytes = math.prod(checked_shape(shape)) * dtype.itemsize
        if num_bytes > info.file_size:
            raise DataError(f"'{name}' has not the bytes that its shape says.")
        raw = file.read()
    if len(raw) != num_bytes:
        raise DataError(f"'{name}' has not the bytes that its shape says.")
    values = np.frombuffer(bytearray(raw), dtype) if raw else np.zeros(math.prod(shape), dtype)
    return values.reshape(shape, order="F" if fortran else "C")


def printable(text: str, longest: int = LONGEST_WORDS) -> str:
    """A stranger's text for a terminal: control characters escaped, at most `longest` of them."""
    cut = text if len(text) <= longest else text[: longest - 3] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def shown(path: Path | str) -> str:
    """A path for a terminal, whole."""
    return printable(str(path), 4096)


def markdown_cell(text: object) -> str:
    """A stranger's text as the content of one cell of a Markdown table."""
    plain = printable(str(text))
    return re.sub(r"([\\`*_\[\]<>|!])", r"\\\1", plain)


def printable_values(values: Any) -> Any:
    """Nested values of a stranger with all their texts printable."""
    if isinstance(values, str):
        return printable(values)
    if isinstance(values, Mapping):
        return {printable(str(k)): printable_values(v) for k, v in values.items()}
    return [printable_values(v) for v in values] if isinstance(values, list) else values
