"""Rows as names of known words: whatever arrives comes back; words that repeat cost two bytes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frugal_rl.store.found.word_kernels import (
    AS_IT_IS,
    LINKS,
    MOST_WORDS,
    WHOLE,
    base_of,
    first_slot,
)
from frugal_rl.store.found.worded import Worded


def kept(rows, env_count=2, store=None):
    """A store of rows [T, N, W], and their handles [T, N]."""
    store = Worded(env_count, rows.shape[2]) if store is None else store
    handles = np.zeros(rows.shape[:2], np.int64)
    for t, row in enumerate(rows):
        store.append(row, np.arange(env_count), handles[t])
    return store, handles


def read(store, handles):
    out = np.full((*handles.shape, store.last.shape[1]), 7, np.uint64)
    store.read(handles, out)
    return out


def headers(store, handles):
    places = np.unique(handles)
    return store.units[places].astype(np.int64) | store.units[places + 1].astype(np.int64) << 16


def changing(rng, steps, width, distinct, share):
    """Rows [T, 2, W] of so many distinct words; at most a share of each differs from the former."""
    words = rng.integers(0, 1 << 63, distinct, np.uint64)
    rows = np.zeros((steps, 2, width), np.uint64)
    row = words[rng.integers(distinct, size=(2, width))]
    for t in range(steps):
        new = words[rng.integers(distinct, size=(2, width))]
        row = np.where(rng.random((2, width)) < share, new, row)
        rows[t] = row
    return rows


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([1, 2, 15, 16, 17, 31, 257, 300]),
    st.sampled_from([1, 2, 40, 5000]),
    st.sampled_from([0.0, 0.01, 0.3, 1.0]),
)
def test_every_row_comes_back_in_any_order(seed, width, distinct, share):
    rng = np.random.default_rng(seed)
    rows = changing(rng, 70, width, distinct, share)
    store = None
    for _ in range(2):  # the second rollout in the memory of the first
        if store is not None:
            store.clear()
        store, handles = kept(rows, store=store)
        order = rng.permutation(70)

        assert read(store, handles[order]).tobytes() == rows[order].tobytes()
        assert read(store, handles[order].T).tobytes() == rows[order].swapaxes(0, 1).tobytes()
        assert store.end > handles.max()


def test_words_that_come_again_take_two_bytes():
    rows = changing(np.random.default_rng(0), 200, 800, 60, 0.1)

    store, _ = kept(rows)

    differing = (rows[1:] != rows[:-1]).sum()
    assert store.used_bytes < 5 * differing  # names, bitmaps, now and then a whole row
    assert store.counts[1] == 60


def test_noise_takes_no_more_than_itself_and_its_header():
    rows = np.random.default_rng(0).integers(0, 1 << 63, (100, 2, 500), np.uint64)

    store, handles = kept(rows)

    assert read(store, handles).tobytes() == rows.tobytes()
    assert store.used_bytes <= 1.02 * rows.nbytes + 14 * store.counts[1]
    assert store.counts[1] <= 2 * 500  # words that never came again are not entered for ever
    assert AS_IT_IS in headers(store, handles)


def test_no_row_is_read_over_more_records_than_allowed():
    store, handles = kept(changing(np.random.default_rng(0), 300, 64, 900, 0.02))
    for place in handles.ravel():
        steps = 0
        while (place := base_of(store.units, place)) >= 0:
            steps += 1
        assert steps <= LINKS
    assert WHOLE in headers(store, handles)


@pytest.mark.parametrize("words", [100, 4096])
def test_a_full_table_of_words_writes_the_others_out(words):
    rng, width = np.random.default_rng(0), 4096
    rows = rng.integers(0, 1 << 63, (40, 2, width), np.uint64)
    rows[:, :, : width // 2] = np.roll(rows[0, 0, : width // 2], 1)  # half of them is known
    rows[1::2, :, : width // 2] = rows[0, 0, 1]
    rows = rows[:, :, :words]

    store, handles = kept(rows)

    assert read(store, handles).tobytes() == rows.tobytes()
    assert store.counts[1] <= MOST_WORDS
    if words == 4096:
        assert store.counts[1] == MOST_WORDS


def test_zeros_before_an_episode_and_repeated_rows_need_no_record():
    rows = np.ones((5, 2, 9), np.uint64)
    store, handles = kept(rows)

    asked = np.array([[-1, handles[0, 0], handles[4, 1]]])
    assert read(store, asked).tolist() == [[[0] * 9, [1] * 9, [1] * 9]]
    assert len(np.unique(handles)) == 2
    store.trim()
    assert store.nbytes < 4096
    assert read(store, handles).tobytes() == rows.tobytes()


@pytest.mark.parametrize("byte", range(8))
def test_words_that_differ_in_any_byte_are_searched_from_different_places(byte):
    words = np.arange(256, dtype=np.uint64) << np.uint64(8 * byte)
    slots = np.zeros(1 << 13, np.uint16)

    assert len({first_slot(word, slots) for word in words}) > 200


def test_trimmed_stores_keep_their_rows_and_nothing_more():
    rows = changing(np.random.default_rng(3), 30, 40, 9, 0.3)
    store, handles = kept(rows)
    store.trim()

    assert (len(store.units), len(store.table)) == (store.counts[0], store.counts[1])
    np.testing.assert_array_equal(read(store, handles), rows)
