"""Chains of differences, unit for unit against the format on paper."""

import numpy as np
import pytest

from frugal_rl.store.chain import FrameChain
from frugal_rl.store.chain_kernels import ANCHOR_BLOCKS, BESIDE, NO_LINK, OFFSET, WHOLE

KEY_EVERY = 4


def batches(items, size=16):
    return [items[at : at + size] for at in range(0, len(items), size)]


def bits(flags):
    """Flags as an integer, the first one lowest."""
    return sum(1 << i for i, flag in enumerate(flags) if flag)


def record(row, reference):
    """Units of two bytes of a row that differs from another, bitmaps depth first."""
    differ = (row ^ reference).view(np.uint16)
    groups = batches(differ)
    out = []
    for sixteen in batches(batches(groups)):
        out.append(bits([any(g.any() for g in middle) for middle in sixteen]))
        for middle in sixteen:
            if not any(g.any() for g in middle):
                continue
            out.append(bits([g.any() for g in middle]))
            for group in middle:
                if group.any():
                    out.append(bits(group != 0))
                    out += group[group != 0].tolist()
    return out


def shorter(row, reference):
    """The record, or the row itself where that takes no more units."""
    units = record(row, reference)
    whole = row.view(np.uint16).tolist()
    return (units, False) if len(units) < len(whole) else (whole, True)


def changing(seed, steps, num_envs, words, share):
    """Rows [T, N, W] uint64 of which a share of the words changes from step to step."""
    rng = np.random.default_rng(seed)
    row = rng.integers(0, 1 << 63, (num_envs, words), np.uint64)
    rows = np.zeros((steps, num_envs, words), np.uint64)
    for t in range(steps):
        change = rng.random((num_envs, words)) < share
        other = rng.integers(0, 1 << 63, (num_envs, words), np.uint64)
        row = np.where(change, row ^ (other & np.uint64(0xFFFF00000000)), row)
        rows[t] = row
    return rows


def chain_of(rows, steps=64):
    chain = FrameChain(rows.shape[2] * 8, steps, rows.shape[1], key_every=KEY_EVERY)
    for row in rows:
        chain.append(row.view(np.uint8))
    return chain


