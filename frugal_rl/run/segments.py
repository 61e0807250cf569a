"""A large state that is saved again and again: each save appends a segment with what is new.

The arrays of a state are cut into blocks. A segment lists all of them, by what they hash to and
where they lie, and holds those that the segment before did not list. So a replay of a million
transitions is written once, and then only what has changed; any listed segment is a whole state.
Segments have the form of `checkpoint_file`: checksummed, without pickle, named when they are whole.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from frugal_rl.errors import CheckpointError, DataError, DiskError
from frugal_rl.run.checkpoint_file import pieces_of, read_file, verify_file
from frugal_rl.run.disk import write_whole
from frugal_rl.run.manifest import Manifest, damaged, read_manifest
from frugal_rl.run.values import Blobs, as_bytes, from_json, to_json
from frugal_rl.untrusted.limits import lack_of_room
from frugal_rl.untrusted.printing import shown

BLOCK_BYTES = 16384
"""A chunk of a region of the store, so that chunks keep their blocks wherever they move."""
DIGEST_BYTES = 16
NAME = "{:08d}.segment"
NAMED = re.compile(r"\d{8}\.segment")
REWRITTEN_FROM = 2.0
"""All is written anew once the files hold so many times what is listed."""
SLACK_BYTES = 64 << 20


@dataclass(frozen=True)
class Place:
    """Where a block lies: in the blocks of a segment, from a byte on."""

    segment: int
    at: int


@dataclass(frozen=True)
class Saved:
    """A segment that was written."""

    number: int
    new_bytes: int
    """Bytes of blocks that no segment before had."""


@dataclass
class Listing:
    """The blocks of all arrays of a state, in order."""

    places: list[Place] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each array, by its place in the state."""
    runs: list[np.ndarray] = field(default_factory=list)
    """Bytes that are new, in the order of their places."""
    new_bytes: int = 0

    def content(self, values: Any) -> dict[str, Any]:
        """What the segment's file holds."""
        digests = np.frombuffer(b"".join(self.digests), np.uint8)
        return {
            "values": values,
            "sizes": self.sizes,
            "segments": np.array([p.segment for p in self.places], np.uint32),
            "at": np.array([p.at for p in self.places], np.uint64),
            "digests": digests.reshape(-1, DIGEST_BYTES),
            "blocks": self.runs,
        }


