"""What each form of rows takes, byte by byte, and what is a stack: worked out by hand."""

import math

import numpy as np
import pytest

from frugal_rl.store.column_spec import ColumnSpec
from frugal_rl.store.found.compressed import Compressed
from frugal_rl.store.found.handled import (
    channels_last,
    lies_channels_last,
    padded_words,
    row_bytes_of,
)
from frugal_rl.store.found.interned import Interned
from frugal_rl.store.found.narrow import NarrowColumn, range_of
from frugal_rl.store.found.plain import Plain
from frugal_rl.store.found.records import Records
from frugal_rl.store.found.rows import Handles, row_words
from frugal_rl.store.found.stacks import Stack, candidates, find_stack, places_of_parts

U8 = np.dtype(np.uint8)


def spec_of(*shape: int, dtype=np.uint8) -> ColumnSpec:
    return ColumnSpec("x", shape, np.dtype(dtype))


def words_of(*numbers: int) -> np.ndarray:
    """Rows [n, 1] of one word each."""
    return np.array(numbers, np.uint64)[:, None]


@pytest.mark.parametrize(
    ("largest", "kind"),
    [(0, "u2"), (65535, "u2"), (65536, "u4"), (2**32 - 1, "u4"), (2**32, "u8")],
)
def test_handles_widen_when_one_does_not_fit_and_keep_what_was_there(largest, kind):
    handles = Handles(3, 2)
    handles.put(0, np.array([5, 7]), 8)
    handles.put(2, np.array([1, largest]), largest + 1)

    assert handles.values.dtype == np.dtype(kind)
    assert handles.nbytes == 3 * 2 * np.dtype(kind).itemsize
    assert handles.at(np.array([0, 2, 0]), np.array([1, 1, 0])).tolist() == [7, largest, 5]
    handles.trim(1)
    assert (handles.values.tolist(), handles.values.base) == ([[5, 7]], None)


@pytest.mark.parametrize(("row_bytes", "words"), [(1, 1), (8, 1), (9, 2), (16, 2)])
def test_a_row_takes_whole_words(row_bytes, words):
    assert row_words(row_bytes) == words
    rows = np.arange(2 * row_bytes, dtype=np.uint8).reshape(2, row_bytes)
    filled = padded_words(rows).view(np.uint8)
    assert filled.shape == (2, 8 * words)
    assert (filled[:, :row_bytes] == rows).all()
    assert not filled[:, row_bytes:].any()


def test_rows_of_any_type_are_seen_as_bytes_and_copied_only_where_they_are_not_contiguous():
    rows = np.arange(12, dtype=np.float32).reshape(2, 3, 2)

    assert row_bytes_of(rows).shape == (2, 24)
    assert np.shares_memory(row_bytes_of(rows), rows)
    turned = rows.transpose(0, 2, 1)
    assert row_bytes_of(turned).tobytes() == np.ascontiguousarray(turned).tobytes()


def test_plain_rows_lie_one_behind_the_other():
    rows, handles = Plain(2, 1), np.zeros(2, np.int64)
    rows.append(words_of(10, 20), np.arange(2), handles)
    first = handles.copy()
    rows.append(words_of(10, 30), np.arange(2), handles)

    assert (first.tolist(), handles.tolist()) == ([0, 1], [2, 3])
    assert (rows.used, rows.used_bytes, rows.nbytes) == (4, 32, 32)
    out = np.ones((1, 3, 1), np.uint64)
    rows.read(np.array([[3, -1, 0]]), out)
    assert out.ravel().tolist() == [30, 0, 10]
    rows.clear()
    assert (rows.used_bytes, rows.nbytes) == (0, 32)
    rows.trim()
    assert rows.nbytes == 0


def test_a_full_pool_grows_by_a_twelfth_or_by_what_is_needed():
    rows = Plain(1, 1)
    rows.reserve(1000)
    rows.used = 1000
    rows.reserve(1)
    assert len(rows.rows) == 1080
    rows.reserve(80)
    assert len(rows.rows) == 1080
    rows.reserve(500)
    assert len(rows.rows) == 1500


def test_distinct_rows_are_kept_once_with_three_words_of_search():
    rows, handles = Interned(2, 1), np.zeros(2, np.int64)
    for pair in ((5, 6), (6, 5), (5, 7)):
        rows.append(words_of(*pair), np.arange(2), handles)

    assert handles.tolist() == [0, 2]
    assert (rows.used, rows.used_bytes) == (3, 3 * 8 + 3 * 12)
    assert rows.nbytes == len(rows.rows) * 8 + 64 * 4
    rows.clear()
    assert (rows.used, rows.used_bytes) == (0, 0)
    rows.append(words_of(7, 7), np.arange(2), handles)
    assert (handles.tolist(), rows.used) == ([0, 0], 1)


