"""Arrays of strangers in archives: within bounds, of shapes that their bytes bear out."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from frugal_rl.errors import DataError
from frugal_rl.untrusted.forms import checked_shape
from frugal_rl.untrusted.limits import LIMITS, MIB, Limits, irregular, lack_of_room
from frugal_rl.untrusted.printing import printable, shown

HEADERS: dict[tuple[int, int], Callable[..., Any]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npz(path: Path, limits: Limits = LIMITS) -> dict[str, np.ndarray]:
    """The arrays of an `.npz`: checksums compared, sizes known before anything is unpacked.

    Raises:
        DataError: the file is damaged, or asks for more than the limits.
        FileNotFoundError: there is none.
    """
    try:
        if why := irregular(path.stat()):
            raise DataError(f"{shown(path)} cannot be read: {why}")
        with zipfile.ZipFile(path) as archive:
            _check_archive(archive, limits)
            return {_name(info): _array(archive, info) for info in archive.infolist()}
    except DataError as error:
        words = str(error) if shown(path) in str(error) else f"{shown(path)}: {error}"
        raise DataError(words) from error
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
    if len({_name(m) for m in members}) < len(members):
        raise DataError("two of its entries have one name.")
    unpacked = sum(m.file_size for m in members)
    if unpacked > limits.array_bytes:
        raise DataError(f"{unpacked / MIB:,.0f} MiB unpacked, above {limits.array_bytes / MIB:g}.")
    if lack := lack_of_room(unpacked):
        raise DataError(lack)
    packed = max(1, sum(m.compress_size for m in members))
    if unpacked > MIB and unpacked / packed > limits.ratio:
        raise DataError(f"it unpacks to {unpacked / packed:,.0f} times its size.")


def _name(info: zipfile.ZipInfo) -> str:
    return info.filename.removesuffix(".npy")


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
        if not dtype.itemsize:
            raise DataError(f"'{name}' holds values of no bytes.")
        num_bytes = math.prod(checked_shape(shape)) * dtype.itemsize
        if num_bytes > info.file_size:
            raise DataError(f"'{name}' has not the bytes that its shape says.")
        raw = file.read()
    if len(raw) != num_bytes:
        raise DataError(f"'{name}' has not the bytes that its shape says.")
    values = np.frombuffer(bytearray(raw), dtype) if raw else np.zeros(math.prod(shape), dtype)
    return values.reshape(shape, order="F" if fortran else "C")
