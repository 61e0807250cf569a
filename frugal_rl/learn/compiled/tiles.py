"""Products of small matrices, tile by tile in registers, with nothing copied before.

BLAS first copies both factors into the order that its kernel reads. For large matrices that pays;
of a 128 x 64 by 64 x 64 product it takes up to a third of the time.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic


def _features() -> dict[str, bool]:
    """Which instructions Numba may use: the processor's, unless the user names some."""
    named: str | None = getattr(config, "CPU_FEATURES", None)
    if named is None:
        return dict(llvm.get_host_cpu_features())
    return {word[1:]: word[0] == "+" for word in named.split(",") if word}


FEATURES = _features()
WORTH_IT = bool(FEATURES.get("avx2") and FEATURES.get("fma"))
"""Whether there are registers for tiles."""
LANES = 16
"""Columns of a tile: one register of AVX-512, two of AVX2."""
ROWS, MOST = (8, 384) if FEATURES.get("avx512f") else (6, 128)
"""Rows of a tile, and those rows or columns of a matrix above which BLAS is as fast.

The sums of a tile take twelve of AVX2's sixteen registers. Measured on Zen 4 and Zen 3.
"""
FLOAT_BYTES = np.dtype(np.float32).itemsize

Float, Index, Int = ir.FloatType(), ir.IntType(64), ir.IntType(32)
Vector = ir.VectorType(Float, LANES)
ZEROS = ir.Constant(Vector, [0.0] * LANES)
FROM_ZERO = np.zeros(MOST, np.float32)
FUSED = ["contract"]
"""A product and a sum may be one instruction."""


def suit(columns: int, depth: int) -> bool:
    """Whether products of so many columns are computed in tiles; each is a sum of `depth`."""
    return WORTH_IT and LANES <= columns <= MOST and depth <= MOST


def _whole(number: int) -> Any:
    return ir.Constant(Index, number)


def _splat(builder: Any, value: Any) -> Any:
    """A vector of one value."""
    unset = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
    first = builder.insert_element(unset, value, ir.Constant(Int, 0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(Int, LANES), [0] * LANES))


def _load(builder: Any, kind: Any, address: Any) -> Any:
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=FLOAT_BYTES)


def _sums(
    builder: Any, start: Any, rows: list[Any], a_step: Any, b: Any, b_step: Any, depth: Any
) -> list[Any]:
    """For each row of A, given by its address, `start` and the sum of A[row, k] B[k, lanes]."""
    before = builder.basic_block
    loop, end = (builder.append_basic_block(name) for name in ("products", "summed"))
    builder.cbranch(builder.icmp_signed("<", _whole(0), depth), loop, end)
    builder.position_at_end(loop)
    k, sums = builder.phi(Index), [builder.phi(Vector) for _ in rows]
    k.add_incoming(_whole(0), before)
    given = _load(builder, Vector, builder.add(b, builder.mul(k, b_step)))
    further, after = builder.mul(k, a_step), []
    for total, row in zip(sums, rows, strict=True):
        factor = _splat(builder, _load(builder, Float, builder.add(row, further)))
        product = builder.fmul(factor, given, flags=FUSED)
        after.append(builder.fadd(total, product, flags=FUSED))
        total.add_incoming(start, before)
        total.add_incoming(after[-1], loop)
    following = builder.add(k, _whole(1))
    k.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, depth), loop, end)
    builder.position_at_end(end)
    found = [builder.phi(Vector) for _ in rows]
    for total, last in zip(found, after, strict=True):
        total.add_incoming(start, before)
        total.add_incoming(last, loop)
    return found


def _with_old(builder: Any, rows: list[Any], sums: list[Any], adds: Any, skip: Any) -> list[Any]:
    """What C's rows become where they matter: added to if `adds`, the first `skip` lanes kept."""
    numbers = ir.Constant(ir.VectorType(Index, LANES), list(range(LANES)))
    kept = builder.icmp_signed("<", numbers, _splat(builder, skip))
    old = [_load(builder, Vector, row) for row in rows]
    under = [builder.select(adds, before, ZEROS) for before in old]
    added = [builder.fadd(before, total) for before, total in zip(under, sums, strict=True)]
    return [builder.select(kept, was, new) for was, new in zip(old, added, strict=True)]


def _emit(builder: Any, given: Any) -> None:
    """One tile of C. Rows past the last one are the last one again: all are read, then written."""
    start, a, a_row, a_step, b, b_step, c, c_row, rows, depth, adds, skip = given
    numbers = [_whole(row) for row in range(ROWS)]
    last = builder.sub(rows, _whole(1))
    numbers = [builder.select(builder.icmp_signed("<", n, last), n, last) for n in numbers]
    ours, into = (
        [builder.add(first, builder.mul(n, step)) for n in numbers]
        for first, step in ((a, a_row), (c, c_row))
    )
    sums = _sums(builder, _load(builder, Vector, start), ours, a_step, b, b_step, depth)
    summed = builder.basic_block
    matters, end = (builder.append_basic_block(name) for name in ("old.matters", "written"))
    adds, skips = (builder.icmp_signed("!=", flag, _whole(0)) for flag in (adds, skip))
    builder.cbranch(builder.or_(adds, skips), matters, end)
    builder.position_at_end(matters)
    changed = _with_old(builder, into, sums, adds, skip)
    builder.branch(end)
    builder.position_at_end(end)
    totals = [builder.phi(Vector) for _ in into]
    for row, total, plain, other in zip(into, totals, sums, changed, strict=True):
        total.add_incoming(plain, summed)
        total.add_incoming(other, matters)
        builder.store(total, builder.inttoptr(row, Vector.as_pointer()), align=FLOAT_BYTES)


def _tile_of(
    typing: Any,
    start: Any,
    a: Any,
    a_row: Any,
    a_step: Any,
    b: Any,
    b_step: Any,
    c: Any,
    c_row: Any,
    rows: Any,
    depth: Any,
    adds: Any,
    skip: Any,
) -> Any:
    """`ROWS` rows of C or fewer, `LANES` columns; addresses and steps in bytes, all int64."""

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        _emit(builder, given)
        return context.get_dummy_value()

    kinds: Any = types
    return kinds.void(*[types.int64] * 12), emit


tile: Any = intrinsic(_tile_of)


@njit(error_model="numpy")
def product(start: Any, a: Any, b: Any, c: Any, adds: Any) -> None:
    """C [m, n] = start [n] + a [m, k] @ b [k, n], or C += that; n >= `LANES`.

    Start, and rows of b and c, lie in one piece. Each sum goes through k in order, so that it
    depends on its own numbers alone. The last tile of a row ends where the row does, and leaves
    what the one before it wrote.
    """
    rows, depth, columns = a.shape[0], a.shape[1], b.shape[1]
    (a_row, a_step), b_step, c_row = a.strides, b.strides[0], c.strides[0]
    for j in range(0, columns, LANES):
        column = min(j, columns - LANES)
        further = FLOAT_BYTES * column
        for i in range(0, rows, ROWS):
            tile(
                start.ctypes.data + further,
                a.ctypes.data + i * a_row,
                a_row,
                a_step,
                b.ctypes.data + further,
                b_step,
                c.ctypes.data + further + i * c_row,
                c_row,
                rows - i,
                depth,
                adds,
                j - column,
            )