def test_slots_are_more_than_twice_the_rows_that_may_come():
    rows, handles = Interned(1, 1), np.zeros(31, np.int64)
    env = np.zeros(31, np.int64)
    rows.append(words_of(*range(31)), env, handles)
    assert len(rows.slots) == 64
    rows.append(words_of(99), env[:1], handles[:1])
    assert len(rows.slots) == 1 << (3 * 32).bit_length() == 128
    rows.append(words_of(*range(31)), env, handles)
    assert (handles.tolist(), rows.used) == ([*range(31)], 32)


def test_a_record_is_a_header_and_the_row_or_its_differences():
    rows, handles = Records(1, 32), np.zeros(1, np.int64)
    row = np.arange(1, 33, dtype=np.uint64)[None]
    env = np.zeros(1, np.int64)
    rows.append(row, env, handles)
    assert (handles[0], rows.used_bytes) == (0, 8 * 33)
    rows.append(row, env, handles)
    assert (handles[0], rows.used_bytes) == (0, 8 * 33)  # equal: no new record
    row[0, 3] ^= 1
    rows.append(row, env, handles)
    assert handles[0] == 33
    assert 8 * 33 < rows.used_bytes <= 8 * (33 + 1 + 3)  # header, two bitmaps, one unit
    assert rows.nbytes == rows.words.nbytes + 32 * 8 + 4 * 8 + 2 * 8
    rows.trim()
    assert rows.words.nbytes == rows.used_bytes
    rows.clear()
    assert (rows.used_bytes, rows.state.tolist()) == (0, [[-1, -1, 0, 0]])


def test_compressed_rows_take_their_blocks_and_twelve_bytes_each():
    rows, handles = Compressed(1, 64), np.zeros(1, np.int64)
    env, row = np.zeros(1, np.int64), np.arange(64, dtype=np.uint64)[None]
    for _ in range(2):
        rows.append(row, env, handles)
    block = int(rows.ends[0])
    assert (rows.used, rows.used_bytes) == (1, block + 12)
    row += 1
    rows.append(row, env, handles)
    assert (handles[0], rows.bases[:2].tolist()) == (1, [-1, 0])
    assert rows.used_bytes == int(rows.ends[1]) + 24
    fixed = 2 * 64 * 8 + 3 * 8
    grown = rows.blocks.nbytes + rows.ends.nbytes + rows.bases.nbytes
    assert rows.nbytes == grown + fixed
    rows.trim()
    assert rows.nbytes == rows.used_bytes + fixed
    rows.clear()
    assert (rows.used_bytes, rows.last_handle[0], rows.root_handle[0], rows.count[0]) == (
        0,
        -1,
        -1,
        0,
    )


def test_of_sixteen_compressed_rows_the_odd_rest_on_their_neighbour_the_even_on_the_first():
    rows, handles = Compressed(1, 64), np.zeros(1, np.int64)
    for i in range(18):
        rows.append(np.full((1, 64), i, np.uint64), np.zeros(1, np.int64), handles)

    assert rows.bases[:18].tolist() == [
        -1, 0, 0, 2, 0, 4, 0, 6, 0, 8, 0, 10, 0, 12, 0, 14, -1, 16,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([0, 1], (0, 1)),
        ([3, 3], (3, 1)),
        ([-2, 1], (-2, 2)),
        ([0, 9], (-3, 4)),  # six numbers to spare, half of them below
        ([0, 255], (0, 8)),
        ([0, 256], (-32639, 16)),
        ([0, 65535], (0, 16)),
        ([0, 65536], None),
        ([2.0, 3.5], (2, 1)),  # rows that do not fit are kept whole
        ([0.0, math.inf], None),
        ([math.nan, 1.0], None),
        ([1 << 62, (1 << 62) + 1], None),
        ([], None),
    ],
)
def test_a_range_takes_the_fewest_bits_and_lies_in_their_middle(rows, found):
    assert range_of(np.array(rows)) == found


@pytest.mark.parametrize(("dtype", "found"), [(np.uint8, None), (np.int16, (0, 8)), ("U1", None)])
def test_no_bits_are_saved_where_the_type_has_no_more(dtype, found):
    assert range_of(np.array([0, 255]).astype(dtype)) == found


