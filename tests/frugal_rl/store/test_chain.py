"""Chains of differences give every held row back, free what is not held, and never cost much."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.store.chain import FrameChain
from frugal_rl.store.region import CHUNK_BYTES


def record_units(row, before):
    """Twin of a record's size: top words, then each bitmap that is not empty, then its units."""
    units = np.zeros(-(-row.size // 8) * 4, np.uint16)
    units.view(np.uint8)[: row.size] = row ^ before
    whole = len(units)
    size = 0
    for level in range(4):
        size += np.count_nonzero(units) if level < 3 else len(units)
        units = units != 0
        units = np.append(units, np.zeros(-len(units) % 16, bool)).reshape(-1, 16).any(axis=1)
    return min(size, whole)


def evolving(rng, rows):
    """The next rows: the same, a few bytes away, a moved block, or noise."""
    rows = rows.copy()
    for row in rows:
        kind = rng.integers(0, 5)
        if kind == 1:
            row[rng.integers(0, row.size, 3)] = rng.integers(0, 256, 3)
        elif kind == 2:
            row[:] = np.roll(row, 2)
        elif kind == 3:
            row[: row.size // 2] = 0
        elif kind == 4 and rng.random() < 0.5:
            row[:] = rng.integers(0, 256, row.size)
    return rows


@settings(max_examples=40, deadline=None)
@given(
    row_bytes=st.sampled_from([1, 8, 100, 2000]),
    steps=st.integers(1, 40),
    num_envs=st.integers(1, 3),
    key_every=st.sampled_from([1, 4, 7]),
    turns=st.integers(1, 10),
    resets=st.booleans(),
    in_file=st.booleans(),
    seed=st.integers(0, 9999),
)
def test_every_held_row_comes_back(
    row_bytes, steps, num_envs, key_every, turns, resets, in_file, seed
):
    rng = np.random.default_rng(seed)
    location = RolloutLocation.memmap if in_file else RolloutLocation.ram
    chain = FrameChain(row_bytes, steps, num_envs, key_every=key_every, location=location)
    rows, told, beside = np.zeros((num_envs, row_bytes), np.uint8), [], {}
    for _ in range(min(turns * steps, 150)):
        rows = evolving(rng, rows)
        assert chain.append(rows) == len(told)
        told.append(rows)
        for n in np.flatnonzero(rng.random(num_envs) < 0.2):
            beside[len(told) - 1, n] = evolving(rng, rows)[n]
            chain.append_beside(n, beside[len(told) - 1, n])
        if resets and rng.random() < 0.02:
            chain.reset()
            told, beside = [], {}
        if told:
            check_window(rng, chain, told, beside)
    for s in range(chain.first, chain.count):
        for n in range(num_envs):
            assert np.array_equal(chain.rows(np.array([s]), np.array([n]))[0], told[s][n])


def check_window(rng, chain, told, beside):
    """Some rows up to one, placed behind untouched places, and the row beside the last."""
    n = rng.integers(0, chain.num_envs)
    last = rng.integers(chain.first, len(told))
    first = max(chain.first, last - rng.integers(0, 5))
    place = rng.integers(0, 3)
    out = np.full((1, 8, chain.row_bytes), 7, np.uint8)
    expected = out.copy()
    window = np.stack([r[n] for r in told[first : last + 1]])
    expected[0, place : place + len(window)] = window
    with_beside = (last, n) in beside
    assert chain.has_beside(np.array([last]), np.array([n]))[0] == with_beside
    if with_beside:
        expected[0, place + len(window)] = beside[last, n]
    place, with_beside = np.array([place]), np.array([with_beside])
    chain.gather(np.array([first]), np.array([last]), np.array([n]), out, place, with_beside)
    assert np.array_equal(out, expected)


def test_a_record_takes_what_its_twin_says():
    rng = np.random.default_rng(0)
    chain = FrameChain(7056, 200, 1, key_every=1000)
    row = np.zeros((1, 7056), np.uint8)
    chain.append(row)
    for _ in range(199):
        before, row = row, evolving(rng, row)
        used = chain.used
        chain.append(row)
        assert chain.used - used == record_units(row[0], before[0])


@pytest.mark.parametrize("num_envs", [1, 4])
def test_noise_is_at_most_two_percent_larger_than_dense(num_envs):
    rng = np.random.default_rng(0)
    chain = FrameChain(2048, 4000 // num_envs, num_envs)
    for _ in range(9000 // num_envs):
        chain.append(rng.integers(0, 256, (num_envs, 2048), np.uint8))

    assert chain.nbytes <= 1.02 * 4000 * 2048 + chain.key_every * num_envs * 2048


def test_over_ten_turns_only_what_held_rows_refer_to_stays():
    rng = np.random.default_rng(0)
    chain = FrameChain(1024, 256, 2)
    noise = rng.integers(0, 256, (2, 1024), np.uint8)
    for turn in range(10):
        for _ in range(256):
            rows = rng.integers(0, 256, (2, 1024), np.uint8) if turn % 2 else noise
            chain.append(rows)
            chain.append_beside(1, rows[0])
        held = chain.count // chain.key_every - chain.freed_blocks
        assert held <= chain.blocks
        assert len(chain.beside) <= chain.blocks * chain.key_every
        used = chain._users > 0
        assert used.sum() + len(chain._free_anchors) == chain._anchors_touched
        assert set(np.flatnonzero(used)) <= set(chain.anchor_of.ravel())
        live = 2 * (chain.used - chain.bases[chain.freed_blocks % chain.blocks])
        live += chain.pool.touched.size * CHUNK_BYTES if live < 0 else 0
        assert chain.pool.nbytes <= live + 2 * CHUNK_BYTES + 2 * chain.block_units
        assert (turn % 2 == 1) == (chain.pool.nbytes > 256 * 2 * 1024)


def test_released_memory_goes_back_to_the_system():
    chain = FrameChain(4096, 64, 1)
    rng = np.random.default_rng(0)
    for _ in range(64 + 3 * chain.key_every):
        chain.append(rng.integers(0, 256, (1, 4096), np.uint8))

    oldest = int(chain.bases[chain.freed_blocks % chain.blocks])
    below = 2 * oldest // CHUNK_BYTES * CHUNK_BYTES // 2

    assert below > 0
    assert not chain.units[:below].any()  # a page that was given back reads as zeros


def test_a_block_beyond_its_offsets_is_refused():
    with pytest.raises(ValueError, match="Choose a smaller key_every"):
        FrameChain(2**20, 10, 64, key_every=64)
