"""Compiled loops of `Packed`: pictures as planes, planes as blocks of 32 bytes of few bits each.

    heads   2 bytes a block: 16 where a block is what differs from the line above, plus its bits a
            byte, 0 to 8; and the least of its bytes
    bodies  behind all heads, 4 times its bits for each block

Red and blue are what they differ by from green, plus 128. Differences are kept modulo 256, so that
nothing is ever lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from frugal_rl.store.found.row_kernels import store_word, turn_three, word_from

BLOCK, HEAD = 32, 2
ABOVE = 16
"""Of a block's first byte, the bit that tells differences from the line above."""
SLACK = 8
"""Bytes behind a record that writing it may touch."""
ONES = np.uint64(0x0101010101010101)
TOPS = np.uint64(0x8080808080808080)
EVERY = np.uint64(0xFFFFFFFFFFFFFFFF)


@njit(cache=True)
def pack_rows(
    rows: Any,
    first: int,
    env: Any,
    counts: Any,
    state: Any,
    pool: Any,
    scratch: Any,
    handles: Any,
) -> Any:
    """Rows [first:, W] uint64 as records in pool uint8; returns how many found room.

    counts holds the bytes in use, which are written, and `Pixels.values`. state [N, 2] int64 is the
    place and size of each environment's newest record: an equal one is not kept again. scratch
    uint8 has room for a row's planes behind a line of zeros, and for a block. handles [B] is set.
    """
    planes, size, distance, lead, apart = counts[1], counts[2], counts[3], counts[4], counts[5]
    blocks = (planes * size + BLOCK - 1) // BLOCK
    values, spare = scratch[: scratch.shape[0] - BLOCK], scratch[scratch.shape[0] - BLOCK :]
    for b in range(first, rows.shape[0]):
        used = counts[0]
        if pool.shape[0] - used < (HEAD + BLOCK) * blocks + SLACK:
            return b
        octets, seen = rows[b].view(np.uint8), values[lead : lead + planes * size]
        if apart:
            turn_three(octets, seen.reshape((3, size)))
        else:
            seen[:] = octets[: seen.shape[0]]
        if planes == 3:
            shift_colours(seen, size, -1)
        end = pack_blocks(values, lead, distance, blocks, spare, pool, used)
        n = env[b]
        before, same = state[n, 0], state[n, 1] == end - used
        if same:
            same = same_bytes(pool[used:end], pool[before : before + end - used])
        if not same:
            state[n, 0], state[n, 1] = used, end - used
            counts[0] = end
        handles[b] = state[n, 0]
    return rows.shape[0]


@njit(cache=True)
def same_bytes(a: Any, b: Any) -> bool:
    """Whether two records are equal."""
    differ = np.uint8(0)
    for i in range(a.shape[0]):
        differ |= a[i] ^ b[i]
    return bool(differ == 0)


@njit(cache=True)
def shift_colours(values: Any, size: int, sign: int) -> None:
    """Take green from red and blue of planes [3 size] (sign -1), or put it back (1)."""
    red, green, blue = values[:size], values[size : 2 * size], values[2 * size :]
    for i in range(size):
        red[i] = red[i] + sign * green[i] + 128
        blue[i] = blue[i] + sign * green[i] + 128


@njit(cache=True)
def pack_blocks(
    values: Any, lead: int, distance: int, blocks: int, spare: Any, pool: Any, at: int
) -> Any:
    """The record of values [lead:] at pool[at:]; returns its end."""
    body = at + HEAD * blocks
    for k in range(blocks):
        i = lead + BLOCK * k
        block, above = values[i : i + BLOCK], values[i - distance : i - distance + BLOCK]
        low = down = np.uint8(255)
        high = up = np.uint8(0)
        for j in range(BLOCK):
            here, change = block[j], np.uint8(block[j] - above[j] + 128)
            low, high = min(low, here), max(high, here)
            down, up = min(down, change), max(up, change)
            spare[j] = change
        bits, differs = bits_of(high - low), 0
        if bits > bits_of(up - down):
            bits, differs, low = bits_of(up - down), ABOVE, down
        pool[at], pool[at + 1] = bits | differs, low
        at += HEAD
        if bits:
            least = np.uint64(low) * ONES
            for q in range(0, BLOCK, 8):
                word = word_from(spare, q) if differs else word_from(block, q)
                store_word(pool, body, squeezed(word - least, bits))
                body += bits
    return body


