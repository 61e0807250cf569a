"""Compiled loops over single rows that several forms share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic


@njit(cache=True)
def turn_pictures(rows: Any, out: Any) -> None:
    """Rows [B, >= 3 P] uint8 of P pixels as planes out [B, 3, P]."""
    for b in range(out.shape[0]):
        turn_three(rows[b], out[b])


@njit(cache=True)
def turn_three(row: Any, planes: Any) -> None:
    """Pixels of three bytes as planes [3, P].

    Three is a constant here, so that a compiler makes wide moves of it: 30 times NumPy's speed.
    """
    first, second, third = planes[0], planes[1], planes[2]
    for p in range(planes.shape[1]):
        first[p] = row[3 * p]
        second[p] = row[3 * p + 1]
        third[p] = row[3 * p + 2]


@njit(cache=True)
def same_words(a: Any, b: Any) -> bool:
    """Whether two rows [W] are equal."""
    differ = np.uint64(0)
    for i in range(a.shape[0]):
        differ |= a[i] ^ b[i]
    return bool(differ == 0)


@njit(cache=True)
def copy_words(row: Any, out: Any) -> None:
    """Word by word: a compiler makes wide moves of it."""
    for w in range(out.shape[0]):
        out[w] = row[w]


@njit(cache=True)
def split_scratch(scratch: Any, width: int) -> Any:
    """Three levels of bitmaps for rows of some words, and room for as many names."""
    groups = (width + 15) // 16
    middles = (groups + 15) // 16
    tops = (middles + 15) // 16
    ends = groups, groups + middles, groups + middles + tops
    return (
        scratch[: ends[0]],
        scratch[ends[0] : ends[1]],
        scratch[ends[1] : ends[2]],
        scratch[ends[2] : ends[2] + width],
    )


def _load_word(typing: Any, octets: Any, at: Any) -> Any:
    """The eight bytes from any place of an array of bytes on: one instruction, aligned or not."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        word = context.get_value_type(types.uint64)
        return builder.load(builder.bitcast(place, word.as_pointer()), align=1, typ=word)

    return types.uint64(octets, at), emit


word_from: Any = intrinsic(_load_word)


def _store_word(typing: Any, octets: Any, at: Any, word: Any) -> Any:
    """Write the eight bytes from any place of an array of bytes on."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        kind = context.get_value_type(types.uint64)
        builder.store(arguments[2], builder.bitcast(place, kind.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.none(octets, at, types.uint64), emit


store_word: Any = intrinsic(_store_word)
