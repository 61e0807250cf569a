"""A replay's arrays are read by scripts as SB3's are: every index that NumPy knows."""

import numpy as np
import pytest
import stable_baselines3.common.buffers as stock
from gymnasium import spaces

from frugal_rl.store.replay import DictReplayBuffer, ReplayBuffer

STEPS, ENVS = 30, 2
PIXELS = spaces.Box(0, 255, (4, 20, 20), np.uint8)
WORDS = spaces.Dict(pixels=PIXELS, speed=spaces.Box(-1, 1, (3,), np.float32))


def seen(space, dice):
    if isinstance(space, spaces.Dict):
        return {name: seen(part, dice) for name, part in space.items()}
    return dice.integers(0, 2, (ENVS, *space.shape)).astype(space.dtype)


def both(space, steps):
    """Ours and SB3's after the same steps."""
    kinds = (DictReplayBuffer, stock.DictReplayBuffer)
    if space is PIXELS:
        kinds = (ReplayBuffer, stock.ReplayBuffer)
    made = [kind(STEPS * ENVS, space, spaces.Discrete(3), "cpu", n_envs=ENVS) for kind in kinds]
    dice = np.random.default_rng(steps)
    for _ in range(steps):
        values = (
            *(seen(space, dice) for _ in range(2)),
            dice.integers(0, 3, (ENVS, 1)),
            dice.random(ENVS),
            dice.random(ENVS) < 0.2,
            [{"TimeLimit.truncated": bool(x)} for x in dice.random(ENVS) < 0.5],
        )
        for replay in made:
            replay.add(*values)
    return made


INDICES = [
    5,
    -1,
    np.int64(3),
    slice(None, 12),
    slice(20, 3, -4),
    (slice(3, 9), 1),
    (4, 0),
    ([1, 2, 29], [0, 1, 1]),
    (np.array([[1, 2], [7, 7]]), np.array([[0, 1], [1, 0]])),
    (np.array([3, 4]), np.array(1)),
    [28, 0, 28],
    np.arange(STEPS) % 3 == 0,
    np.arange(STEPS * ENVS).reshape(STEPS, ENVS) % 7 == 0,
    (slice(2, 5), slice(None), slice(None, 2)),
    (..., 1),
    (np.array([3, -4]), np.array([-1, 0])),
    (np.array([3, 4]), np.array([1, 0]), slice(None)),
    (np.array([3, 4]), np.array([1, 0]), 2),
    slice(7, 7),
]


@pytest.fixture(scope="module", params=[1, 17, 100], ids=["one", "half", "turned"])
def filled(request):
    return both(PIXELS, request.param)


@pytest.mark.parametrize("at", INDICES, ids=[str(i) for i in range(len(INDICES))])
def test_an_index_gives_what_it_gives_of_a_dense_array(at, filled):
    ours, theirs = filled
    for name in ("observations", "next_observations"):
        found, dense = getattr(ours, name)[at], getattr(theirs, name)[at]
        assert found.dtype == dense.dtype
        np.testing.assert_array_equal(found, dense)


@pytest.mark.parametrize("name", ["observations", "next_observations", "actions", "dones",
                                  "timeouts", "rewards"])  # fmt: skip
def test_whole_arrays_have_a_shape_a_type_and_a_length(name, filled):
    found, dense = (getattr(replay, name) for replay in filled)
    assert (found.shape, found.dtype, found.ndim) == (dense.shape, dense.dtype, dense.ndim)
    assert len(found) == len(dense)
    np.testing.assert_array_equal(np.asarray(found), dense)
    np.testing.assert_array_equal(np.asarray(found, np.float64), dense.astype(np.float64))


def test_entries_of_dictionaries_are_read_by_name():
    ours, theirs = both(WORDS, 40)
    for name in WORDS:
        np.testing.assert_array_equal(ours.observations[name][:], theirs.observations[name])
        found, dense = ours.next_observations[name][-1], theirs.next_observations[name][-1]
        np.testing.assert_array_equal(found, dense)


OUTSIDE = [
    STEPS,
    (0, ENVS),
    (0, 0, 4),
    (0,) * 6,
    (np.array([3]), np.array([ENVS])),
    (np.array([3, STEPS]), np.array([0])),
    (np.array([-STEPS - 1]), np.array([0])),
]


@pytest.mark.parametrize("at", OUTSIDE, ids=[str(i) for i in range(len(OUTSIDE))])
def test_an_index_outside_is_an_error_of_an_index(at, filled):
    with pytest.raises(IndexError):
        filled[0].observations[at]
