"""Products in tiles: numbers, what they leave alone, and what their bits depend on."""

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config, njit

from frugal_rl.learn.compiled import tiles
from frugal_rl.learn.compiled.tiles import LANES, MOST, ROWS, product, suit

MARK = np.float32(7.5)


@njit
def multiply(start, a, b, c, adds):
    product(start, a, b, c, adds)


@njit
def multiply_turned(start, a, b, c, adds):
    product(start, a.T, b, c, adds)


def into(rows, columns):
    """Room with a mark on all sides; the middle of it."""
    around = np.full((rows + 2) * columns, MARK, np.float32)
    return around, around[columns:-columns].reshape(rows, columns)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 3 * ROWS + 1),
    st.integers(0, 40),
    st.one_of(st.integers(LANES, 3 * LANES + 1), st.just(MOST)),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_products_are_those_of_doubles_and_nothing_else_is_written(
    rows, depth, columns, turned, adds, seed
):
    random = np.random.default_rng(seed)
    start, a, b, before = (
        random.standard_normal(shape, dtype=np.float32)
        for shape in ((columns,), (rows, depth), (depth, columns), (rows, columns))
    )
    around, c = into(rows, columns)
    c[:] = before

    if turned:
        multiply_turned(start, np.ascontiguousarray(a.T), b, c, adds)
    else:
        multiply(start, a, b, c, adds)

    expected = start + a.astype(np.float64) @ b + adds * before.astype(np.float64)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)
    assert (around[:columns] == MARK).all()
    assert (around[-columns:] == MARK).all()


def test_a_sum_depends_on_its_own_row_and_column_alone():
    """So a sample's result does not change with who shares its minibatch."""
    random = np.random.default_rng(1)
    start, a, b = (
        random.standard_normal(shape, dtype=np.float32) for shape in ((50,), (20, 64), (64, 50))
    )
    whole = np.empty((20, 50), np.float32)
    multiply(start, a, b, whole, 0)
    for first in range(20 - 5):
        some = np.empty((5, 50), np.float32)
        multiply(start, a[first : first + 5], b, some, 0)
        assert np.array_equal(some, whole[first : first + 5])
    for first in (0, 9, 34):
        few, columns = np.empty((20, 16), np.float32), slice(first, first + 16)
        multiply(start[columns].copy(), a, np.ascontiguousarray(b[:, columns]), few, 0)
        assert np.array_equal(few, whole[:, columns])


def test_what_is_narrow_or_large_is_left_to_others():
    assert not suit(LANES - 1, 64)
    assert not suit(64, MOST + 1)
    assert not suit(MOST + 1, 64)


@pytest.mark.parametrize(
    ("named", "features"),
    [
        ("", {}),
        ("+avx2,-fma", {"avx2": True, "fma": False}),
        ("+avx2,+fma", {"avx2": True, "fma": True}),
    ],
)
def test_instructions_that_numba_may_not_use_are_not_counted_on(named, features, monkeypatch):
    """`NUMBA_CPU_NAME=generic` names none, for kernels that run on all nodes of a cluster."""
    monkeypatch.setattr(config, "CPU_FEATURES", named)

    assert tiles._features() == features


def test_without_a_word_of_the_users_they_are_the_processors(monkeypatch):
    monkeypatch.setattr(config, "CPU_FEATURES", None)

    assert tiles._features() == dict(llvm.get_host_cpu_features())
