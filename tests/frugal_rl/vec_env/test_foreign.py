"""Contents of strangers are told apart by every byte of every field."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal

from frugal_rl.observation.tables import StaticTable, TableField, Tables
from frugal_rl.vec_env.foreign import intern_by_content
from frugal_rl.vec_env.single import IdMap

FIELDS = (TableField("walls", (4, 4), np.uint8), TableField("weights", (3,), np.float32))


def contents():
    """Rows that differ in one byte, in one field, in order only, or in a sign of zero."""
    walls, weights = np.zeros((4, 4), np.uint8), np.zeros(3, np.float32)
    rows = [(walls, weights)]
    for k in range(16):
        one = walls.copy()
        one.flat[k] = 1
        rows.append((one, weights))
    for k in range(3):
        for value in (1.0, -0.0, np.nextafter(np.float32(0), np.float32(1))):
            other = weights.copy()
            other[k] = value
            rows.append((walls, other))
    return [dict(zip(("walls", "weights"), row, strict=True)) for row in rows]


def test_every_content_has_an_id_of_its_own_and_equal_ones_share_it():
    table = StaticTable("level", FIELDS)
    ids = [intern_by_content(table, row) for row in contents()]
    assert ids == list(range(len(ids)))
    again = [intern_by_content(table, row) for row in contents()]
    assert again == ids
    for row, place in zip(contents(), ids, strict=True):
        kept = table.row(place)
        assert all(kept[name].tobytes() == row[name].tobytes() for name in row)


def test_each_environments_own_ids_become_the_shared_ones():
    tables = Tables({"level": StaticTable("level", FIELDS)})
    ids, rows = IdMap(tables, 3), contents()
    ids.learn(0, [(0, "level", 0, "a", rows[0]), (1, "level", 0, "b", rows[1])])
    ids.learn(2, [(0, "level", 0, "b", rows[1]), (0, "level", 1, "c", rows[2])])
    raw = {"level_id": np.array([0, 0, 0], np.int32)}
    assert_array_equal(ids.shared(raw, np.arange(3))["level_id"], [0, 1, 1])
    raw = {"level_id": np.array([1], np.int32)}
    assert_array_equal(ids.shared(raw, np.array([2]))["level_id"], [2])
    assert len(tables["level"]) == 3