@njit(cache=True)
def bits_of(span: Any) -> Any:
    """How many bits a number below 256 takes."""
    bits = 0
    while span >> bits:
        bits += 1
    return bits


@njit(cache=True)
def squeezed(word: Any, bits: int) -> Any:
    """Eight bytes of which each takes some bits, side by side in the lowest ones."""
    few = np.uint64(bits)
    word = (word & np.uint64(0x00FF00FF00FF00FF)) | (
        (word & np.uint64(0xFF00FF00FF00FF00)) >> (np.uint64(8) - few)
    )
    word = (word & np.uint64(0x0000FFFF0000FFFF)) | (
        (word & np.uint64(0xFFFF0000FFFF0000)) >> (np.uint64(16) - (few << np.uint64(1)))
    )
    return (word & np.uint64(0xFFFFFFFF)) | ((word >> np.uint64(32)) << (few << np.uint64(2)))


@njit(cache=True)
def spread(word: Any, bits: int) -> Any:
    """Eight bytes of numbers that `squeezed` put side by side; what follows them is dropped."""
    few = np.uint64(bits)
    two, four = few << np.uint64(1), few << np.uint64(2)
    half = (np.uint64(1) << four) - np.uint64(1)
    word = (word & half) | (((word >> four) & half) << np.uint64(32))
    half = ((np.uint64(1) << two) - np.uint64(1)) * np.uint64(0x0000000100000001)
    word = (word & half) | (((word >> two) & half) << np.uint64(16))
    half = ((np.uint64(1) << few) - np.uint64(1)) * np.uint64(0x0001000100010001)
    return (word & half) | (((word >> few) & half) << np.uint64(8))


@njit(cache=True)
def unpack_rows(pool: Any, handles: Any, counts: Any, scratch: Any, out: Any, turned: Any) -> None:
    """Rows of handles [M] into out [M, W] uint64; zeros where one is -1.

    Where there are planes turned [M, 3, P] uint8, pictures go there instead, plane by plane.
    """
    planes, size, distance, lead, apart = counts[1], counts[2], counts[3], counts[4], counts[5]
    blocks = (planes * size + BLOCK - 1) // BLOCK
    values = scratch[: scratch.shape[0] - BLOCK]
    seen, held = values[lead : lead + planes * size], np.int64(-1)
    for m in range(handles.shape[0]):
        if handles[m] >= 0 and handles[m] != held:
            held = handles[m]
            unpack_blocks(pool, held, values, lead, distance, blocks)
            if planes == 3:
                shift_colours(seen, size, 1)
        if turned.shape[0]:
            flat = turned[m].reshape(planes * size)
            if handles[m] < 0:
                flat[:] = 0
            else:
                flat[:] = seen
            continue
        octets = out[m].view(np.uint8)
        if handles[m] < 0:
            octets[:] = 0
            continue
        octets[seen.shape[0] :] = 0
        if apart:
            put_three(seen.reshape((3, size)), octets)
        else:
            octets[: seen.shape[0]] = seen


@njit(cache=True)
def put_three(planes: Any, row: Any) -> None:
    """Planes [3, P] as pixels of three bytes, row [>= 3 P]."""
    first, second, third = planes[0], planes[1], planes[2]
    for p in range(planes.shape[1]):
        row[3 * p] = first[p]
        row[3 * p + 1] = second[p]
        row[3 * p + 2] = third[p]


@njit(cache=True)
def unpack_blocks(pool: Any, at: int, values: Any, lead: int, distance: int, blocks: int) -> None:
    """Values [lead:] of the record at pool[at:]; those before are zeros.

    Bytes are added in words: the highest bit of each by itself, so that none spills over.
    """
    body: Any = at + HEAD * blocks
    for k in range(blocks):
        i = lead + BLOCK * k
        bits, differs = pool[at] & 15, pool[at] & ABOVE
        least = np.uint64(pool[at + 1]) * ONES
        at += HEAD
        for q in range(i, i + BLOCK, 8):
            word = least
            if bits:
                word += spread(word_from(pool, body), bits)
                body += np.int64(bits)
            if differs:
                above = word_from(values, q - distance)
                word = ((word & ~TOPS) + (above & ~TOPS)) ^ ((word ^ above ^ TOPS) & TOPS)
            store_word(values, q, word)