class Segments:
    """The segments in a folder.

    >>> import tempfile
    >>> segments = Segments(tempfile.mkdtemp())
    >>> rows = np.zeros((100, 16384), np.uint8)
    >>> rows[:, 0] = np.arange(100)
    >>> segments.save({"rows": rows}).new_bytes
    1638400
    >>> rows[7] = 1
    >>> segments.save({"rows": rows}).new_bytes
    16384
    >>> bool((segments.load()["rows"] == rows).all())
    True
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def numbers(self) -> list[int]:
        """The segments that are there, oldest first."""
        files = self.folder.glob("*.segment")
        return sorted(int(f.stem) for f in files if NAMED.fullmatch(f.name))

    def path(self, number: int) -> Path:
        """The file of a segment."""
        return self.folder / NAME.format(number)

    def save(self, state: Mapping[str, Any]) -> Saved:
        """Append a segment that lists the whole state and holds what is new in it.

        Raises:
            DiskError: it cannot be written; those before are as they were.
        """
        there = self.numbers()
        number = there[-1] + 1 if there else 1
        blobs: Blobs = {}
        values = to_json(dict(state), blobs, "state")
        listing = _listed(blobs, self._known(there), number)
        try:
            write_whole(self.path(number), pieces_of(listing.content(values)), verify_file)
        except OSError as error:
            raise DiskError(
                f"Segment {number} cannot be written to {self.folder} ({error.strerror or error})."
                f" The {len(there)} before it are as they were. Free space, and save again."
            ) from error
        return Saved(number, listing.new_bytes)

    def _known(self, there: list[int]) -> dict[bytes, Place]:
        """Blocks that need not be written: those that the newest segment lists, if it is sound."""
        if not there:
            return {}
        try:
            index = self._index(there[-1])
        except CheckpointError:
            return {}
        places = _places(index)
        listed = len(places) * BLOCK_BYTES
        held = sum(self._file_bytes(n) for n in {p.segment for p in places})
        if held > REWRITTEN_FROM * listed + SLACK_BYTES:
            return {}
        return dict(zip(_digests(index), places, strict=True))

    def _file_bytes(self, number: int) -> int:
        path = self.path(number)
        return path.stat().st_size if path.exists() else 0

    def load(self, number: int | None = None) -> dict[str, Any]:
        """The state that a segment lists; the newest one's by default.

        Raises:
            CheckpointError: there is none, or it is damaged, or one that it refers to.
        """
        there = self.numbers()
        if not there:
            raise CheckpointError(f"There is no segment in {shown(self.folder)}.")
        number = there[-1] if number is None else number
        index = self._index(number)
        with ExitStack() as files:
            return self._state(index, number, files)

    def _state(self, index: Mapping[str, Any], number: int, files: ExitStack) -> dict[str, Any]:
        blocks = zip(_places(index), _digests(index), strict=True)
        opened: dict[int, tuple[BufferedReader, int]] = {}

        def fetch(name: str) -> np.ndarray:
            raw = np.empty(int(index["sizes"][name]), np.uint8)
            for begin in range(0, len(raw), BLOCK_BYTES):
                place, digest = next(blocks)
                if place.segment not in opened:
                    opened[place.segment] = self._opened(place.segment, number, files)
                self._read(raw[begin : begin + BLOCK_BYTES], opened[place.segment], place, digest)
            return raw

        try:
            state = from_json(index["values"], fetch)
        except (DataError, StopIteration, LookupError, TypeError, ValueError) as error:
            if isinstance(error, CheckpointError):
                raise
            raise damaged(self.path(number), error) from error
        if not isinstance(state, dict):
            raise damaged(self.path(number), "it holds no values by name.")
        return state

    def _opened(self, segment: int, wanted: int, files: ExitStack) -> tuple[BufferedReader, int]:
        """A segment's file, and where its blocks begin."""
        path = self.path(segment)
        if not path.is_file():
            raise CheckpointError(
                f"{shown(self.path(wanted))} refers to {path.name}, which is not there: copy the "
                "whole folder. Or load an older segment of the same folder."
            )
        first = read_manifest(path).entries.get("content.blocks.0")
        return files.enter_context(path.open("rb")), first.at if first else 0

    def _read(
        self, out: np.ndarray, opened: tuple[BufferedReader, int], place: Place, digest: bytes
    ) -> None:
        file, begin = opened
        try:
            file.seek(begin + place.at)
            same = file.readinto(out.data) == len(out) and _digest(out) == digest
        except (OSError, OverflowError) as error:  # a place that no file reaches
            raise damaged(Path(file.name), error) from error
        if not same:
            raise damaged(Path(file.name), f"a block at byte {begin + place.at:,} is another one")

    def _index(self, number: int) -> dict[str, Any]:
        """All of a segment but its blocks."""
        manifest = read_manifest(self.path(number))
        index = read_file(_without_blocks(manifest))
        try:
            _check_index(index)
        except DataError as error:
            raise damaged(manifest.path, error) from error
        return index

    def verify(self, number: int) -> None:
        """Compare every block that a segment lists, without holding more than one of them.

        Raises:
            CheckpointError: it is damaged, or one that it refers to.
        """
        index, block = self._index(number), np.empty(BLOCK_BYTES, np.uint8)
        lengths = [n for size in index["sizes"].values() for n in _lengths(size)]
        opened: dict[int, tuple[BufferedReader, int]] = {}
        with ExitStack() as files:
            for place, digest, n in zip(_places(index), _digests(index), lengths, strict=True):
                if place.segment not in opened:
                    opened[place.segment] = self._opened(place.segment, number, files)
                self._read(block[:n], opened[place.segment], place, digest)

    def keep(self, numbers: Collection[int], all_to: int = 0) -> None:
        """Remove every segment that none of these is or refers to, and torn parts.

        A damaged one may refer to any that is older.

        Args:
            numbers: of segments that are needed.
            all_to: all up to this number are needed, too.
        """
        held = {n for n in numbers if n in self.numbers()}
        for number in tuple(held):
            try:
                held |= {int(s) for s in np.unique(self._index(number)["segments"])}
            except CheckpointError:
                all_to = max(all_to, number)
        for number in {n for n in self.numbers() if n > all_to} - held:
            self.path(number).unlink(missing_ok=True)
        for part in self.folder.glob(".*.segment.*.part"):
            part.unlink(missing_ok=True)