def test_codes_take_their_bits_and_broken_rows_their_place_and_bytes():
    column = NarrowColumn(spec_of(5, dtype=np.float32), 4, 2, low=0, bits=2)
    numbers = 4 * 4  # those of each code, as they came
    assert (column.codes.shape, column.nbytes) == ((4, 2, 2), 16 + numbers)
    for t in range(4):
        column.write(t, np.full((2, 5), 0.5 if t == 2 else 3, np.float32), None)

    assert column.broken.values[: column.broken.used].tolist() == [4, 5]
    assert column.used_bytes(2, 4) == 16 / 2 + 2 * 8 + 2 * 20
    assert column.nbytes == 16 + numbers + column.broken.nbytes + column.whole.nbytes
    column.trim(3)
    assert (column.codes.shape, column.codes.base) == ((3, 2, 2), None)
    out = np.zeros((2, 5), np.float32)
    given = column.gather(np.array([2, 1]), np.array([1, 0]), None, out)
    assert given is out
    assert out.tolist() == [[0.5] * 5, [3] * 5]
    column.write(0, np.ones((2, 5), np.float32), None)
    assert column.broken.used == column.whole.used == 0


def test_a_stack_knows_its_parts_and_their_order():
    last, first = Stack(2, 4, 3), Stack(2, 4, 3, newest_last=False)
    row = np.arange(24, dtype=np.uint8)[None]

    assert (last.part_bytes, str(last)) == (6, "stack of 4 along 2 x 3 B")
    assert (last.order, first.order) == ((0, 1), (3, -1))
    assert (last.viewed(row) == row.reshape(1, 2, 4, 3)).all()
    assert (first.viewed(row) == row.reshape(1, 2, 4, 3)[:, :, ::-1]).all()
    pixels = [Stack(9, 4, 1), Stack(9, 4, 2), Stack(9, 3, 1), Stack(9, 4, 1, False)]
    assert [stack.is_pixels for stack in pixels] == [True, False, False, False]


def test_every_way_to_see_a_row_as_a_stack_is_tried_those_with_most_parts_first():
    found = candidates((4, 3), 2)

    assert [s.parts for s in found] == [4, 4, 3, 3, 2, 2]
    assert {(s.outer, s.parts, s.inner) for s in found} == {(1, 4, 6), (4, 3, 2), (1, 2, 12)}
    assert {s.newest_last for s in found} == {True, False}
    assert candidates((1,), 8) == []
    assert max(s.parts for s in candidates((64,), 1)) == 32


def stacked(rows: int, broken: int = 0) -> np.ndarray:
    """Rows [T, 1, 4] of four numbers that move by one, the first `broken` of them at random."""
    numbers = np.arange(rows + 3, dtype=np.uint8)
    history = np.array([numbers[t : t + 4] for t in range(rows)])
    history[:broken] = np.random.default_rng(0).integers(100, 200, (broken, 4))
    return history[:, None]


@pytest.mark.parametrize(("broken", "parts"), [(0, 4), (4, 4), (5, None)])
def test_half_of_the_pairs_that_differ_must_fit_a_stack(broken, parts):
    found = find_stack(stacked(9, broken), (4,), 1)  # 8 pairs, of which `broken` do not fit

    assert (found and found.parts) == parts


def test_rows_that_never_change_are_no_stack():
    assert find_stack(np.ones((9, 1, 4), np.uint8), (4,), 1) is None
    held = np.repeat(stacked(9, 4), 2, axis=0)  # equal rows say nothing
    assert find_stack(held, (4,), 1).parts == 4


def test_parts_lie_in_the_steps_before_as_far_as_nothing_broke():
    age = np.array([[0], [1], [2], [0]], np.uint8)
    steps, before = places_of_parts(np.array([2, 3, 1]), np.array([0, 0, 0]), 3, age)

    assert steps.tolist() == [[0, 1, 2], [3, 3, 3], [0, 0, 1]]
    assert before.tolist() == [[0, 0, 0], [2, 1, 0], [1, 0, 0]]


def test_pictures_are_known_by_how_they_lie():
    lying = np.zeros((2, 5, 6, 3), np.uint8).transpose(0, 3, 1, 2)

    assert lies_channels_last(lying)
    assert not lies_channels_last(lying.copy())
    assert not lies_channels_last(lying[:, :, ::2])
    assert not lies_channels_last(lying[0])
    moved = channels_last(np.arange(24).reshape(1, 2, 3, 4))
    assert (moved == np.arange(24).reshape(1, 2, 3, 4)).all()
    assert np.moveaxis(moved, -3, -1).flags.c_contiguous


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16])
def test_none_of_the_rows_may_be_asked_for(bits):
    """A minibatch of which no sample lies in a segment."""
    column = NarrowColumn(spec_of(5, dtype=np.float32), 4, 2, low=0, bits=bits)
    none = np.zeros(0, np.int64)
    assert column.gather(none, none, None, None).shape == (0, 5)
