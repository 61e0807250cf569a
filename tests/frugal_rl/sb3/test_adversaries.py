"""Rows that are made to break what a column guesses, drawn as stable-baselines3 draws them."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer

from frugal_rl.sb3 import CompactRolloutBuffer
from frugal_rl.store.found.array import FoundArray

ENVS = 3
BOX = spaces.Box
NAN_BITS = np.array([0x7FC00001, 0xFFC0BEEF, 0x80000000, 0, 1, 0x7F800000, 0xFF800000], np.uint32)
"""NaN with payloads, both zeros, the smallest number, both infinities."""


def stack_of_jumps(rng, t, last):
    """Channels last, two bytes a pixel: moved by one, two, back, shuffled, not at all."""
    old = np.zeros((ENVS, 6, 5, 4), np.uint16) if last is None else last
    rows = old.copy()
    for n in range(ENVS):
        by = rng.choice([1, 2, -1, 0], p=[0.85, 0.05, 0.05, 0.05])
        rows[n] = np.roll(old[n], -by, axis=-1)
        if by > 0:
            rows[n, ..., 4 - by :] = rng.integers(0, 1 << 16, (6, 5, by))
        if rng.random() < 0.03:
            rows[n] = rows[n][..., rng.permutation(4)]
    return rows


def stack_of_equal_frames(rng, t, last):
    """A game that stands still: a stack along every axis at once, then along one."""
    old = np.zeros((ENVS, 4, 4, 4), np.uint8) if last is None else last
    if t % 12 < 6:
        return np.full_like(old, t // 12)
    rows = np.roll(old, -1, axis=1 + t % 3)
    rows[:, -1] = rng.integers(0, 2, (ENVS, 4, 4))
    return rows


def odd_floats(rng, t, last):
    """Slow change among bits that compare as equal and are not, or as different and are."""
    bits = np.zeros((ENVS, 24), np.uint32) if last is None else last.view(np.uint32).copy()
    for n in range(ENVS):
        bits[n, rng.integers(24)] = rng.choice(NAN_BITS)
    return bits.view(np.float32)


def signs_of_zero(rng, t, last):
    """Flags as floats, of which some are -0.0."""
    rows = rng.integers(0, 2, (ENVS, 9)).astype(np.float64)
    return -rows if t % 5 == 0 else rows


def large_counters(rng, t, last):
    """Whole numbers that floats of 64 bits do not tell apart, and that wrap around."""
    begin = np.array([1 << 53, (1 << 63) - 30, -(1 << 63)], np.int64)
    return begin[:, None] + np.array([[t, 2 * t, -t, t & 1]], np.int64)


def unsigned_counters(rng, t, last):
    begin = np.array([(1 << 64) - 20, 1 << 63, (1 << 62) - 5], np.uint64)
    return begin[:, None] + np.array([[t, t & 1, 0]], np.uint64)


def large_whole_floats(rng, t, last):
    """Numbers around 2^53, of which every second is not one of float64."""
    near = np.array([2.0**53, -(2.0**53), 2.0**63], np.float64)[:, None]
    return np.tile(near, (1, 5)) + 2.0 * rng.integers(0, 3, (ENVS, 5))


def bytes_of_flags(rng, t, last):
    """Flags whose bytes are neither 0 nor 1, as a view of other numbers has them."""
    return rng.choice(np.array([0, 1, 2, 255], np.uint8), (ENVS, 17)).view(np.bool_)


def odd_orders(rng, t, last):
    """The same rows in another order of memory at each step; some cannot be written to."""
    rows = np.zeros((ENVS, 3, 10, 8), np.uint8)
    rows[:, :, t % 10] = 7 * (t % 3)
    rows[:, 0, 3, 4] = rng.integers(256)
    padded = np.zeros((ENVS, 3, 10, 9), np.uint8)
    padded[..., :8] = rows
    shown = (
        rows,
        np.asfortranarray(rows),
        rows[:, :, ::-1].copy()[:, :, ::-1],
        padded[..., :8],
        np.broadcast_to(rows[:1, :1], rows.shape),
        rows.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2),
        np.frombuffer(b"." + rows.tobytes(), np.uint8, offset=1).reshape(rows.shape),
    )
    return shown[rng.integers(len(shown))]


def laid_otherwise(rng, rows):
    """Pictures [N, 3, H, W] as channels last in memory, or not, by chance."""
    if rng.random() < 0.8:
        return rows.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2)
    return rows.copy()


def tiles_laid_otherwise(rng, t, last):
    """Pictures of tiles of 8 x 8 pixels that now and then lie in another order, or are none."""
    if t % 23 == 22:
        return rng.integers(0, 256, (ENVS, 3, 24, 32), np.uint8)
    names = (np.arange(12).reshape(3, 4) * 5 + t // 2) % 7
    art = np.random.default_rng(0).integers(0, 256, (7, 8, 8, 3), np.uint8)
    drawn = art[names].transpose(4, 0, 2, 1, 3).reshape(3, 24, 32)
    return laid_otherwise(rng, np.broadcast_to(drawn, (ENVS, 3, 24, 32)))


def shades_laid_otherwise(rng, t, last):
    """Pictures whose neighbours are alike, noise of few bits over them."""
    slope = np.arange(20)[:, None] * 3 + np.arange(26) + t
    rows = slope + rng.integers(0, 6, (ENVS, 3, 20, 26))
    return laid_otherwise(rng, rows.astype(np.uint8))


def unaligned(rng, t, last):
    """Numbers that begin at an odd address, in memory that belongs to somebody else."""
    rows = np.cumsum(rng.integers(0, 2, (ENVS, 6)), axis=1).astype(np.float32)
    return np.frombuffer(bytearray(b"." + rows.tobytes()), np.float32, offset=1).reshape(ENVS, 6)


def other_types(rng, t, last):
    """Another type than the space says, at each step another one; one of another machine's."""
    kinds = (">i4", ">f8", "i8", "u1", "f4", "?", "<i4")
    return rng.integers(0, 50, (ENVS, 12)).astype(kinds[rng.integers(len(kinds))])


