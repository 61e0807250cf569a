"""A full rollout gives back the room that a larger one took, and the next one grows again."""

import numpy as np
import pytest

from frugal_rl.store.column_spec import ColumnSpec
from frugal_rl.store.found.column import FoundColumn
from frugal_rl.store.found.compressed import Compressed
from frugal_rl.store.found.interned import Interned
from frugal_rl.store.found.packed import Packed, pixels_of
from frugal_rl.store.found.plain import Plain
from frugal_rl.store.found.records import Records
from frugal_rl.store.found.tiled import Tiled
from frugal_rl.store.found.tiles import lying
from frugal_rl.store.found.worded import Worded

ENVS, SHAPE = 2, (64, 64)
WORDS = 64 * 64 // 8
STEPS = 60
KINDS = {
    "plain": Plain,
    "interned": Interned,
    "differences": Records,
    "words": Worded,
    "compressed": Compressed,
    "packed": lambda envs, words: Packed(envs, words, pixels_of(SHAPE, last=False)),
    "tiles": lambda envs, words: Tiled(envs, words, lying(SHAPE, 1, False, 8, 8)),
}


def noise(seed: int) -> np.ndarray:
    """Rows [T, N, W] that share nothing."""
    return np.random.default_rng(seed).integers(0, 1 << 63, (STEPS, ENVS, WORDS), np.uint64)


def still(seed: int) -> np.ndarray:
    """Rows [T, N, W] of which every fifteenth differs from the one before, in one word."""
    rows = np.zeros((STEPS, ENVS, WORDS), np.uint64)
    for t in range(0, STEPS, 15):
        rows[t:, :, (seed + t) % WORDS] += np.uint64(t + 1)
    return rows


def rollout(store, rows: np.ndarray) -> np.ndarray:
    """Handles [T, N] of a whole rollout."""
    handles = np.zeros(rows.shape[:2], np.int64)
    store.clear()
    for t, shown in enumerate(rows):
        store.append(shown, np.arange(ENVS), handles[t])
    store.end_rollout()
    return handles


def read(store, handles: np.ndarray) -> np.ndarray:
    out = np.ones((STEPS, ENVS, WORDS), np.uint64)
    for n in range(ENVS):
        mine = np.empty((STEPS, 1, WORDS), np.uint64)
        store.read(handles[:, n : n + 1], mine, np.full(STEPS, n))
        out[:, n] = mine[:, 0]
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_rows_grow_again_after_a_rollout_that_gave_room_back(kind):
    store = KINDS[kind](ENVS, WORDS)
    for rows in (noise(0), still(0), np.zeros_like(noise(0)), still(7), noise(1), still(3)):
        handles = rollout(store, rows)
        assert read(store, handles).tobytes() == rows.tobytes()


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"plain"}))
def test_a_small_rollout_takes_no_room_of_a_large_one_before(kind):
    fresh, store = KINDS[kind](ENVS, WORDS), KINDS[kind](ENVS, WORDS)
    rollout(fresh, still(0))
    rollout(store, noise(0))
    large = store.nbytes
    rollout(store, still(0))

    assert store.nbytes < large / 4
    slots = getattr(store, "slots", np.empty(0)).nbytes  # of the search, which stay
    assert store.nbytes - slots <= 1.1 * fresh.nbytes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("before", [[], [noise(0)]], ids=["first", "after_a_larger_one"])
def test_rollouts_alike_keep_their_room(kind, before, monkeypatch):
    store, rows = KINDS[kind](ENVS, WORDS), still(0)
    for shown in (*before, rows):
        rollout(store, shown)
    monkeypatch.setattr(store, "trim", lambda: pytest.fail("the next one would grow again"))
    for _ in range(2):
        rollout(store, rows)


def test_a_column_of_pictures_lets_go_of_a_night_at_the_end_of_a_day():
    spec = ColumnSpec("picture", (3, 64, 64), np.dtype(np.uint8))
    column, dice = FoundColumn(spec, STEPS, ENVS), np.random.default_rng(0)
    tiles = dice.integers(0, 256, (6, 3, 8, 8), np.uint8)
    days = tiles[dice.integers(0, 6, (STEPS, ENVS, 8, 8))]
    days = days.transpose(0, 1, 4, 2, 5, 3, 6).reshape(STEPS, ENVS, 3, 64, 64)
    nights = days.copy()
    nights[-STEPS // 4 :] ^= dice.integers(0, 32, days[-STEPS // 4 :].shape, np.uint8)
    taken = []
    for rows in (days, nights, days):
        for t in range(STEPS):
            column.write(t, np.ascontiguousarray(rows[t]), None)
        taken.append(column.nbytes)
        t, n = np.divmod(np.arange(STEPS * ENVS), ENVS)
        assert (column.gather(t, n, None, None) == rows.reshape(-1, 3, 64, 64)).all()

    assert taken[1] > 4 * taken[0]
    scratch = 16_384  # of packing, which the first day did not need
    assert taken[2] < taken[0] + scratch
    assert column.most_bytes == taken[1]  # what a plan of the next run must count


def test_the_first_rollout_tells_its_bytes_until_another_one_is_full():
    column = FoundColumn(ColumnSpec("x", (9,), np.dtype(np.float32)), STEPS, ENVS)
    for rollout_number in range(2):
        for t in range(STEPS):
            column.write(t, np.full((ENVS, 9), t + rollout_number, np.float32), None)
            assert column.most_bytes == column.nbytes
