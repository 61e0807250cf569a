"""Bytes that reach the disk: short writes go on, a file has its name only when it is whole."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from frugal_rl.errors import DiskError, FrugalError
from frugal_rl.untrusted.printing import shown

Bytes = bytes | memoryview
PIECE_BYTES = 1 << 16
FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG}
"""What becomes of a disk, and is no mistake of the program that writes to it."""
UNREACHED = {
    errno.EACCES: "Its owner may allow it; or name another path",
    errno.EPERM: "Its owner may allow it; or name another path",
    errno.ENAMETOOLONG: "Name a shorter path",
    errno.ELOOP: "Its links lead in a circle; name another path",
    errno.EMFILE: "Allow more with `ulimit -n`, or use fewer vec.workers",
    errno.ENFILE: "All programs of this machine have too many open; end some",
    errno.ESTALE: "The disk behind it is gone; mount it again",
    errno.ENOTCONN: "The disk behind it is gone; mount it again",
    errno.EHOSTDOWN: "The disk behind it is gone; mount it again",
}
"""What keeps a command from a file that it was pointed to, and what to do."""


def open_own(path: Path, flags: int) -> int:
    """Open a file to write, made where it is not there.

    Raises:
        DiskError: it is a link, a pipe or a device, as a stranger's folder might hold.
    """
    try:
        number = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        raise _no_file(path) from error
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise _no_file(path)
    return number


def _no_file(path: Path) -> DiskError:
    return DiskError(
        f"{path} is a link, a pipe or a device, and nothing is written through those. Remove it, "
        "or choose another folder."
    )


def write_all(number: int, data: Bytes) -> None:
    """Write all bytes to an open file; the system may take fewer at once."""
    left = memoryview(data).cast("B")
    while len(left):
        left = left[os.write(number, left) :]


def write_pieces(path: Path, pieces: Iterable[Bytes]) -> None:
    """Write a file in pieces and force it to the disk."""
    number = open_own(path, os.O_WRONLY | os.O_TRUNC)
    try:
        for piece in pieces:
            write_all(number, piece)
        os.fsync(number)
    finally:
        os.close(number)


def write_whole(
    path: Path, pieces: Iterable[Bytes], check: Callable[[Path], object] | None = None
) -> None:
    """Write beside `path`, let `check` read it back, then give it the name; or leave no trace."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)  # of a dead process of the same number, or a stranger's link
    try:
        write_pieces(part, pieces)
        if check is not None:
            check(part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    flush_folder(path.parent)


@contextmanager
def finished_or_absent(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` (same suffix), renamed on success, removed on failure.

    Raises:
        DiskError: the disk is full, the folder cannot be made, or anything else of that kind.
    """
    part = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except DiskError:
        raise
    except OSError as error:
        raise DiskError(
            f"{path} cannot be written: {error.strerror or error}. Nothing was left there; free "
            "some space or choose another place."
        ) from error


def is_at(path: Path, number: int) -> bool:
    """Whether a path still leads to an open file: it may have been deleted, moved or replaced."""
    try:
        there, ours = os.stat(path, follow_symlinks=False), os.fstat(number)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


class AppendedLines:
    """A file that grows by whole lines: a torn one, of a run that was killed, is cut off first.

    Deleted or moved while it is written, it is made again with all that it held.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = open_own(path, os.O_RDWR | os.O_APPEND)
        self.torn_bytes = self._repair()
        self.remade = 0
        """How often the file had to be made again."""

    def _repair(self) -> int:
        """Cut off what stands behind the last newline; its bytes."""
        size = os.fstat(self.number).st_size
        end = self._line_at(size)
        if end < size:
            os.ftruncate(self.number, end)
        return size - end

    def _line_at(self, end: int) -> int:
        """Where the line begins that stands before `end`: behind the last newline."""
        while end:
            first = max(0, end - PIECE_BYTES)
            found = os.pread(self.number, end - first, first).rfind(b"\n")
            if found >= 0:
                return first + found + 1
            end = first
        return 0

    def drop_behind(self, kept: Callable[[bytes], bool]) -> None:
        """Cut off the last lines, up to the last one that is kept."""
        end = os.fstat(self.number).st_size
        while end:
            begin = self._line_at(end - 1)
            if kept(os.pread(self.number, end - begin, begin)):
                break
            end = begin
        os.ftruncate(self.number, end)

    def append(self, line: str) -> None:
        """Add a line, whole or not at all."""
        if not is_at(self.path, self.number):
            self._make_again()
        size = os.fstat(self.number).st_size
        try:
            write_all(self.number, line.encode() + b"\n")
        except OSError:
            os.ftruncate(self.number, size)
            raise

    def _make_again(self) -> None:
        """The system keeps what a deleted file holds for as long as it is open.

        Where somebody put another file in its place, that one is continued.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        before, self.number = self.number, open_own(self.path, os.O_RDWR | os.O_APPEND)
        try:
            self._repair()
            if not os.fstat(self.number).st_size:
                self._copy(before)
        except OSError:
            os.close(self.number)
            self.number = before  # the next line tries again
            raise
        os.close(before)
        self.remade += 1

    def _copy(self, before: int) -> None:
        """All that another open file holds, or nothing."""
        try:
            for at in range(0, os.fstat(before).st_size, PIECE_BYTES):
                write_all(self.number, os.pread(before, PIECE_BYTES, at))
        except OSError:
            os.ftruncate(self.number, 0)
            raise

    def close(self) -> None:
        """Close the file."""
        os.close(self.number)


def flush_folder(folder: Path) -> None:
    """Force a folder's names to the disk, where the system can."""
    try:
        number = os.open(folder, os.O_RDONLY)
    except OSError:
        return  # a system that opens no folders flushes their names itself
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def told(folder: Path, key: str = "hydra.run.dir") -> Iterator[None]:
    """Failures to write into a folder that `key` chooses, in words.

    Raises:
        DiskError: naming the folder, the reason and what to do.
    """
    try:
        yield
    except FrugalError:
        raise
    except OSError as error:
        file = error.filename2 or error.filename  # the second one is what a file is renamed to
        at = f": {shown(Path(file).name)}" if isinstance(file, str | Path) else ""
        raise DiskError(
            f"The folder {folder} cannot be written to ({error.strerror or error}{at}). Free space "
            f"or allow writing there, or choose another with {key}=..."
        ) from error


@contextmanager
def disk_in_words() -> Iterator[None]:
    """What a disk does not take or give of any file, said in a line instead of a traceback.

    Raises:
        DiskError: naming the file, where the system does, and what to do.
    """
    try:
        yield
    except FrugalError:
        raise
    except OSError as error:
        if error.errno not in FAULTS | UNREACHED.keys():
            raise
        told_so = DiskError(_in_words(error))
        for note in getattr(error, "__notes__", []):
            told_so.add_note(note)
        raise told_so from error


def _in_words(error: OSError) -> str:
    what = shown(error.filename) if isinstance(error.filename, str | Path) else "A file"
    if error.errno in UNREACHED:
        return f"{what} cannot be reached ({error.strerror}). {UNREACHED[error.errno]}."
    return (
        f"{what} is not written ({error.strerror}). What was written before is as it was. Free "
        "space or choose another folder, and give the command again."
    )
