"""Rows as differences of words, word for word against a twin in plain Python."""

import numpy as np
import pytest

from frugal_rl.store.found.records import GROWTH, LINKS, Records
from frugal_rl.store.found.rows import reading_order


def body(row, reference):
    """Words of a record's differences: bitmaps of bitmaps, bitmaps, and units filled up."""
    differ = (row ^ reference).view(np.uint16)
    bitmaps = [differ[at : at + 64] for at in range(0, len(differ), 64)]
    words = []
    live = [b for b in bitmaps if b.any()]
    for at in range(0, len(bitmaps), 64):
        words.append(sum(1 << i for i, b in enumerate(bitmaps[at : at + 64]) if b.any()))
    words += [sum(1 << j for j, unit in enumerate(b) if unit) for b in live]
    units = [int(u) for b in live for u in b if u]
    units += [0] * (-len(units) % 4)
    for at in range(0, len(units), 4):
        words.append(sum(u << 16 * q for q, u in enumerate(units[at : at + 4])))
    return words


class Twin:
    """The same pool as a list of whole numbers."""

    def __init__(self, envs, width):
        self.width, self.words = width, []
        self.last = [None] * envs
        self.state = [[-1, -1, 0, 0] for _ in range(envs)]
        self.rows = {}

    def append(self, n, row):
        base, _, links, since = self.state[n]
        if base >= 0 and (row == self.last[n]).all():
            return base
        root = self.state[n][1] if base >= 0 else self.state[0][1]
        reference, size = None, self.width
        if base >= 0 and links < LINKS and since <= self.width:
            reference = self.last[n]
            size = len(body(row, reference))
        elif root >= 0:
            base, reference = root, self.rows[root]
            size = len(body(row, reference))
            size = size if 4 * size < self.width else self.width
        used = len(self.words)
        if size < self.width:
            if base == root:
                reference = self.rows[root]
            self.words += [base + 1, *body(row, reference)]
            new = base == root
            self.state[n][1:] = root, 1 if new else links + 1, size if new else since + size
        else:
            self.words += [0, *map(int, row)]
            self.state[n][1:] = used, 0, 0
        self.rows[used] = row.copy()
        self.last[n], self.state[n][0] = row.copy(), used
        return used


def changing(seed, steps, envs, width, share):
    rng = np.random.default_rng(seed)
    row = rng.integers(0, 1 << 63, (envs, width), np.uint64)
    rows = np.zeros((steps, envs, width), np.uint64)
    for t in range(steps):
        other = rng.integers(1, 1 << 16, (envs, width), np.uint64)
        row = np.where(rng.random((envs, width)) < share, row ^ other, row)
        rows[t] = row
    return rows


def both(rows):
    steps, envs, width = rows.shape
    pool, twin = Records(envs, width), Twin(envs, width)
    ours, theirs = np.zeros((steps, envs), np.int64), np.zeros((steps, envs), np.int64)
    for t in range(steps):
        pool.append(rows[t], np.arange(envs), ours[t])
        theirs[t] = [twin.append(n, rows[t, n]) for n in range(envs)]
    return pool, twin, ours, theirs


@pytest.mark.parametrize("width", [1, 15, 16, 17, 100, 1100])
@pytest.mark.parametrize("share", [0.01, 0.2, 0.9])
def test_every_record_is_the_twins(width, share):
    rows = changing(width, 60, 2, width, share)
    pool, twin, ours, theirs = both(rows)
    assert ours.tolist() == theirs.tolist()
    assert pool.state.tolist() == twin.state
    wanted = np.array(twin.words, np.uint64)
    assert pool.words[: pool.end].tolist() == wanted.tolist()


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_rows_are_read_alone_and_as_stacks_in_any_order(share):
    rows = changing(7, 80, 3, 50, share)
    pool, _, handles, _ = both(rows)
    rng = np.random.default_rng(8)
    steps, env = rng.integers(3, 80, 60), rng.integers(0, 3, 60)
    for size in (1, 4):
        at = steps[:, None] + np.arange(-size + 1, 1)
        wanted = handles[at, env[:, None]]
        out = np.full((60, size, 50), 9, np.uint64)
        pool.read(wanted, out)
        assert (out == rows[at, env[:, None]]).all()


def test_a_handle_below_nought_is_a_row_of_zeros():
    pool, _, handles, _ = both(changing(9, 5, 1, 20, 0.2))
    out = np.full((1, 3, 20), 9, np.uint64)
    pool.read(np.array([[-1, int(handles[2, 0]), -1]]), out)
    assert not out[0, 0].any()
    assert not out[0, 2].any()
    assert out[0, 1].any()


def test_a_pool_grows_by_little_and_gives_the_rest_back():
    pool, _, handles, _ = both(changing(10, 200, 2, 60, 0.3))
    assert len(pool.words) <= GROWTH * pool.end + 61
    pool.trim()
    assert len(pool.words) == pool.end == pool.used_bytes // 8
    out = np.zeros((1, 1, 60), np.uint64)
    pool.read(handles[-1:, :1].copy(), out)
    assert out.any()


def test_a_cleared_pool_begins_anew():
    rows = changing(11, 40, 2, 30, 0.2)
    pool, twin, ours, _ = both(rows)
    pool.clear()
    assert (pool.end, pool.used_bytes) == (0, 0)
    again = np.zeros_like(ours)
    for t in range(40):
        pool.append(rows[t], np.arange(2), again[t])
    assert again.tolist() == ours.tolist()
    assert pool.words[: pool.end].tolist() == np.array(twin.words, np.uint64).tolist()


def test_rows_are_read_by_environment_and_each_one_in_the_order_in_which_they_came():
    handles = np.array([[7, -1], [3, 9], [0, -1], [8, 2]])
    env = np.array([1, 0, 1, 0])

    order = reading_order(handles, env, 10)

    assert handles.reshape(-1)[order].tolist() == [2, 3, 8, 9, -1, -1, 0, 7]
    assert np.repeat(env, 2)[order].tolist() == [0] * 4 + [1] * 4
    assert reading_order(handles, None, 10).tolist() == list(range(8))
