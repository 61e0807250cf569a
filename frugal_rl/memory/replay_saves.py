"""What a run's saves of its replay leave on disk, save by save, block by block.

A segment holds the blocks that changed since the one before. It stays as long as a checkpoint that
is kept lists one of its blocks, so which segments stay follows from who wrote each block last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from frugal_rl.store.region import CHUNK_BYTES

BLOCK_BYTES = CHUNK_BYTES
"""Of a segment: `frugal_rl.run.segments`."""
LISTED_BYTES = 4 + 8 + 16
"""A block's segment, its place there and what it hashes to."""
HEAD_BYTES = 630
"""A file's head, and what its manifest says of the replay and of the listing itself."""
ENTRY_BYTES = 113
"""What the manifest says of an array beside its name, which it says twice."""
RUN_BYTES = 188
"""What it says of a run of new blocks."""
REWRITTEN_FROM, SLACK_BYTES = 2.0, 64 << 20
"""All is written anew once the files hold so many times what is listed, and this more."""
STILL = -1.0
"""Of an array's step: what it holds does not change."""


@dataclass(frozen=True)
class Saved:
    """An array of a replay's state: its bytes, and those up to which it is filled."""

    name: str
    nbytes: int
    filled: int
    shared: str = ""
    """Arrays of one name here hold the same, up to where the shorter one ends."""
    found: bool = False
    """Whether the bytes depend on the data."""
    step: float = 0.0
    """Bytes that a step of all environments fills, in a ring of `filled` once that has turned; 0
    where every save finds all of it changed, `STILL` where only growing changes it."""

    def changed(self, before: int, now: int, was_filled: int) -> list[tuple[int, int]]:
        """Blocks [first, end) that steps `before` to `now` wrote."""
        if self.step == STILL and was_filled < self.filled:
            return [_blocks(was_filled, self.filled)]
        if before == now or self.step == STILL:
            return []
        begin = before * self.step % max(1, self.filled)
        end = begin + (now - before) * self.step
        if self.step == 0 or (now - before) * self.step >= self.filled:
            return [_blocks(0, self.filled)]
        if end <= self.filled:
            return [_blocks(begin, end)]
        return [_blocks(begin, self.filled), _blocks(0, end - self.filled)]