def _listed(blobs: Blobs, known: dict[bytes, Place], number: int) -> Listing:
    """All blocks of all arrays; what is not known becomes part of segment `number`."""
    listing = Listing()
    for name, blob in blobs.items():
        raw = as_bytes(blob)
        listing.sizes[name] = raw.nbytes
        begun = None
        for begin, digest in _blocks(raw):
            if digest in known:
                _end_run(listing, raw, begun, begin)
                begun = None
            else:
                begun = begin if begun is None else begun
                known[digest] = Place(number, listing.new_bytes)
                listing.new_bytes += min(BLOCK_BYTES, raw.nbytes - begin)
            listing.places.append(known[digest])
            listing.digests.append(digest)
        _end_run(listing, raw, begun, raw.nbytes)
    return listing


def _end_run(listing: Listing, raw: np.ndarray, begun: int | None, end: int) -> None:
    if begun is not None:
        listing.runs.append(raw[begun:end])


def _blocks(raw: np.ndarray) -> Iterator[tuple[int, bytes]]:
    for begin in range(0, raw.nbytes, BLOCK_BYTES):
        yield begin, _digest(raw[begin : begin + BLOCK_BYTES])


def _digest(block: np.ndarray) -> bytes:
    return blake2b(block.data, digest_size=DIGEST_BYTES).digest()


def _without_blocks(manifest: Manifest) -> Manifest:
    values = manifest.values
    if not isinstance(values, dict) or values.keys() != KEYS:
        raise damaged(manifest.path, "it is no segment")
    return replace(manifest, values={k: v for k, v in values.items() if k != "blocks"})


KEYS = Listing().content(None).keys()
"""What a segment's file holds."""
FORMS = {"segments": (np.uint32, 1), "at": (np.uint64, 1), "digests": (np.uint8, 2)}
"""Type and number of axes of a listing's arrays."""


def _check_index(index: Mapping[str, Any]) -> None:
    """Refuse a listing whose parts do not fit each other, or this machine.

    Raises:
        DataError: it has not as many blocks as its arrays need, or needs more than there is.
    """
    for name, (dtype, axes) in FORMS.items():
        held = index[name]
        if not isinstance(held, np.ndarray) or (held.dtype, held.ndim) != (dtype, axes):
            raise DataError(f"its '{name}' are no list of blocks.")
    sizes: list[Any] = list(index["sizes"].values()) if isinstance(index["sizes"], dict) else [None]
    if any(type(size) is not int or size < 0 for size in sizes):
        raise DataError("the sizes of its arrays are no numbers.")
    counts = {len(index[name]) for name in FORMS} | {sum(-(-s // BLOCK_BYTES) for s in sizes)}
    if len(counts) > 1 or index["digests"].shape[1] != DIGEST_BYTES:
        raise DataError("it lists another number of blocks than its arrays have.")
    if lack := lack_of_room(sum(sizes)):
        raise DataError(lack)


def _lengths(size: int) -> list[int]:
    """Bytes of an array's blocks."""
    return [min(BLOCK_BYTES, size - begin) for begin in range(0, size, BLOCK_BYTES)]


def _places(index: Mapping[str, Any]) -> list[Place]:
    return [Place(int(s), int(at)) for s, at in zip(index["segments"], index["at"], strict=True)]


def _digests(index: Mapping[str, Any]) -> list[bytes]:
    return [row.tobytes() for row in index["digests"]]
