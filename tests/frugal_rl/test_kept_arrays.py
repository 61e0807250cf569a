"""Arrays that are kept between runs come back to the bit, or not at all."""

import os
from types import SimpleNamespace

import numpy as np
import pytest

from frugal_rl import kept_arrays, remembered
from frugal_rl.testing.faults import flip_bit

WORDS = {"of": [1, 2.5, None, "a"]}


def some():
    """Arrays of every kind: by rows and columns, with gaps, without items, without axes."""
    grid = np.arange(24.0).reshape(2, 3, 4)
    yield from (grid, np.asfortranarray(grid[0]), grid[:, ::2], np.zeros((0, 3), np.int32))
    yield from (np.array(7, np.uint16), np.array([True, False]), np.array([np.nan, -0.0]))


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """The file of some arrays that were kept."""
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path)
    kept_arrays.write("found", WORDS, list(some()))
    return tmp_path / "arrays" / "found.arrays"


def same(found):
    """Whether arrays are those of `some`, and lie in memory as they did."""
    pairs = list(zip(found, some(), strict=True))
    by_rows = [(a.flags.c_contiguous, b.flags.c_contiguous) for a, b in pairs if b.flags.forc]
    return all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs
    ) and all(a == b for a, b in by_rows)


def test_what_was_kept_comes_back_whole(kept):
    words, found = kept_arrays.read("found")

    assert words == WORDS
    assert same(found)
    assert os.listdir(kept.parent) == ["found.arrays"]


def test_arrays_are_filled_where_they_are_of_the_same_forms(kept):
    given = [np.ones_like(values) for values in some()]
    assert kept_arrays.read_into("found", given)
    assert same(given)

    for other in (np.ones(2, np.float32), np.ones(3), np.ones(4)[::2]):
        assert not kept_arrays.read_into("found", [*given[:-1], other])
        assert other.all()
    assert not kept_arrays.read_into("found", given[:-1])


def test_nothing_damaged_is_read(kept):
    raw = kept.read_bytes()
    for bit in range(0, 8 * len(raw), 7):
        kept.write_bytes(flip_bit(raw, bit))
        found = kept_arrays.read("found")
        assert found is None or (found[0] == WORDS and same(found[1]))
    for other in (raw[:-1], raw[: len(raw) // 2], raw + b"\0", b"", b"[" * 9999, b"7\n", b"{}\n"):
        kept.write_bytes(other)
        assert kept_arrays.read("found") is None


def test_what_belongs_to_another_name_is_not_read(kept):
    kept.rename(kept.with_name("other.arrays"))
    assert kept_arrays.read("found") is None
    assert kept_arrays.read("other") is None


def test_objects_are_never_read(kept):
    kept_arrays.write("found", None, [np.array([1, 2], "datetime64[s]")])
    assert kept_arrays.read("found") is None


def test_a_pipe_in_its_place_is_not_waited_for(kept):
    kept.unlink()
    os.mkfifo(kept)
    assert kept_arrays.read("found") is None


def test_a_folder_that_cannot_be_written_keeps_nothing_and_fails_nothing(monkeypatch, tmp_path):
    (tmp_path / "arrays").write_text("a file")
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path)
    kept_arrays.write("found", None, [np.ones(3)])
    assert kept_arrays.read("found") is None


def test_a_disk_that_is_full_is_left_as_it_was(kept, monkeypatch):
    def full(file, name, words, arrays):
        file.write(b"some of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept_arrays, "_write", full)
    kept_arrays.write("more", None, [np.ones(3)])
    assert os.listdir(kept.parent) == ["found.arrays"]

    monkeypatch.undo()
    monkeypatch.setattr(remembered, "folder", lambda: kept.parents[1])
    monkeypatch.setattr(kept_arrays.shutil, "disk_usage", lambda path: SimpleNamespace(free=47))
    kept_arrays.write("more", None, [np.ones(3)])
    assert os.listdir(kept.parent) == ["found.arrays"]


def test_what_was_asked_for_longest_ago_makes_room(kept, monkeypatch):
    monkeypatch.setattr(kept_arrays, "MOST_BYTES", 3400)
    kept.unlink()
    for age, name in enumerate(("old", "asked", "young")):
        kept_arrays.write(name, None, [np.ones(100)])
        os.utime(kept.with_name(f"{name}.arrays"), (age, age))
    kept_arrays.read("asked")
    kept_arrays.write("new", None, [np.ones(100)])
    kept_arrays.write("too_large", None, [np.ones(126)])
    left = {path.stem for path in kept.parent.iterdir()}

    assert left == {"asked", "young", "new"}


def test_what_a_killed_process_left_behind_is_cleared_away(kept):
    parts = [kept.with_name(f".of_{name}.arrays.7.part") for name in ("dead", "alive")]
    for part in parts:
        part.write_bytes(b"some of it")
    os.utime(parts[0], (0, 0))
    kept_arrays.write("more", None, [np.ones(3)])

    assert [part.exists() for part in parts] == [False, True]
