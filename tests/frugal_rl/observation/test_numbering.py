"""Static rows get the ids back that stored rows name them by, and files are not believed."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from frugal_rl.errors import EncodingError
from frugal_rl.observation.numbering import number_again, numbered
from frugal_rl.observation.tables import StaticTable, TableField, Tables

FIELDS = (
    TableField("wall", (2,), np.uint8),
    TableField("edge", (0, 3), np.float32, ragged=True),
    TableField("kind", (0, 2), np.int16, ragged=True, repeated=True),
)
KEYS = [("a", 1), "b", b"c", 4, np.int64(5)]


def content(key):
    rng = np.random.default_rng(len(str(key)) * 7 + str(key).encode()[-1])
    edges = rng.random((rng.integers(4), 3), np.float32)
    kinds = rng.integers(0, 2, (rng.integers(5), 2)).astype(np.int16)
    return {"wall": rng.integers(0, 9, 2).astype(np.uint8), "edge": edges, "kind": kinds}


def tables_with(keys):
    tables = Tables({"map": StaticTable("map", FIELDS)})
    for key in keys:
        tables["map"].intern(key, lambda key=key: content(key))
    return tables


def same_rows(table, keys):
    assert [table.ids[key] for key in keys] == list(range(len(keys)))
    for i, key in enumerate(keys):
        for name, value in content(key).items():
            assert_array_equal(table.row(i)[name], value)


def test_rows_get_their_ids_back_and_others_follow():
    kept = numbered(tables_with(KEYS))
    tables = tables_with([4, "new", ("a", 1)])
    assert number_again(tables, kept)["map"].tolist() == [3, 5, 0]
    same_rows(tables["map"], [*KEYS, "new"])
    number_again(tables, numbered(tables))
    same_rows(tables["map"], [*KEYS, "new"])


def spoiled(change):
    kept = numbered(tables_with(KEYS))
    change(kept["map"])
    return kept


@pytest.mark.parametrize(
    "kept",
    [
        spoiled(lambda m: m["keys"].append("more")),
        spoiled(lambda m: m["keys"].__setitem__(1, m["keys"][2])),
        spoiled(lambda m: m["keys"].__setitem__(1, {})),
        spoiled(lambda m: m["rows"].pop("wall")),
        spoiled(lambda m: m["rows"].update(wall=m["rows"]["wall"].astype(np.float32))),
        spoiled(lambda m: m["rows"].update(wall=m["rows"]["wall"][:, :1])),
        spoiled(lambda m: m["ends"].update(edge=m["ends"]["edge"] + 1)),
        spoiled(lambda m: m["ends"].update(edge=m["ends"]["edge"][::-1].copy())),
        spoiled(lambda m: m["ends"].update(edge=m["ends"]["edge"].astype(np.int32))),
        spoiled(lambda m: m.update(ends=None)),
        {"map": 3},
    ],
)
def test_what_a_file_says_of_rows_is_looked_at_first(kept):
    tables = tables_with(["old"])
    with pytest.raises(EncodingError, match="none of its rows"):
        number_again(tables, kept)
    same_rows(tables["map"], ["old"])


@pytest.mark.parametrize("kept", [None, {}, {"other": {}}])
def test_a_file_without_rows_is_refused_with_the_remedy(kept):
    with pytest.raises(EncodingError, match="Begin the run anew"):
        number_again(tables_with([]), kept)


def test_a_key_that_no_file_can_hold_is_named():
    with pytest.raises(NotImplementedError, match="table 'map' is a frozenset"):
        numbered(tables_with([frozenset()]))
