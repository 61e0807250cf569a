"""Repeated rows: what is read is what was written, bit for bit, at the size of distinct rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from frugal_rl.errors import EncodingError
from frugal_rl.observation.growing_array import GrowingArray
from frugal_rl.observation.repeated_rows import RepeatedRows, RowNumbers
from frugal_rl.observation.tables import StaticTable, TableField

VALUES = np.array([0.0, -0.0, np.nan, 1.5, -2.25], np.float32)


def drawn(seed, rows, shape, dtype):
    return np.random.default_rng(seed).choice(VALUES[:2] if dtype != np.float32 else VALUES,
                                              (rows, *shape)).astype(dtype)  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "dtype"), [((3,), np.float32), ((2, 2), np.float32), ((5,), np.uint8), ((), np.int16)]
)
@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 90), max_size=8), st.integers(0, 99))
def test_rows_are_read_as_they_were_written(shape, dtype, sizes, seed):
    arena, plain = RepeatedRows(shape, dtype), GrowingArray(shape, dtype)
    for number, size in enumerate(sizes):
        rows = drawn(seed + number, size, shape, dtype)
        bound = arena.allocated_with(size)
        arena.append(rows)
        plain.append(rows)
        assert arena.nbytes <= bound
    assert arena.used == plain.used
    assert arena.read(0, arena.used).tobytes() == plain.read(0, plain.used).tobytes()
    assert arena.book.used == len({row.tobytes() for row in plain.read(0, plain.used)})

    kept = np.random.default_rng(seed).permutation(arena.used)[: arena.used // 3]
    expected = plain.values[kept].tobytes()
    arena.select(kept)
    assert arena.read(0, arena.used).tobytes() == expected
    assert arena.book.used == len({plain.values[k].tobytes() for k in kept})
    again = drawn(seed, 5, shape, dtype)
    arena.append(again)
    assert arena.read(arena.used - 5, arena.used).tobytes() == again.tobytes()


def test_few_distinct_rows_take_four_bytes_each():
    rows = np.random.default_rng(0).choice(np.eye(14, dtype=np.float32), 20_000)
    arena = RepeatedRows((14,), np.float32)

    arena.append(rows)

    assert arena.used_bytes == arena.nbytes == 4 * 20_000 + 14 * 56 + 4 * 65_536
    assert_array_equal(arena.read(7, 9), rows[7:9])
    arena.clear()
    assert arena.nbytes < 500


def test_a_table_counts_what_its_repeated_rows_name():
    table = StaticTable("levels", (TableField("x", (0, 14), np.float32, True, True),))
    rows = np.random.default_rng(0).choice(np.eye(14, dtype=np.float32), 20_000)

    table.intern("one", lambda: {"x": rows})

    offsets = table.nbytes - table.arenas["x"].nbytes
    assert 16 <= offsets < 1000
    with pytest.raises(EncodingError, match="'levels' repeats rows"):
        table.fill(["two"], lambda arrays: True)


@pytest.mark.parametrize("ragged", [True, False])
@pytest.mark.parametrize(("repeated", "kind"), [(True, RepeatedRows), (False, GrowingArray)])
def test_a_field_keeps_rows_once_where_it_says_that_they_repeat(repeated, kind, ragged):
    arena = TableField("x", (5, 3), np.int16, ragged, repeated).arena()

    assert type(arena) is kind
    arena.append(np.zeros((2, 3) if ragged else (2, 5, 3), np.int16))
    assert arena.read(0, 2).dtype == np.int16


def test_rows_of_several_arrays_are_numbered_by_first_sight_until_forgotten():
    numbers = RowNumbers(2 + 4 + 1)
    near = np.array([[1, 2], [1, 2], [3, 4], [1, 2], [3, 4]], np.uint8)
    far = np.array([7, 7, 7, 8, 7], np.int32)
    tag = np.zeros((5, 1), np.uint8)

    codes, new = numbers.of(near, far, tag)
    assert (new.tolist(), codes.tolist()) == ([0, 2, 3], [0, 0, 1, 2, 1])
    codes, new = numbers.of(near[::-1], far[::-1], tag)
    assert (new.tolist(), codes.tolist()) == ([], [1, 2, 1, 0, 0])
    codes, new = numbers.of(near, far, tag + 1)  # another field
    assert (new.tolist(), codes.tolist()) == ([0, 2, 3], [3, 3, 4, 5, 4])

    numbers.forget()
    codes, new = numbers.of(near[2:], far[2:], tag[2:])
    assert (new.tolist(), codes.tolist()) == ([0, 1], [0, 1, 0])


@given(st.lists(st.integers(0, 300), min_size=1, max_size=2000), st.integers(1, 400))
def test_numbers_stay_when_there_are_more_rows_than_slots(values, at_once):
    numbers, known = RowNumbers(8), {}
    for start in range(0, len(values), at_once):
        rows = np.array(values[start : start + at_once], np.int64)
        codes, new = numbers.of(rows)
        fresh = [v for i, v in enumerate(rows.tolist()) if i in set(new.tolist())]
        known |= {v: len(known) + i for i, v in enumerate(fresh)}
        assert codes.tolist() == [known[v] for v in rows.tolist()]
    assert len(known) == numbers.used == len(set(values))
