"""The bounded table: ids stay, contents come and go, what is read is always right."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from frugal_rl.observation.bounded import BoundedTable
from frugal_rl.observation.mirror import TableMirror
from frugal_rl.observation.tables import StaticTable, TableField

FIELDS = (
    TableField("items", (8, 3), np.int16, ragged=True),
    TableField("flat", (5,), np.float32),
    TableField("alike", (8, 2), np.float32, ragged=True, repeated=True),
)


def content(key: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(key)
    return {
        "items": rng.integers(-99, 99, (int(rng.integers(1, 40)), 3)).astype(np.int16),
        "flat": rng.random(5).astype(np.float32),
        "alike": rng.choice([-0.0, 0.0, 0.5], (int(rng.integers(1, 40)), 2)).astype(np.float32),
    }


def filled(most_bytes: int, keys: int = 60) -> tuple[BoundedTable, StaticTable]:
    table, whole = BoundedTable("t", FIELDS, most_bytes), StaticTable("t", FIELDS)
    for key in range(keys):
        build = lambda key=key: content(key)  # noqa: E731
        assert table.intern(key, build) == whole.intern(key, build) == key
    return table, whole


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, 59), min_size=1, max_size=12), min_size=1, max_size=40))
def test_whatever_is_read_is_what_an_unbounded_table_says(reads):
    table, whole = filled(2500)
    ours, theirs = TableMirror(table), TableMirror(whole)
    for read in reads:
        ids = torch.tensor(read)
        places = table.places(ids.numpy())
        assert_array_equal(table["flat"][places], whole["flat"][read])
        assert torch.equal(ours.rows("flat", ids), theirs.rows("flat", ids))
        mine, other = ours.ragged("items", ids), theirs.ragged("items", ids)
        assert torch.equal(mine.items, other.items)
        assert torch.equal(mine.lengths, other.lengths)
        assert_array_equal(table.row(read[0])["items"], whole.row(read[0])["items"])
        mine, plain = ours.ragged("alike", ids), [content(key)["alike"] for key in read]
        assert_array_equal(mine.items.numpy().view(np.int32), np.concatenate(plain).view(np.int32))
        assert mine.lengths.tolist() == [len(items) for items in plain]
        assert_array_equal(table.row(read[0])["alike"], plain[0])


@pytest.mark.parametrize(("keys", "places"), [(0, 64), (64, 64), (65, 128), (129, 256)])
def test_a_directory_takes_two_numbers_of_eight_bytes_for_each_id_it_has_room_for(keys, places):
    table, _ = filled(2500, keys)

    assert table.nbytes == StaticTable("t", FIELDS).nbytes + 2 * 8 * places


def test_the_contents_stay_within_the_bound_and_the_oldest_goes_first():
    table, whole = filled(6000)
    directory = table.nbytes - StaticTable.nbytes.fget(table)

    for key in range(60):
        table.places(np.array([0]))  # read again and again
        table.places(np.array([key]))
        assert table.nbytes - directory <= 6000

    assert whole.nbytes > 6000
    assert table.drops > 0
    built = table.builds
    table.places(np.array([0]))
    table.places(np.array([59]))
    assert table.builds == built
    table.places(np.array([1]))
    assert table.builds == built + 1


def test_what_a_row_takes_is_counted_over_all_of_its_fields():
    table, _ = filled(10**9, 3)
    table.places(np.arange(3))
    one = content(1)
    alike = table.arenas["alike"]
    shared = alike.content_bytes(len(one["alike"])) - 4 * len(one["alike"])

    taken = one["items"].nbytes + one["flat"].nbytes + 4 * len(one["alike"]) + shared
    assert table._content_bytes(int(table.places(np.array([1]))[0])) == taken


def test_a_batch_larger_than_the_bound_is_served_whole():
    table, whole = filled(500)
    ids = np.arange(60)

    places = table.places(ids)

    assert_array_equal(table["flat"][places], whole["flat"][ids])


def test_nothing_is_built_before_it_is_read_and_keys_are_kept():
    table, _ = filled(6000)

    assert table.builds == 0
    assert len(table) == 60
    assert table.keys == list(range(60))
    assert isinstance(table.empty(), StaticTable)
    assert not isinstance(table.empty(), BoundedTable)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_copy_on_the_device_follows_what_is_dropped(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    table, whole = filled(2500)
    mirror = TableMirror(table)
    for key in (*range(60), *range(0, 60, 7)):
        ids = torch.tensor([key, (key * 31) % 60], device=device)
        expected = torch.from_numpy(whole["flat"][ids.cpu().numpy()])
        assert torch.equal(mirror.rows("flat", ids).cpu(), expected)


def test_a_growing_copy_is_made_anew_after_a_drop(monkeypatch):
    table, whole = filled(2500)
    mirror = TableMirror(table)
    arena = mirror._arenas["flat"]
    monkeypatch.setattr(type(arena), "sync", lambda self, device: self._copy(device))
    for key in range(60):
        ids = torch.tensor([key, (key * 31) % 60])
        assert torch.equal(mirror.rows("flat", ids), torch.from_numpy(whole["flat"][ids.numpy()]))
