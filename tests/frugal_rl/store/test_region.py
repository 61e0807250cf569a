"""Addresses for the worst case, of which only what was written takes memory."""

import errno
import os

import numpy as np
import pytest

from frugal_rl.errors import DataError, MemoryBudgetError
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.store import region as regions
from frugal_rl.store.region import CHUNK_BYTES, Region
from frugal_rl.store.replay_column import ReplayColumn
from frugal_rl.testing.faults import small_disk

PLACES = [RolloutLocation.ram, RolloutLocation.memmap]


@pytest.fixture(params=PLACES, ids=[place.value for place in PLACES])
def region(request, tmp_path):
    return Region(10 * CHUNK_BYTES, request.param, str(tmp_path))


@pytest.mark.parametrize(
    ("capacity", "chunks"),
    [(0, 1), (1, 1), (CHUNK_BYTES, 1), (CHUNK_BYTES + 1, 2), (5 * CHUNK_BYTES - 1, 5)],
)
def test_a_region_is_a_whole_number_of_chunks(capacity, chunks):
    region = Region(capacity)
    assert len(region.touched) == chunks
    assert region.view(np.uint8).nbytes == chunks * CHUNK_BYTES


def test_a_new_region_is_zero_and_takes_nothing(region):
    assert region.nbytes == 0
    assert not region.view(np.uint64).any()


@pytest.mark.parametrize(
    ("start", "end", "chunks"),
    [
        (0, 1, [0]),
        (0, CHUNK_BYTES, [0]),
        (CHUNK_BYTES - 1, CHUNK_BYTES + 1, [0, 1]),
        (CHUNK_BYTES, 2 * CHUNK_BYTES, [1]),
        (3 * CHUNK_BYTES + 5, 6 * CHUNK_BYTES + 1, [3, 4, 5, 6]),
    ],
)
def test_every_chunk_that_a_write_reaches_counts(region, start, end, chunks):
    region.touch(start, end)
    assert np.flatnonzero(region.touched).tolist() == chunks
    assert region.nbytes == len(chunks) * CHUNK_BYTES


@pytest.mark.parametrize(
    ("start", "end", "left"),
    [
        (0, CHUNK_BYTES - 1, list(range(10))),
        (0, CHUNK_BYTES, list(range(1, 10))),
        (CHUNK_BYTES // 2, 3 * CHUNK_BYTES + 7, list(range(3, 10))),
        (2 * CHUNK_BYTES, 4 * CHUNK_BYTES, [0, 1, *range(4, 10)]),
        (5 * CHUNK_BYTES, 5 * CHUNK_BYTES, list(range(10))),
    ],
)
def test_a_release_gives_back_up_to_the_chunk_of_its_end(region, start, end, left):
    region.touch(0, 10 * CHUNK_BYTES)
    region.release(start, end)
    assert np.flatnonzero(region.touched).tolist() == left


def test_what_was_released_is_zero_again_and_the_rest_is_not(region):
    bytes_of = region.view(np.uint8)
    bytes_of[:] = 7
    region.touch(0, 10 * CHUNK_BYTES)
    region.release(CHUNK_BYTES, 3 * CHUNK_BYTES)
    assert not bytes_of[CHUNK_BYTES : 3 * CHUNK_BYTES].any()
    assert (bytes_of[:CHUNK_BYTES] == 7).all()
    assert (bytes_of[3 * CHUNK_BYTES :] == 7).all()


def test_a_state_holds_what_was_written_and_loads_into_a_region_that_held_something_else(region):
    region.view(np.uint8)[2 * CHUNK_BYTES : 3 * CHUNK_BYTES] = 5
    region.touch(2 * CHUNK_BYTES, 3 * CHUNK_BYTES)
    state = region.state()
    assert (state["chunks"].tolist(), state["bytes"].shape) == ([2], (1, CHUNK_BYTES))

    other = Region(10 * CHUNK_BYTES)
    other.view(np.uint8)[:] = 9
    other.touch(0, 10 * CHUNK_BYTES)
    other.load(state)

    assert np.flatnonzero(other.touched).tolist() == [2]
    assert (other.view(np.uint8) == region.view(np.uint8)).all()


@pytest.mark.parametrize("chunk", [-1, 10, 1 << 40])
def test_a_chunk_outside_is_refused(region, chunk):
    state = {"chunks": np.array([chunk]), "bytes": np.zeros((1, CHUNK_BYTES), np.uint8)}
    with pytest.raises(DataError, match="outside its region"):
        region.load(state)


def test_a_region_in_a_file_leaves_no_file_behind(tmp_path):
    region = Region(CHUNK_BYTES, RolloutLocation.memmap, str(tmp_path))
    region.view(np.uint8)[:] = 1
    assert list(tmp_path.iterdir()) == []
    assert region.in_file


def test_addresses_that_the_system_does_not_give_are_refused_in_words(monkeypatch):
    def refuses(*_, **__):
        raise OSError("Cannot allocate memory")

    monkeypatch.setattr(regions.mmap, "mmap", refuses)
    with pytest.raises(MemoryBudgetError, match=r"reserves no 2\.0 GiB .* mapped file"):
        Region(2 << 30)


def test_a_file_system_that_takes_no_such_file_is_named(monkeypatch, tmp_path):
    class Small:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

        def truncate(self, size):
            raise OSError("File too large")

    monkeypatch.setattr(regions.tempfile, "TemporaryFile", lambda dir: Small())
    with pytest.raises(MemoryBudgetError, match=r"takes no file of up to 2\.0 GiB") as refused:
        Region(2 << 30, RolloutLocation.memmap, str(tmp_path))
    assert str(tmp_path) in str(refused.value)
    assert "GiB are free" in str(refused.value)


@pytest.mark.parametrize("row_bytes", [64, 4096])
def test_a_disk_that_fills_up_below_a_mapped_replay_is_told_and_ends_no_process(
    row_bytes, tmp_path
):
    try:
        with small_disk(tmp_path / "small", 1024) as small:
            status = forked(lambda: filled_up(row_bytes, small.folder))
    except PermissionError as error:
        pytest.skip(str(error))
    assert status == TOLD, "-7 is SIGBUS"


TOLD = 3


def filled_up(row_bytes, folder):
    """Write rows that differ in all into a mapped file until there is no room."""
    place = RolloutLocation.memmap
    steps = (2 << 20) // row_bytes
    column = ReplayColumn((row_bytes,), np.uint8, steps, 2, location=place, folder=str(folder))
    rows = np.random.default_rng(0).integers(256, size=(4, 2, row_bytes), dtype=np.uint8)
    try:
        for step in range(steps):
            column.add(rows[step % 4], rows[(step + 1 + (step % 7 == 0)) % 4])
    except OSError as error:
        return TOLD if error.errno == errno.ENOSPC else 1
    return 0


def forked(work):
    """What a fork of this process returns, or the number of the signal that ended it."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            status = work()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
