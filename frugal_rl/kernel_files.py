"""Files of compiled kernels, on disks as they are: a help, and never a need.

Numba ends a program whose files are damaged or cut off, cannot be written, or have no place. Here
kernels are compiled again then. Imported right behind Numba's own module, before any kernel is made
(`frugal_rl.after_import`).
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from frugal_rl.errors import ConfigError

caching: Any = import_module("numba.core.caching")  # half of it has types
config: Any = import_module("numba.core.config")

MARK = b"\ncrc32 "
"""Begins what stands behind a kernel's pickle, which ends before it and does not see it."""
SUM_BYTES = 4


class SoundFiles(caching.IndexDataCacheFile):  # type: ignore[misc]
    """A kernel's index and code; a file that cannot be read is one that is not there."""

    def _load_index(self) -> dict[Any, str]:
        try:
            found: dict[Any, str] = super()._load_index()
        except Exception:  # a pickle that ends early raises whatever its bytes mean
            return {}
        return found

    def _load_data(self, name: str) -> Any:
        """The code of a kernel.

        Raises:
            OSError: it is damaged; Numba compiles it again.
        """
        raw = Path(self._data_path(name)).read_bytes()
        end = len(raw) - SUM_BYTES - len(MARK)
        if raw[max(0, end) : -SUM_BYTES] == MARK and _sum(raw[:end]) != raw[-SUM_BYTES:]:
            raise OSError(f"{name} is damaged")
        try:
            return super()._load_data(name)
        except Exception as error:
            raise OSError(f"{name} is damaged") from error

    def _save_data(self, name: str, data: Any) -> None:
        raw = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(raw + MARK + _sum(raw))


def _sum(raw: bytes) -> bytes:
    return zlib.crc32(raw).to_bytes(SUM_BYTES, "little")


class LastLocator(caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """Asked where no other place takes files: a folder of this process and its children."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """The kernel's place in that folder; none for one that was typed, and has no file.

        Raises:
            ConfigError: there is not even room for temporary files.
        """
        if not os.path.exists(py_file):
            return None
        _make_folder()
        return super().from_function(py_func, py_file)


def _make_folder() -> None:
    """Make a folder that ends with this process, and let children find it."""
    try:
        folder = tempfile.mkdtemp(prefix="frugal_rl_kernels_")
    except OSError as error:
        raise ConfigError(
            f"There is no place for compiled kernels ({error.strerror or error}): neither the "
            "installation, nor the home, nor the folder for temporary files can be written to. "
            "Give one: NUMBA_CACHE_DIR=/a/folder."
        ) from error
    config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = folder
    atexit.register(_remove, folder, os.getpid())
    warnings.warn(
        "Neither the installation nor the home can be written to: kernels are compiled anew by "
        "every command. Give a folder that keeps them: NUMBA_CACHE_DIR=/a/folder.",
        stacklevel=2,
    )


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # not a worker, which was forked
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _spared(cache: Any) -> Iterator[None]:
    """What a disk does not give or take of a kernel, Numba does without."""
    try:
        yield
    except OSError as error:
        warnings.warn(
            f"Compiled kernels in {cache.cache_path} are not kept ({error.strerror or error}): "
            "they are compiled again by the next command.",
            stacklevel=2,
        )


caching.IndexDataCacheFile = SoundFiles
caching.Cache._guard_against_spurious_io_errors = _spared
caching.CacheImpl._locator_classes.append(LastLocator)