def subclasses(rng, t, last):
    """Arrays of a class of their own."""
    rows = np.roll(np.arange(ENVS * 40, dtype=np.int32).reshape(ENVS, 40), t // 9)
    mask = rows % 3 == 0
    return (np.ma.masked_array(rows, mask), rows.view(np.memmap), rows)[rng.integers(3)]


def almost_equal(rng, t, last):
    """Long rows, equal to the ones before in all but the last byte, or in all."""
    rows = np.zeros((ENVS, 2053), np.uint8) if last is None else last.copy()
    rows[rng.integers(ENVS), -1] = rng.integers(256)
    return rows


def turns_into_noise(rng, t, last):
    """What any form takes well, and from some step on none."""
    if t % 70 < 45:
        return np.full((ENVS, 4, 300), t // 9, np.int16)
    return rng.integers(-(1 << 15), 1 << 15, (ENVS, 4, 300), np.int16)


def rotating_dictionary(rng, t, last):
    """A walk through more distinct rows than are looked at, which then come again."""
    return (np.arange(ENVS * 64).reshape(ENVS, 64) * 2654435761 + t % 37).astype(np.uint32)


ADVERSARIES = {
    stack_of_jumps: BOX(0, 65535, (6, 5, 4), np.uint16),
    stack_of_equal_frames: BOX(0, 255, (4, 4, 4), np.uint8),
    odd_floats: BOX(-np.inf, np.inf, (24,), np.float32),
    signs_of_zero: BOX(-1, 1, (9,), np.float64),
    large_counters: BOX(-(2**63), 2**63 - 1, (4,), np.int64),
    unsigned_counters: BOX(0, 2**64 - 1, (3,), np.uint64),
    large_whole_floats: BOX(-np.inf, np.inf, (5,), np.float64),
    bytes_of_flags: BOX(0, 1, (17,), np.bool_),
    odd_orders: BOX(0, 255, (3, 10, 8), np.uint8),
    tiles_laid_otherwise: BOX(0, 255, (3, 24, 32), np.uint8),
    shades_laid_otherwise: BOX(0, 255, (3, 20, 26), np.uint8),
    unaligned: BOX(0, 9, (6,), np.float32),
    other_types: BOX(0, 99, (12,), np.int32),
    subclasses: BOX(0, 999, (40,), np.int32),
    almost_equal: BOX(0, 255, (2053,), np.uint8),
    turns_into_noise: BOX(-(1 << 15), (1 << 15) - 1, (4, 300), np.int16),
    rotating_dictionary: BOX(0, 2**32 - 1, (64,), np.uint32),
}


def same_bits(ours, stock):
    if isinstance(stock, dict):
        return ours.keys() == stock.keys() and all(same_bits(ours[k], stock[k]) for k in stock)
    return ours.dtype == stock.dtype and ours.numpy().tobytes() == stock.numpy().tobytes()


def fill(buffers, steps, shown):
    """Steps of `shown(t)`; whatever else is added are zeros."""
    zeros, action = torch.zeros(ENVS), np.zeros((ENVS, 1))
    for buffer in buffers:
        buffer.reset()
    for t in range(steps):
        rows = shown(t)
        for buffer in buffers:
            buffer.add(rows, action, np.zeros(ENVS), np.zeros(ENVS), zeros, zeros)
    for buffer in buffers:
        buffer.compute_returns_and_advantage(zeros, np.zeros(ENVS, np.bool_))


def drawn(buffer, seed, batch):
    np.random.seed(seed)  # noqa: NPY002 - SB3 draws from it
    return list(buffer.get(batch))


def beside_stock(space, shown, steps, rollouts, rng):
    """Rollouts in both buffers, some given up on the way; every minibatch is compared."""
    kind = DictRolloutBuffer if isinstance(space, spaces.Dict) else RolloutBuffer
    pair = [
        k(steps, space, spaces.Discrete(2), "cpu", n_envs=ENVS)
        for k in (CompactRolloutBuffer, kind)
    ]
    for rollout in range(rollouts):
        if rollout % 3 == 1:
            fill([pair[0]], int(rng.integers(1, steps)), shown)
        fill(pair, steps, shown)
        batch = int(rng.integers(1, steps * ENVS + 1)) if rollout % 2 else None
        ours, stock = (drawn(buffer, rollout, batch) for buffer in pair)
        assert len(ours) == len(stock)
        for mine, theirs in zip(ours, stock, strict=True):
            assert same_bits(mine.observations, theirs.observations)
    return pair[0]


def shown_by(adversary, rng):
    """Rows of an adversary, step by step; it is told what it showed last."""
    last = [None]

    def show(t):
        rows = last[0] = adversary(rng, t, last[0])
        return rows

    return show


@pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda a: a.__name__)
def test_what_breaks_a_guess_is_drawn_as_it_came(adversary):
    rng = np.random.default_rng(1)
    for steps in (7, 90):
        beside_stock(ADVERSARIES[adversary], shown_by(adversary, rng), steps, 4, rng)


@pytest.mark.slow
@pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda a: a.__name__)
def test_a_hundred_thousand_transitions_of_each_adversary(adversary):
    """33 rollouts of 1,012 steps of 3 environments, and those given up."""
    rng = np.random.default_rng(2)
    beside_stock(ADVERSARIES[adversary], shown_by(adversary, rng), 1012, 33, rng)