def written(chain, step, n):
    """Units of a row as they lie in the pool, up to what the format says; and whether whole."""
    start = chain.starts[step % len(chain.starts), n]
    at = int(chain.bases[step // chain.key_every % chain.blocks]) + int(start & OFFSET)
    return chain.units[at:], bool(start & WHOLE)


@pytest.mark.parametrize("words", [1, 4, 5, 63, 64, 65, 300, 1100])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_every_row_lies_as_the_format_says(words, share):
    rows = changing(words, 12, 2, words, share)
    chain = chain_of(rows)
    for step in range(12):
        for n in range(2):
            block = step // KEY_EVERY % chain.blocks
            anchor = chain.anchors[chain.anchor_of[block, n]]
            before = anchor if step % KEY_EVERY == 0 else rows[step - 1, n]
            units, whole = shorter(rows[step, n], before)
            found, said_whole = written(chain, step, n)
            assert said_whole == whole, (step, n)
            assert found[: len(units)].tolist() == units, (step, n)


def test_records_lie_one_behind_the_other():
    rows = changing(1, KEY_EVERY, 3, 100, 0.05)
    chain = chain_of(rows)
    size = 0
    for step in range(KEY_EVERY):
        for n in range(3):
            assert int(chain.starts[step, n] & OFFSET) == size
            reference = rows[0, n] if step == 0 else rows[step - 1, n]
            size += len(shorter(rows[step, n], reference)[0])
    assert chain.used == size


def test_a_key_row_says_how_to_go_back_to_the_row_before():
    rows = changing(2, 2 * KEY_EVERY + 1, 2, 80, 0.03)
    chain = chain_of(rows)
    assert (chain.links[0] == NO_LINK).all()
    for block in (1, 2):
        for n in range(2):
            key = block * KEY_EVERY
            units = record(rows[key, n], rows[key - 1, n])
            at = int(chain.bases[block]) + int(chain.links[block, n])
            assert chain.units[at : at + len(units)].tolist() == units


def test_the_first_rows_lead_nowhere_though_they_are_as_empty_as_what_is_not_there():
    chain = chain_of(np.zeros((1, 2, 80), np.uint64))

    assert (chain.links[0] == NO_LINK).all()


def test_no_way_back_is_kept_where_it_would_take_a_whole_row():
    rows = changing(3, KEY_EVERY + 1, 1, 80, 0.03)
    rows[KEY_EVERY] = np.random.default_rng(4).integers(0, 1 << 63, (1, 80), np.uint64)
    assert chain_of(rows).links[1, 0] == NO_LINK


def test_chains_share_an_anchor_until_they_have_gone_too_far_from_it():
    rows = np.zeros((6 * KEY_EVERY, 1, 64), np.uint64)
    # A new block's key row differs in so many of its 256 units from the first row of all.
    for block, units in enumerate((0, 10, 40, 90, 90, 90)):
        rows[block * KEY_EVERY :, 0].view(np.uint16)[:, :units] = 1 + min(block, 3)
    anchors = chain_of(rows).anchor_of[:6, 0].tolist()
    assert anchors[0] == anchors[1] == anchors[2]
    assert anchors[3] != anchors[2]
    assert anchors[3] == anchors[4] == anchors[5]


def test_an_anchor_is_renewed_after_so_many_blocks_though_nothing_changes():
    rows = np.ones((1, 1, 64), np.uint64)
    chain = FrameChain(512, 4 * KEY_EVERY, 1, key_every=KEY_EVERY)
    anchors = []
    for step in range((ANCHOR_BLOCKS + 2) * KEY_EVERY):
        chain.append(rows[0].view(np.uint8))
        if step % KEY_EVERY == 0:
            anchors.append(int(chain.anchor_of[step // KEY_EVERY % chain.blocks, 0]))
    assert len(set(anchors[:ANCHOR_BLOCKS])) == 1
    assert anchors[ANCHOR_BLOCKS] != anchors[0]
    assert anchors[ANCHOR_BLOCKS + 1] == anchors[ANCHOR_BLOCKS]


def test_an_anchor_that_no_block_uses_is_used_again():
    rng = np.random.default_rng(5)
    chain = FrameChain(512, 2 * KEY_EVERY, 2, key_every=KEY_EVERY)
    for _ in range(40 * KEY_EVERY):
        chain.append(rng.integers(0, 256, (2, 512), np.uint8))
    assert chain._anchors_touched <= 2 * (chain.blocks + 1)
    assert chain.parts()["anchors"] <= 4 * 16384


@pytest.mark.parametrize("seed", range(6))
def test_any_stretch_of_rows_is_read_from_either_side(seed):
    rows = changing(seed, 50, 3, 40, (0.01, 0.1, 0.4)[seed % 3])
    chain = chain_of(rows, steps=30)
    rng = np.random.default_rng(seed)
    first = rng.integers(chain.first, 50, 60)
    last = np.minimum(first + rng.integers(0, 6, 60), 49)
    n = rng.integers(0, 3, 60)
    place = rng.integers(0, 3, 60)
    out = np.full((60, 9, 320), 99, np.uint8)

    chain.gather(first, last, n, out, place)

    for b in range(60):
        count = last[b] - first[b] + 1
        want = rows[first[b] : last[b] + 1, n[b]].view(np.uint8)
        assert (out[b, place[b] : place[b] + count] == want).all()
        assert (out[b, : place[b]] == 99).all()
        assert (out[b, place[b] + count :] == 99).all()


def test_a_row_beside_another_follows_it_and_changes_nothing_else():
    rows = changing(7, 10, 2, 40, 0.1)
    other = np.random.default_rng(8).integers(0, 256, 320, np.uint8)
    chain = FrameChain(320, 64, 2, key_every=KEY_EVERY)
    for step, row in enumerate(rows):
        chain.append(row.view(np.uint8))
        if step in (3, 6):
            chain.append_beside(1, other)
    steps = np.arange(10)
    assert chain.has_beside(steps, np.ones(10, int)).tolist() == [s in (3, 6) for s in range(10)]
    assert not chain.has_beside(steps, np.zeros(10, int)).any()
    assert chain.starts[6, 1] & BESIDE
    out = np.zeros((2, 3, 320), np.uint8)
    pair = np.array([5, 3]), np.array([6, 3]), np.array([1, 1])
    chain.gather(*pair, out, None, np.array([True, True]))
    assert (out[0, :2] == rows[5:7, 1].view(np.uint8)).all()
    assert (out[0, 2] == other).all()
    assert (out[1, 0] == rows[3, 1].view(np.uint8)).all()
    assert (out[1, 1] == other).all()
    assert (chain.rows(steps, np.ones(10, int)) == rows[:, 1].view(np.uint8)).all()


def test_the_oldest_step_that_is_held_moves_with_the_ring():
    chain = FrameChain(64, 6, 1, key_every=KEY_EVERY)
    firsts = []
    for _ in range(10):
        chain.append(np.zeros((1, 64), np.uint8))
        firsts.append(chain.first)
    assert firsts == [0, 0, 0, 0, 0, 0, 1, 2, 3, 4]


def test_rows_of_any_number_of_bytes_come_back():
    rng = np.random.default_rng(9)
    for row_bytes in (1, 7, 9, 255):
        rows = rng.integers(0, 256, (20, 2, row_bytes), np.uint8)
        chain = FrameChain(row_bytes, 32, 2, key_every=KEY_EVERY)
        for row in rows:
            chain.append(row)
        for n in range(2):
            assert (chain.rows(np.arange(20), np.full(20, n)) == rows[:, n]).all()


def test_a_chain_that_was_reset_begins_at_step_nought():
    rows = changing(10, 9, 1, 40, 0.1)
    chain = chain_of(rows)
    chain.reset()
    assert (chain.count, chain.used, chain.freed_blocks) == (0, 0, 0)
    for row in rows[::-1]:
        chain.append(row.view(np.uint8))
    assert (chain.rows(np.arange(9), np.zeros(9, int)) == rows[::-1, 0].view(np.uint8)).all()


def test_a_saved_chain_goes_on_as_if_it_had_not_been():
    rows = changing(11, 60, 2, 40, 0.1)
    chain, other = chain_of(rows[:37], 16), FrameChain(320, 16, 2, key_every=KEY_EVERY)
    other.load(chain.state())
    for row in rows[37:]:
        assert chain.append(row.view(np.uint8)) == other.append(row.view(np.uint8))
    steps = np.arange(chain.first, 60)
    assert chain.used == other.used
    for n in range(2):
        at = np.full(len(steps), n)
        assert (other.rows(steps, at) == rows[steps, n].view(np.uint8)).all()
    for name in ("starts", "bases", "links", "anchor_of"):
        assert (getattr(chain, name) == getattr(other, name)).all(), name
