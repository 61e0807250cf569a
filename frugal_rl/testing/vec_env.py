"""The contract of vector environments: the same trajectories, whatever runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.testing import assert_array_equal

if TYPE_CHECKING:
    from frugal_rl.vec_env.interface import Step, VectorEnv


def check_vec_env(
    make: Callable[[], VectorEnv],
    reference: Callable[[], VectorEnv],
    steps: int = 100,
    seed: int = 0,
) -> None:
    """Assert that two ways to run the same environments give equal trajectories, bit for bit.

    Ids are compared by the static rows that they name.
    """
    ours, theirs = make(), reference()
    try:
        _check_equal(ours, theirs, steps, seed)
    finally:
        ours.close()
        theirs.close()


def _check_equal(ours: VectorEnv, theirs: VectorEnv, steps: int, seed: int) -> None:
    assert ours.num_envs == theirs.num_envs
    spaces = [env.action_space for env in (ours, theirs)]
    assert spaces[0] == spaces[1]
    assert_rows_equal(ours, ours.reset(seed), theirs, theirs.reset(seed))
    spaces[0].seed(seed)
    for _ in range(steps):
        actions = np.stack([np.asarray(spaces[0].sample()) for _ in range(ours.num_envs)])
        assert_steps_equal(ours, ours.step(actions), theirs, theirs.step(actions))


def assert_steps_equal(ours: VectorEnv, a: Step, theirs: VectorEnv, b: Step) -> None:
    """Rows, rewards, ends and statistics of two steps are equal."""
    assert_rows_equal(ours, a.rows, theirs, b.rows)
    for name in ("reward", "done", "truncated", "final_index"):
        assert_array_equal(getattr(a, name), getattr(b, name), name)
    if len(a.final_index):
        assert_rows_equal(ours, a.final_rows, theirs, b.final_rows)
    assert (a.ended is None) == (b.ended is None)
    if a.ended is not None and b.ended is not None:
        assert_array_equal(a.ended.index, b.ended.index)
        assert set(a.ended.stats) == set(b.ended.stats)
        for name, values in a.ended.stats.items():
            assert_array_equal(values, b.ended.stats[name], name)


def assert_rows_equal(
    ours: VectorEnv, a: dict[str, np.ndarray], theirs: VectorEnv, b: dict[str, np.ndarray]
) -> None:
    """Rows of two groups are equal; ids name equal static contents."""
    assert set(a) == set(b)
    tables = ours.encoding.spec.id_rows()
    for name, values in a.items():
        assert values.dtype == b[name].dtype, name
        if name not in tables:
            assert_array_equal(values, b[name], name)
            continue
        for one, other in zip(values, b[name], strict=True):
            first = ours.tables[tables[name]].row(int(one))
            _assert_static_equal(first, theirs.tables[tables[name]].row(int(other)))


def _assert_static_equal(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert set(a) == set(b)
    for name, values in a.items():
        assert_array_equal(values, b[name], name)
