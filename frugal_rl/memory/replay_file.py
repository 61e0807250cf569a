"""What the segments of a replay take on disk, counted array by array as they are saved.

A segment lists every array of the replay in blocks, and holds each distinct block once
(`replay_saves`). Sizes of arrays are arithmetic; how much of them is one block again and again
(what is not filled yet) too. What depends on the data stands beside that: differences of large
rows, and last observations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from frugal_rl.memory.replay import CHAIN_FROM_BYTES, KEY_EVERY, rows_of
from frugal_rl.memory.replay_data import Data, RowSeen
from frugal_rl.memory.replay_saves import STILL, Saved, bytes_left, moments_of
from frugal_rl.store.layout import action_layout
from frugal_rl.store.region import CHUNK_BYTES

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

MOST_SAVES = 1000
"""Saves that are gone through one by one; a run of more counts as one that saves less often."""
OFTEN_EQUAL_BYTES = 4
"""Rows below this size often begin an episode as the last one ended: others than those of large
rows have one beside them, so that the lists of which have are no more the same."""


@dataclass(frozen=True)
class Filled:
    """A replay as it is when it is saved: its ring, and how far that is filled."""

    steps: int
    """Of each environment that the ring holds."""
    num_envs: int
    held: int
    """Steps of each environment that it holds."""
    made: int
    """Steps that each environment has made."""
    data: Data

    @property
    def turned(self) -> bool:
        """Whether it has overwritten some."""
        return self.made > self.steps

    @property
    def ends(self) -> int:
        """Episodes that end among those, as it is expected: whole ones where all end at once."""
        if self.data.together:
            made, gone = (
                int(self.data.ends * n + 1e-6) for n in (self.made, self.made - self.held)
            )
            return (made - gone) * self.num_envs
        return round(self.data.ends * self.held * self.num_envs)

    def table(self, name: str, each: int) -> Saved:
        """An array with `each` bytes of every transition that there is room for."""
        row = self.num_envs * each
        return Saved(name, self.steps * row, self.held * row, step=row)

    def same(self, what: str) -> str:
        """The name under which arrays hold the same; rings of other sizes turn elsewhere."""
        return f"{what} of {self.steps}" if self.turned else what

    def flags(self, name: str, share: float = 1.0) -> Saved:
        """Which steps end an episode, or a share of those; only where it is all is it the same."""
        n, size = self.num_envs, self.steps * self.num_envs
        marked = round(share * self.ends)
        shared = self.same("ends") if marked == self.ends else ""
        if self.turned:
            return Saved(name, size, size if marked else 0, shared, step=n)
        together = self.data.together
        between = 1 / self.data.ends if marked else 0.0  # steps, of one environment or of all
        last = math.ceil(self.ends / n * between) * n if together else self.held * n - int(between)
        filled = max(0, min(last, self.held * n)) if marked else 0
        return Saved(name, size, filled, shared, step=STILL)

    def grown(self, name: str, nbytes: int, shared: str = "", found: bool = False) -> Saved:
        """What grows with every step, to so many bytes; all of it moves once the ring turns."""
        each = 0.0 if self.turned else nbytes / max(1, self.held)
        return Saved(name, nbytes, nbytes, shared, found, each)


def file_bytes(run: RunConfig, size: int, data: Data) -> int:
    """Segments that stay when a run has ended whose replay holds `size` transitions."""
    n, total, each = run.algo.num_envs, _steps_run(run), _iteration(run)
    every = run.checkpoint_every_steps
    kept = moments_of(total, each, every * max(1, -(-total // (max(1, every) * MOST_SAVES))))
    tried = run.evaluation.every_steps
    best = sorted({*moments_of(total, each, tried)}) if tried else []  # each better than before
    moments = sorted([(at, False) for at in best] + [(at, True) for at in kept])
    last = [i for i, (_, by_steps) in enumerate(moments) if by_steps][-run.keep_checkpoints :]
    last += [i for i, (_, by_steps) in enumerate(moments) if not by_steps][-1:]
    steps = [at // n for at, _ in moments]
    return bytes_left(steps, lambda at: saved_arrays(run, size, data, at), last)


def _iteration(run: RunConfig) -> int:
    """Steps of all environments between two lines of metrics: whole rounds between two updates."""
    algo: Any = run.algo
    return int(max(1, algo.n_steps // algo.train_freq) * algo.train_freq * algo.num_envs)


def _steps_run(run: RunConfig) -> int:
    """Steps of all environments: whole iterations."""
    each = _iteration(run)
    return -(-run.algo.total_steps // each) * each


def saved_arrays(run: RunConfig, size: int, data: Data, at: int) -> list[Saved]:
    """All arrays of the replay's state when each environment has made `at` steps."""
    n = run.algo.num_envs
    steps = max(size // n, 1)
    held = min(steps, at)
    ring = Filled(steps, n, held, at, data)
    return list(_arrays(run, ring))


def _arrays(run: RunConfig, ring: Filled) -> Iterator[Saved]:
    """All arrays of the replay's state."""
    at = "state.replay.0."
    count, dtype = action_layout(run.env.action_space())
    yield ring.table(f"{at}_actions", count * int(dtype.itemsize))
    yield ring.table(f"{at}rewards", 4)
    yield ring.flags(f"{at}_dones")
    yield ring.flags(f"{at}_timeouts", ring.data.limits)
    if getattr(run.algo, "her", False):
        yield ring.table(f"{at}ep_start", 4)
        yield ring.table(f"{at}ep_length", 4)
        yield Saved(f"{at}_current_ep_start", 8 * ring.num_envs, 8 * ring.num_envs)
    if getattr(run.algo, "prioritised", False):
        yield ring.table(f"{at}priorities", 8)
    for name, nbytes, frames in rows_of(run):
        yield from _column(f"{at}columns.{name}.column.", nbytes, frames, ring, name)


def _column(at: str, nbytes: int, frames: int, ring: Filled, name: str) -> Iterator[Saved]:
    """An entry of the observation, `frames` of so many bytes each."""
    older = frames - 1  # the oldest observation's older frames are held as well
    steps = ring.steps + older
    rows = replace(ring, steps=steps, held=min(steps, ring.made))
    kept = _chained if nbytes >= CHAIN_FROM_BYTES else _dense
    yield from kept(f"{at}rows.", nbytes, rows, ring.data.rows.get(name))
    yield ring.table(f"{at}codes", 1) if frames > 1 else Saved(f"{at}codes", 0, 0)
    yield Saved(f"{at}newest_codes", ring.num_envs, ring.num_envs, "codes", step=STILL)
    stack = ring.num_envs * nbytes * frames
    yield Saved(f"{at}before", stack, stack)
    for table in ("whole_now", "whole_next"):
        yield Saved(f"{at}{table}.keys", 0, 0)
        yield Saved(f"{at}{table}.values", 0, 0)


def _room(at: str, filled: int, held: int, found: bool = False) -> Iterator[Saved]:
    """A region of addresses: its chunks that hold something, whole, and where they lie."""
    chunks = -(-filled // CHUNK_BYTES)
    yield Saved(f"{at}.chunks", 8 * chunks, 8 * chunks, "chunks", step=STILL)
    each = filled / max(1, held)
    yield Saved(f"{at}.bytes", chunks * CHUNK_BYTES, filled, found=found, step=each)


def _beside(at: str, nbytes: int, ring: Filled, seen: RowSeen | None) -> Iterator[Saved]:
    """What some steps have besides: the last observation of each episode, or of a share of them."""
    ends = round(ring.ends * seen.beside) if seen else ring.ends
    of_all = ends == ring.ends if seen else nbytes >= OFTEN_EQUAL_BYTES
    shared = ring.same("keys") if of_all else ""
    yield ring.grown(f"{at}.keys", 8 * ends, shared, found=True)
    yield ring.grown(f"{at}.values", nbytes * ends, found=True)


def _dense(at: str, nbytes: int, ring: Filled, seen: RowSeen | None) -> Iterator[Saved]:
    """Rows as they are."""
    yield ring.flags(f"{at}has_sides", seen.beside if seen else 1.0)
    yield from _room(f"{at}room", ring.held * ring.num_envs * nbytes, ring.held)
    yield from _beside(f"{at}sides", nbytes, ring, seen)


def _chained(at: str, nbytes: int, ring: Filled, seen: RowSeen | None) -> Iterator[Saved]:
    """Rows as chains of differences: tables by arithmetic, what differs as it was seen."""
    n, words = ring.num_envs, -(-nbytes // 8)
    room, held = -(-ring.steps // KEY_EVERY) + 1, -(-ring.held // KEY_EVERY)
    blocks = replace(ring, steps=room, held=held, made=-(-ring.made // KEY_EVERY))

    def table(name: str, each: int) -> Saved:
        whole = blocks.table(f"{at}{name}", each)
        return replace(whole, step=whole.step / KEY_EVERY)

    yield Saved(f"{at}bases", 8 * blocks.steps, 8 * blocks.held, step=8 / KEY_EVERY)
    yield table("links", 4)
    yield table("starts", 4 * KEY_EVERY)
    yield table("anchor_of", 4)
    yield Saved(f"{at}last", n * words * 8, n * words * 8)
    yield Saved(f"{at}_anchor", 4 * n, 4 * n, step=STILL)
    yield Saved(f"{at}_anchor_age", 4 * n, 4 * n)
    yield Saved(f"{at}_users", 4 * n * blocks.steps, 4 * n)
    freed = _freed(ring)
    held = ring.made - freed
    records = _record_bytes(words * 8, held, ring, seen)
    begun = records * freed // held % CHUNK_BYTES  # the oldest one's place in its chunk
    yield from _room(f"{at}pool", begun + records, held, True)
    anchors = n * _anchors(blocks.held, ring.data, seen)
    kept = _room(f"{at}anchor_room", anchors * words * 8, ring.held, True)
    yield from kept if anchors > n else (replace(array, step=STILL) for array in kept)
    yield from _beside(f"{at}beside", 8, ring, seen)


def _freed(ring: Filled) -> int:
    """Steps whose records are held no more: blocks are freed whole, as another one begins."""
    begun = (ring.made - 1) // KEY_EVERY * KEY_EVERY
    return max(0, begun + 1 - ring.steps) // KEY_EVERY * KEY_EVERY


def _record_bytes(row: int, held: int, ring: Filled, seen: RowSeen | None) -> int:
    """What differs in `held` rows of each environment, and in the last ones of episodes."""
    if seen:
        return math.ceil(seen.record_bytes * held * ring.num_envs)
    return math.ceil(ring.data.differs * row * (held * ring.num_envs + ring.ends))


def _anchors(chains: int, data: Data, seen: RowSeen | None) -> int:
    """Whole rows that the chains of an environment share: one now and then."""
    if seen:
        return 1 + round(seen.anchors * (chains - 1))
    return chains if data.differs >= 1 else 1
