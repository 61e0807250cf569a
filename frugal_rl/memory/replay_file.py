"""What the segments of a replay take on disk, counted array by array as they are saved.

A segment lists every array of the replay in blocks, and holds each distinct block once. Sizes of
arrays are arithmetic; how much of them is one block again and again (what is not filled yet) too.
What depends on the data stands beside that: differences of large rows, and last observations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from frugal_rl.memory.replay import CHAIN_FROM_BYTES, CHAIN_SHARE, KEY_EVERY, rows_of
from frugal_rl.store.layout import action_layout
from frugal_rl.store.region import CHUNK_BYTES

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

BLOCK_BYTES = CHUNK_BYTES
"""Of a segment: `frugal_rl.run.segments`."""
LISTED_BYTES = 4 + 8 + 16
"""A block's segment, its place there and what it hashes to."""
HEAD_BYTES = 300
"""A file's head, and what its manifest says of the replay and of the listing itself."""
ENTRY_BYTES = 148
"""What the manifest says of an array beside its name, which it says twice."""
RUN_BYTES = 188
"""What it says of a run of new blocks: one for each array that has some."""


@dataclass(frozen=True)
class Saved:
    """An array of a replay's state: its bytes, and those up to which it is filled."""

    name: str
    nbytes: int
    filled: int
    shared: str = ""
    """Arrays of one name here and of one size hold the same."""
    found: bool = False
    """Whether the bytes depend on the data."""

    def blocks(self) -> Iterator[tuple[tuple[str, int], int]]:
        """What each block is named by, and its bytes; those of zeros of one size are one."""
        for begin in range(0, self.nbytes, BLOCK_BYTES):
            size = min(BLOCK_BYTES, self.nbytes - begin)
            filled = self.shared or self.name
            yield (filled, begin) if begin < self.filled else (ZEROS, size), size


ZEROS = "zeros"


@dataclass(frozen=True)
class FilePlan:
    """What the segments of a whole run take."""

    exact: int
    """Blocks of arrays whose sizes are known."""
    listing: int
    """Manifests, and the lists of blocks."""
    found: int
    """What depends on the data, as it is expected."""
    again: int
    """What later saves write once more: blocks that were not full, and lists of all blocks."""

    @property
    def nbytes(self) -> int:
        """All of it."""
        return self.exact + self.listing + self.found + self.again


@dataclass(frozen=True)
class Filled:
    """A replay as it is when a run ends: its ring, and how far that is filled."""

    steps: int
    """Of each environment that the ring holds."""
    num_envs: int
    held: int
    """Steps of each environment that it holds at the end."""
    ends: int
    """Episodes that end among those, as it is expected."""

    def table(self, name: str, each: int) -> Saved:
        """An array with `each` bytes of every transition that there is room for."""
        row = self.num_envs * each
        return Saved(name, self.steps * row, self.held * row)

    def flags(self, name: str) -> Saved:
        """Where episodes end; a stack's rows are a few more, so that theirs are others."""
        size = self.steps * self.num_envs
        return Saved(name, size, self.held * self.num_envs if self.ends else 0, f"ends of {size}")


def file_plan(run: RunConfig, size: int, ends: float) -> FilePlan:
    """The segments of a run whose replay holds `size` transitions; a share of steps are `ends`."""
    total = _steps_run(run)
    arrays = saved_arrays(run, size, ends)
    new = _new_bytes(arrays)
    once = _listing(arrays, sum(1 for size in new if size))
    known, found = (
        sum(size for array, size in zip(arrays, new, strict=True) if array.found is which)
        for which in (False, True)
    )
    every = run.checkpoint_every_steps
    begun = sum(min(n, BLOCK_BYTES) for n, a in zip(new, arrays, strict=True) if a.filled)
    turned = int((known + found) * min(1.0, every / size)) if total > size else 0
    again = (_segments(run, size, total) - 1) * (once + max(begun, turned))
    return FilePlan(known, once, found, again)


