"""The edge codes what the environment gives, once, and says what is wrong with it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from frugal_rl.errors import EncodingError
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoder import Encoder, decode, needed_raw
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.observation.spec import Derived, ObservationSpec, Stored
from frugal_rl.observation.tables import Tables
from frugal_rl.testing.toy import TABLE, TOY_SPEC, ToyGame, map_rows, toy_tables


def encoding(storage=Storage.lossless, **fields):
    return Encoding.choose(TOY_SPEC, storage, fields=fields)


def worlds(n=3):
    made = ToyGame(n, 4, 20)
    made.seed([np.random.default_rng(world) for world in range(n)])
    made.begin(np.arange(n))
    return made


def test_dense_rows_are_the_raw_arrays_themselves():
    toy = worlds()
    rows = Encoder(encoding(), toy.tables, 3).encode(toy.observe())
    assert rows["position"] is toy.position


def test_without_reuse_rows_are_copies():
    toy = worlds()
    rows = Encoder(encoding(), toy.tables, 3, reuse=False).encode(toy.observe())
    assert not np.shares_memory(rows["position"], toy.position)
    assert_array_equal(rows["position"], toy.position)


@pytest.mark.parametrize("reuse", [True, False])
def test_ids_are_rows_of_32_bits_whatever_an_environment_counts_them_in(reuse):
    toy = worlds()
    raw = {**toy.observe(), "map_id": toy.map_id.astype(np.int64)}
    ids = Encoder(encoding(), toy.tables, 3, reuse=reuse).encode(raw)["map_id"]

    assert ids.dtype == np.int32
    assert_array_equal(ids, toy.map_id)


def test_coded_rows_are_written_to_the_same_memory_again():
    toy = worlds()
    edge = Encoder(encoding(), toy.tables, 3)
    assert edge.encode(toy.observe())["action_mask"] is not None
    first = edge.encode(toy.observe())["action_mask"]
    assert np.shares_memory(edge.encode(toy.observe())["action_mask"], first)


@pytest.mark.parametrize("storage", [Storage.dense, Storage.sparse, Storage.lossless])
def test_static_fields_survive_in_every_form(storage):
    toy = worlds()
    chosen = encoding(storage, doors="dense")
    rows = Encoder(chosen, toy.tables, 3).encode(toy.observe())
    shown = History(chosen, 3, 20).reset(rows)
    decoded = decode(chosen, shown, toy.tables)
    for n, level in enumerate(toy.map_id):
        key = toy.tables[TABLE].keys[level]
        assert_array_equal(decoded["walls"][n], map_rows(key)["walls"])
        doors = map_rows(key)["doors"]
        assert_array_equal(decoded["doors"][n, : len(doors)], doors)
        assert not decoded["doors"][n, len(doors) :].any()


def test_a_table_that_grows_is_coded_further():
    toy = worlds(1)
    edge = Encoder(encoding(Storage.dense), toy.tables, 1)
    edge.encode(toy.observe())
    for level in range(4):
        toy.map_id[0] = toy.tables[TABLE].intern(level, lambda level=level: map_rows(level))
        assert_array_equal(edge.encode(toy.observe())["walls"][0], map_rows(level)["walls"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position": np.zeros((3, 3), np.uint8)}, r"'position' is declared as \(2,\) uint8"),
        ({"position": np.zeros((3, 2), np.int64)}, "gave .* int64"),
        ({"map_id": np.array([0, 1, 99], np.int32)}, "Ids of table 'map' run from 0 to 99"),
        ({"speed": np.full((3, 2), 7, np.float32)}, r"within \[-1, 1\]"),
    ],
)
def test_what_disagrees_with_the_declaration_is_refused_by_name(change, message):
    toy = worlds()
    edge = Encoder(encoding(Storage.dense), toy.tables, 3, debug=True)
    with pytest.raises(EncodingError, match=message):
        edge.encode(toy.observe() | change)


def test_a_missing_field_is_named():
    toy = worlds()
    raw = toy.observe()
    del raw["position"]
    with pytest.raises(EncodingError, match="gave no 'position'"):
        Encoder(encoding(), toy.tables, 3).encode(raw)


def test_a_field_of_past_rows_says_that_it_cannot_be_computed_here():
    toy = worlds()
    raw = toy.observe()
    del raw["turns"]
    with pytest.raises(EncodingError, match=r"env\.fields\.turns=derived"):
        Encoder(encoding(Storage.dense), toy.tables, 3).encode(raw)


def test_only_fields_that_are_read_are_asked_for():
    given = worlds().observe().keys()
    assert set(needed_raw(encoding(), given)) == {
        "map_id", "action_mask", "position", "speed", "trail", "moves",
    }  # fmt: skip
    assert "distance" not in needed_raw(encoding(Storage.dense), given)


def test_derived_fields_of_derived_fields_are_computed():
    spec = ObservationSpec(
        (
            Stored("x", (2,), np.int32, 0, 9, observed=False),
            Derived("double", (2,), np.int32, 0, 18, observed=False, sources=("x",),
                    derive=lambda s, t: 2 * s["x"]),
            Derived("sum", (), np.int32, 0, 27, sources=("x", "double"),
                    derive=lambda s, t: (s["x"] + s["double"]).sum(1, dtype=np.int32)),
        )
    )  # fmt: skip
    for storage in (Storage.dense, Storage.lossless):
        chosen = Encoding.choose(spec, storage)
        rows = Encoder(chosen, Tables(), 1).encode({"x": np.array([[1, 2]], np.int32)})
        assert decode(chosen, rows, Tables())["sum"] == [9]


def test_tables_give_their_rows_and_empty_copies():
    tables = toy_tables()
    tables[TABLE].intern("a", lambda: map_rows(1))
    tables[TABLE].intern("b", lambda: map_rows(2))
    for name, value in map_rows(2).items():
        assert_array_equal(tables[TABLE].row(1)[name], value)
    assert len(tables.empty()[TABLE]) == 0
    assert set(tables.empty()[TABLE].fields) == {"walls", "doors"}


def test_a_row_that_the_environment_made_itself_is_taken_as_it_is():
    toy = worlds()
    raw = toy.observe()
    made = Encoder(encoding(), toy.tables, 3).encode(raw)["action_mask"].copy()
    given = {**raw, "action_mask_bits": made}
    del given["action_mask"]
    assert Encoder(encoding(), toy.tables, 3).encode(given)["action_mask"] is made
    assert "action_mask_bits" in needed_raw(encoding(), given)


def test_a_made_row_of_another_form_is_refused():
    toy = worlds()
    raw = {**toy.observe(), "action_mask_bits": np.zeros((3, 2), np.uint8)}
    with pytest.raises(EncodingError, match=r"'action_mask_bits' holds rows of \(1,\) uint8"):
        Encoder(encoding(), toy.tables, 3).encode(raw)


def test_a_field_named_like_another_ones_made_row_stays_a_field():
    spec = ObservationSpec(
        (
            Stored("flags", (8,), np.bool_, doc="what is on"),
            Stored("flags_bits", (1,), np.uint8, 0, 255, "another thing"),
        )
    )
    chosen = Encoding.choose(spec, Storage.lossless)
    raw = {"flags": np.ones((1, 8), np.bool_), "flags_bits": np.array([[7]], np.uint8)}
    rows = Encoder(chosen, Tables(), 1).encode(raw)
    assert rows["flags"].tolist() == [[255]]
    assert rows["flags_bits"].tolist() == [[7]]


def test_lasting_rows_are_not_overwritten():
    toy = worlds()
    encoder = Encoder(encoding(Storage.dense), toy.tables, 3)
    kept = encoder.encode(toy.observe(np.array([1])), lasting=True)
    before = {name: row.copy() for name, row in kept.items()}
    toy.advance(np.array([1, 1, 1]))
    encoder.encode(toy.observe())
    for name, row in kept.items():
        assert_array_equal(row, before[name])
        assert not any(np.shares_memory(row, out) for out in encoder._out.values())