def test_entries_that_are_views_of_each_other_are_drawn_as_they_came():
    """Of a dictionary, written over at every step and once more after it was added."""
    rng, screen = np.random.default_rng(3), np.zeros((ENVS, 8, 8, 3), np.uint8)
    entries = {
        "all": screen,
        "turned": screen.transpose(0, 3, 1, 2),
        "mirrored": screen[:, :, ::-1],
        "corner": screen[:, :2, :2, 0],
        "again": screen,
    }
    space = spaces.Dict({k: BOX(0, 255, v.shape[1:], np.uint8) for k, v in entries.items()})

    def show(t):
        screen[:, t % 8] = rng.integers(0, 256, 3)
        return entries

    beside_stock(space, show, 60, 4, rng)


@pytest.mark.parametrize("adversary", [stack_of_jumps, odd_floats, almost_equal, odd_orders])
def test_rows_are_read_while_others_come(adversary):
    """Without SB3, where a loop may look at any step that is written."""
    rng, space = np.random.default_rng(4), ADVERSARIES[adversary]
    store, show = FoundArray(64, ENVS, space), shown_by(adversary, rng)
    dense = np.zeros(store.shape, space.dtype)
    for _ in range(3):
        for t in range(64):
            store[t] = dense[t] = show(t)
            if rng.random() < 0.3:
                steps, envs = rng.integers(0, t + 1, 20), rng.integers(0, ENVS, 20)
                assert store[steps, envs].tobytes() == dense[steps, envs].tobytes()
