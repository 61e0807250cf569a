"""Tables, growing arrays, histories, groups and twins: what they hold and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from frugal_rl.errors import ConfigError, DataError, EncodingError
from frugal_rl.observation.aligned import aligned_empty
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.decoder import Decoder, resolve_twin
from frugal_rl.observation.distinct import by_first_sight, content_ids, distinct
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.found_spec import FoundField, FoundSpec, read_found_spec
from frugal_rl.observation.growing_array import GrowingArray
from frugal_rl.observation.history import History
from frugal_rl.observation.spec import (
    Derived,
    ObservationSpec,
    Padding,
    Stored,
)
from frugal_rl.observation.tables import StaticTable, TableField, Tables
from frugal_rl.testing.refusals import text_of
from frugal_rl.testing.toy import TOY_SPEC, toy_tables

SPEED = Stored("speed", (3,), np.float32, -1, 1)


def table(*fields: TableField) -> StaticTable:
    return StaticTable("map", fields or (TableField("walls", (3,), np.uint8),))


def test_a_table_refuses_other_fields_and_ids_beyond_its_rows():
    walls = table()

    assert text_of(EncodingError, lambda: walls.intern(1, dict)) == (
        "Table 'map' wants ['walls'], got []."
    )
    assert len(walls) == 0
    walls.intern(1, lambda: {"walls": np.ones(3, np.uint8)})
    tables = Tables({"map": walls})
    tables.check_ids({"map_id": np.array([0])})
    tables.check_ids({"map_id": np.array([], int), "other_id": np.array([9])})
    for ids, said in (([0, 1], "0 to 1"), ([-1], "-1 to -1")):
        assert text_of(
            EncodingError, lambda ids=ids: tables.check_ids({"map_id": np.array(ids)})
        ) == (f"An id of table 'map' lies outside its 1 rows: {said}.")


def test_a_table_ends_where_ids_would_lose_bits_as_floats(monkeypatch):
    monkeypatch.setattr("frugal_rl.observation.tables.MAX_ID", 3)
    walls = table()
    for key in range(2):
        assert walls.intern(key, lambda: {"walls": np.ones(3, np.uint8)}) == key

    assert text_of(EncodingError, lambda: walls.intern(2, dict)) == (
        "Table 'map' holds 2 rows, the most it can."
    )
    assert walls.intern(1, dict) == 1


def test_a_table_takes_its_arrays_and_where_ragged_rows_begin():
    doors = table(
        TableField("walls", (3,), np.uint8), TableField("doors", (4, 2), np.float32, True)
    )
    for key, count in enumerate((2, 0, 3)):
        rows = {"walls": np.full(3, key), "doors": np.full((count, 2), key)}
        doors.intern(key, lambda rows=rows: rows)

    assert doors.offsets("doors").tolist() == [0, 2, 2, 5]
    assert doors.items("doors", 2).tolist() == [[2, 2]] * 3
    assert doors.used_bytes == 3 * 3 + 5 * 8 + 4 * 8
    assert doors.nbytes == sum(
        a.values.nbytes for a in (*doors.arenas.values(), *doors._offsets.values())
    )
    assert Tables({"map": doors, "other": table()}).nbytes == doors.nbytes
    assert doors.keys == [0, 1, 2]


def test_an_array_grows_by_half_or_to_what_is_needed():
    array = GrowingArray((2,), np.int16)
    array.append(np.arange(8).reshape(4, 2))
    assert (array.row_bytes, array.nbytes, array.allocated_with(0)) == (4, 16, 16)
    assert array.allocated_with(1) == array.allocated_with(2) == 6 * 4
    assert array.allocated_with(7) == 11 * 4
    array.append(np.array([[9, 9]]))
    assert (len(array.values), array.used, array.used_bytes) == (6, 5, 20)
    assert array.read(3, 5).tolist() == [[6, 7], [9, 9]]
    array.select(np.array([4, 0]))
    assert (array.values.tolist(), array.used, array.version) == ([[9, 9], [0, 1]], 2, 1)
    array.clear()
    assert (array.nbytes, array.used, array.version) == (0, 0, 2)


def test_a_history_holds_two_windows_of_rows_or_an_episode_and_the_ages():
    encoding = Encoding.choose(TOY_SPEC)

    assert History(encoding, 4, 20).nbytes == 4 * (2 * 3 * 25 + 21 * 1 + 4)
    plain = Encoding.choose(ObservationSpec((SPEED,)))
    assert History(plain, 4, 20).nbytes == 0


@pytest.mark.parametrize("padding", list(Padding))
def test_a_history_goes_on_exactly_and_shares_nothing_with_its_state(padding):
    field = Stored("x", (1,), np.int16, 0, 99, window=3, padding=padding)
    encoding = Encoding.choose(ObservationSpec((field,)))
    one, two = History(encoding, 2), History(encoding, 2)
    one.reset({"x": np.array([[1], [2]], np.int16)})
    one.push({"x": np.array([[3], [4]], np.int16)}, np.array([False, True]))
    state = one.state()
    two.load(state)
    state["windows"]["x"][:] = state["age"][:] = 77
    for turn in range(5):
        rows, done = np.full((2, 1), 10 + turn, np.int16), np.array([turn == 2, False])
        shown = [h.push({"x": rows}, done)[0] for h in (one, two)]
        np.testing.assert_array_equal(shown[0]["x"], shown[1]["x"])
        np.testing.assert_array_equal(shown[0]["age"], shown[1]["age"])


def test_final_rows_are_shown_with_what_came_before_them_and_only_where_they_are_wanted():
    field = Stored("x", (1,), np.int16, 0, 99, window=2)
    history = History(Encoding.choose(ObservationSpec((field,))), 2)
    history.reset({"x": np.array([[1], [2]], np.int16)})
    rows, done = {"x": np.array([[3], [4]], np.int16)}, np.array([False, True])

    shown, final = history.push(rows, done, np.array([1]), {"x": np.array([[9]], np.int16)})

    assert final["x"].tolist() == [[[2], [9]]]
    assert final["age"].tolist() == [[1]]
    assert shown["x"].tolist() == [[[1], [3]], [[0], [4]]]
    assert shown["age"].tolist() == [[1], [0]]
    assert history.push(rows, done, np.array([], int), {"x": np.zeros((0, 1))})[1] == {}


def test_equal_rows_are_grouped_by_first_sight_and_by_their_bits():
    ids = torch.tensor([7, 3, 7, 5, 3])
    unique, inverse = distinct(ids)
    firsts, groups = by_first_sight(ids)

    assert (unique.tolist(), inverse.tolist()) == ([3, 5, 7], [2, 0, 2, 1, 0])
    assert (firsts.tolist(), groups.tolist()) == ([0, 1, 3], [0, 1, 0, 2, 1])
    rows = torch.tensor([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    assert content_ids(rows).tolist() == [0, 1, 2, 0]  # sums of the first and third are equal


def test_an_array_begins_on_a_cache_line():
    for shape in ((3, 5), (1,), (0, 4)):
        array = aligned_empty(shape, np.float32)
        assert array.shape == shape
        assert array.dtype == np.float32
        assert array.size == 0 or array.ctypes.data % 64 == 0


@pytest.mark.parametrize("path", ["os:getcwd", "frugal_rl.testing.toy_twins", "frugal_rl.x:"])
def test_a_twin_lies_inside_a_package_that_is_trusted(path):
    said = text_of(ConfigError, lambda: resolve_twin(path))

    assert said.startswith(f"The torch twin '{path}' is not 'package.module:function' inside ")
    assert said.endswith(". Name the package in plugins=[...] to allow it.")


@pytest.mark.parametrize("path", ["frugal_rl.no_such_room:f", "frugal_rl.testing.toy_twins:no"])
def test_a_twin_that_is_not_there_is_named(path):
    said = text_of(ConfigError, lambda: resolve_twin(path))

    assert said.startswith(f"The torch twin '{path}' cannot be imported: ")


def test_a_field_that_is_neither_shown_nor_stored_cannot_be_read():
    decoder = Decoder(Encoding.choose(TOY_SPEC, Storage.dense), toy_tables())

    assert text_of(ConfigError, lambda: decoder({})["moves"]) == (
        "The network reads 'moves', which env.obs does not show and which does not follow from "
        "what is stored. Choose memory=lossless, an env.obs that shows it, or another agent."
    )


def linked(**choice):
    """A log, what follows from it, what is seen and what is not seen of that; all dense else."""
    return Encoding.choose(
        ObservationSpec(
            (
                Stored("log", (2,), np.uint8, 0, 9, observed=False),
                Derived("depth", (2,), np.uint8, sources=("log",), observed=False),
                Derived("seen", (2,), np.uint8, sources=("depth",)),
                Derived("view", (2,), np.uint8, sources=("depth",), observed=False),
            )
        ),
        Storage.dense,
        fields=choice,
    )


@pytest.mark.parametrize(
    "choice", [{}, {"view": "derived"}, {"view": "derived", "depth": "derived"}]
)
def test_a_field_cannot_be_read_through_others_that_are_not_stored(choice):
    said = text_of(ConfigError, lambda: linked(**choice).check_readable("view"))

    assert said.endswith("Choose memory=lossless, an env.obs that shows it, or another agent.")


def test_a_field_that_follows_from_what_is_stored_is_read_once_it_is_derived():
    stored = {"seen": "derived", "depth": "derived"}
    said = text_of(ConfigError, lambda: linked(**stored).check_readable("view"))

    assert "Choose env.fields.view=derived or memory=lossless" in said
    linked(**stored, view="derived").check_readable("view")


def test_a_study_is_written_and_read_back_and_refused_where_it_is_none(tmp_path):
    found = FoundSpec(
        {"map": FoundField("distinct rows", 400.0, 3.5), "new": FoundField("as it is", 0, 0)}
    )
    path = tmp_path / "found.yaml"
    path.write_text(found.text())

    kind = ((100,), np.dtype(np.float32))  # 400 bytes
    assert read_found_spec(path) == found
    assert (found.share("map"), found.share("new"), found.share("other")) == (3.5 / 400, 0.99, 0.99)
    assert FoundSpec({"x": FoundField("as it is", 10.0, 11.0)}).share("x") == 0.99
    found.check(dict.fromkeys(["map", "new", "more"], kind), "the file")
    assert text_of(
        DataError, lambda: found.check(dict.fromkeys(["new", "b", "a"], kind), "the file")
    ) == (
        "the file names ['map'], which this environment does not observe; it has ['a', 'b', "
        "'new']. Study it anew: python scripts/study.py env=gymnasium env.id=..."
    )
    path.write_text("fields: {map: {form: as it is}}")
    assert text_of(DataError, lambda: read_found_spec(path)).endswith(
        "is no study of an environment (KeyError: 'dense_bytes'). Write one with: python "
        "scripts/study.py env=gymnasium env.id=..."
    )


def test_the_rows_that_decide_what_a_field_shows():
    referred, stored = (Encoding.choose(TOY_SPEC, s) for s in (Storage.lossless, Storage.dense))

    assert referred.origins("picture") == ("map_id", "position")
    assert referred.origins("walls") == ("map_id",)
    assert referred.origins("turns") == ("moves",)
    assert referred.origins("trail") == ("trail",)
    assert stored.origins("picture") == ("picture",)