def _blocks(begin: float, end: float) -> tuple[int, int]:
    first = int(begin) // BLOCK_BYTES
    return first, max(first, -(-int(np.ceil(end)) // BLOCK_BYTES))


def _joined(spans: Sequence[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """The same blocks as runs that do not touch, in order, `count` blocks at most."""
    runs: list[tuple[int, int]] = []
    for first, end in sorted((first, min(end, count)) for first, end in spans):
        if first < end and runs and first <= runs[-1][1]:
            runs[-1] = runs[-1][0], max(runs[-1][1], end)
        elif first < end:
            runs.append((first, end))
    return runs


@dataclass
class Folder:
    """The segments of a run, and of each block that is listed the segment that holds it."""

    written: list[int] = field(default_factory=list)
    """Bytes of each."""
    owners: dict[str, np.ndarray] = field(default_factory=dict)
    filled: dict[str, int] = field(default_factory=dict)
    """Up to where each array was filled when it was saved last."""
    zeros: dict[int, int] = field(default_factory=dict)
    """By their size, the segment that holds a block of zeros."""

    def save(self, arrays: Sequence[Saved], before: int, now: int) -> None:
        """Append a segment of the arrays as they are, `before` of whose steps were saved."""
        if self._holds_too_much(arrays):
            self.owners, self.zeros, self.filled, before = {}, {}, {}, 0
        number, new, runs = len(self.written), 0, 0
        fresh, longer = set[str](), set[str]()
        for array in arrays:
            name = f"{array.shared} {array.nbytes}" if array.shared else array.name
            if not array.nbytes or (array.shared and name in fresh):
                continue
            fresh.add(name)
            nbytes, written = self._write(array, name, (before, now), number)
            if array.shared and array.shared in longer:
                nbytes, written = min(nbytes, array.nbytes % BLOCK_BYTES), min(written, 1)
            longer.add(array.shared)
            new, runs = new + nbytes, runs + written
        self.owners = {name: kept for name, kept in self.owners.items() if name in fresh}
        self.written.append(new + listing_bytes(arrays, runs))

    def _write(
        self, array: Saved, name: str, steps: tuple[int, int], number: int
    ) -> tuple[int, int]:
        """Bytes and runs of an array's blocks that are new."""
        count = -(-array.nbytes // BLOCK_BYTES)
        kept = self.owners.get(name, np.zeros(0, np.int32))
        owners = kept
        if len(kept) != count:
            owners = np.full(count, number, np.int32)
            owners[: len(kept)] = kept[:count]
        filled = -(-array.filled // BLOCK_BYTES)
        changed = array.changed(*steps, self.filled.get(name, 0))
        runs = _joined([*changed, (len(kept), filled)], count)
        self.filled[name] = array.filled
        for first, end in runs:
            owners[first:end] = number
        tail = count * BLOCK_BYTES - array.nbytes
        nbytes = sum(end - first for first, end in runs) * BLOCK_BYTES
        nbytes -= tail if runs and runs[-1][1] == count else 0
        nbytes += self._zeros(array, owners, filled, number)
        self.owners[name] = owners
        return nbytes, len(runs)

    def _zeros(self, array: Saved, owners: np.ndarray, filled: int, number: int) -> int:
        """Blocks that are not filled are one block of each size, wherever it was first met."""
        nbytes, sizes = 0, {BLOCK_BYTES: slice(filled, array.nbytes // BLOCK_BYTES)}
        if array.nbytes % BLOCK_BYTES and filled < len(owners):
            sizes[array.nbytes % BLOCK_BYTES] = slice(len(owners) - 1, len(owners))
        for size, where in sizes.items():
            if owners[where].size:
                nbytes += 0 if size in self.zeros else size
                owners[where] = self.zeros.setdefault(size, number)
        return nbytes

    def needed(self) -> frozenset[int]:
        """Segments that the newest one lists blocks of, itself among them."""
        listed = np.zeros(len(self.written), np.bool_)
        listed[-1] = True
        for owners in self.owners.values():
            listed[owners] = True
        return frozenset(np.flatnonzero(listed).tolist())

    def _holds_too_much(self, arrays: Iterable[Saved]) -> bool:
        listed = sum(-(-a.nbytes // BLOCK_BYTES) for a in arrays) * BLOCK_BYTES
        most = REWRITTEN_FROM * listed + SLACK_BYTES
        if sum(self.written) <= most:
            return False
        return sum(self.written[n] for n in self.needed()) > most


def listing_bytes(arrays: Iterable[Saved], runs: int) -> int:
    """A segment's head, manifest and list of blocks, where arrays bring `runs` of new blocks."""
    arrays = tuple(arrays)
    blocks = sum(-(-array.nbytes // BLOCK_BYTES) for array in arrays)
    names = sum(ENTRY_BYTES + 2 * len(array.name) for array in arrays)
    return HEAD_BYTES + names + runs * RUN_BYTES + blocks * LISTED_BYTES


def bytes_left(
    moments: Sequence[int], arrays_at: Callable[[int], Sequence[Saved]], kept: Collection[int]
) -> int:
    """Bytes of the segments that stay when a run has ended.

    Args:
        moments: steps of each environment at each save.
        arrays_at: the arrays of the replay at such a moment.
        kept: which of the saves a checkpoint that stays names.
    """
    folder, before, stay = Folder(), 0, frozenset[int]()
    for number, now in enumerate(moments):
        folder.save(arrays_at(now), before, now)
        before = now
        if number in kept:
            stay |= folder.needed()
    return sum(folder.written[n] for n in stay)


def moments_of(total: int, each: int, every: int) -> list[int]:
    """Steps at which a run of iterations of `each` saves: as `every` are crossed, and at its end.

    All steps are those of all environments; `total` is a whole number of iterations.
    """
    crossed = range(every, total + 1, every) if every else range(0)
    return [*sorted({-(-at // each) * each for at in crossed}), total]