def saved_arrays(run: RunConfig, size: int, ends: float) -> list[Saved]:
    """All arrays of the replay's state when the run has ended."""
    n = run.algo.num_envs
    steps = max(size // n, 1)
    held = min(steps, -(-_steps_run(run) // n))
    return list(_arrays(run, Filled(steps, n, held, round(ends * held * n))))


def _steps_run(run: RunConfig) -> int:
    """Steps of all environments: whole iterations of whole rounds between two updates."""
    algo: Any = run.algo
    each = max(1, algo.n_steps // algo.train_freq) * algo.train_freq * algo.num_envs
    return int(-(-algo.total_steps // each) * each)


def _segments(run: RunConfig, size: int, total: int) -> int:
    """Segments that stay: each brings rows that the ring still holds, or a checkpoint names it.

    The first one stays for what never changes, and one more for what the oldest named one shares.
    """
    every = run.checkpoint_every_steps
    if not every:
        return 1
    count = -(-total // every)
    return min(count, max(run.keep_checkpoints, -(-size // every)) + 2)


def _new_bytes(arrays: Iterable[Saved]) -> list[int]:
    """Of each array, the bytes of blocks that none before it has."""
    known: set[tuple[str, int]] = set()
    found = []
    for array in arrays:
        new = [(what, size) for what, size in array.blocks() if what not in known]
        known.update(what for what, _ in new)
        found.append(sum(dict(new).values()))
    return found


def _listing(arrays: Iterable[Saved], runs: int) -> int:
    """A segment's head, manifest and list of blocks, where so many arrays bring new blocks."""
    blocks = sum(-(-array.nbytes // BLOCK_BYTES) for array in arrays)
    names = sum(ENTRY_BYTES + 2 * len(array.name) for array in arrays)
    return HEAD_BYTES + names + runs * RUN_BYTES + blocks * LISTED_BYTES


def _arrays(run: RunConfig, ring: Filled) -> Iterator[Saved]:
    """All arrays of the replay's state."""
    at = "state.replay.0."
    count, dtype = action_layout(run.env.action_space())
    yield ring.table(f"{at}_actions", count * int(dtype.itemsize))
    yield ring.table(f"{at}rewards", 4)
    yield ring.flags(f"{at}_dones")
    yield Saved(f"{at}_timeouts", ring.steps * ring.num_envs, 0)
    if getattr(run.algo, "her", False):
        yield ring.table(f"{at}ep_start", 4)
        yield ring.table(f"{at}ep_length", 4)
        yield Saved(f"{at}_current_ep_start", 8 * ring.num_envs, 8 * ring.num_envs)
    if getattr(run.algo, "prioritised", False):
        yield ring.table(f"{at}priorities", 8)
    for name, nbytes, frames in rows_of(run):
        yield from _column(f"{at}columns.{name}.column.", nbytes, frames, ring)


def _column(at: str, nbytes: int, frames: int, ring: Filled) -> Iterator[Saved]:
    """An entry of the observation, `frames` of so many bytes each."""
    older = frames - 1  # the oldest observation's older frames are held as well
    steps = ring.steps + older
    rows = Filled(steps, ring.num_envs, min(steps, ring.held + older), ring.ends)
    chained = nbytes >= CHAIN_FROM_BYTES
    yield from (_chained if chained else _dense)(f"{at}rows.", nbytes, rows)
    yield ring.table(f"{at}codes", 1) if frames > 1 else Saved(f"{at}codes", 0, 0)
    yield Saved(f"{at}newest_codes", ring.num_envs, ring.num_envs, "codes")
    stack = ring.num_envs * nbytes * frames
    yield Saved(f"{at}before", stack, stack)
    for table in ("whole_now", "whole_next"):
        yield Saved(f"{at}{table}.keys", 0, 0)
        yield Saved(f"{at}{table}.values", 0, 0)


def _room(at: str, filled: int, found: bool = False) -> Iterator[Saved]:
    """A region of addresses: its chunks that hold something, whole, and where they lie."""
    chunks = -(-filled // CHUNK_BYTES)
    yield Saved(f"{at}.chunks", 8 * chunks, 8 * chunks, "chunks")
    yield Saved(f"{at}.bytes", chunks * CHUNK_BYTES, chunks * CHUNK_BYTES, found=found)


def _beside(at: str, nbytes: int, ring: Filled) -> Iterator[Saved]:
    """What some steps have besides: the last observation of each episode."""
    ends, steps = ring.ends, f"keys of {ring.steps}"
    yield Saved(f"{at}.keys", 8 * ends, 8 * ends, steps, found=True)
    yield Saved(f"{at}.values", nbytes * ends, nbytes * ends, found=True)


def _dense(at: str, nbytes: int, ring: Filled) -> Iterator[Saved]:
    """Rows as they are."""
    yield ring.flags(f"{at}has_sides")
    yield from _room(f"{at}room", ring.held * ring.num_envs * nbytes)
    yield from _beside(f"{at}sides", nbytes, ring)


def _chained(at: str, nbytes: int, ring: Filled) -> Iterator[Saved]:
    """Rows as chains of differences: tables by arithmetic, what differs as it is expected."""
    n, words = ring.num_envs, -(-nbytes // 8)
    blocks = Filled(-(-ring.steps // KEY_EVERY) + 1, n, -(-ring.held // KEY_EVERY), ring.ends)
    yield Saved(f"{at}bases", 8 * blocks.steps, 8 * blocks.held)
    yield blocks.table(f"{at}links", 4)
    yield blocks.table(f"{at}starts", 4 * KEY_EVERY)
    yield blocks.table(f"{at}anchor_of", 4)
    yield Saved(f"{at}last", n * words * 8, n * words * 8)
    yield Saved(f"{at}_anchor", 4 * n, 4 * n)
    yield Saved(f"{at}_anchor_age", 4 * n, 4 * n)
    yield blocks.table(f"{at}_users", 4)
    rows = n * words * 8
    yield from _room(f"{at}pool", math.ceil(CHAIN_SHARE * ring.held * rows), found=True)
    yield from _room(f"{at}anchor_room", rows, found=True)
    yield from _beside(f"{at}beside", 8, ring)
