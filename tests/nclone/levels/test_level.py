"""Level bytes: what is read, and that anything else is one LevelError (issue: bad levels)."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

import nclone
from nclone.errors import LevelError, LevelWarning
from nclone.levels.bundled import bundled_level, bundled_names
from nclone.levels.format import RECORDS_AT, pack_level

TILES = np.zeros((23, 42), np.uint8)
NINJA = (0, 50, 50, 0, 0)
REAL = [bundled_level(name).map_data for name in bundled_names()]
GOLDEN = np.load(Path(__file__).resolve().parents[2] / "data" / "nclone" / "golden.npz")


def golden_maps():
    sizes = [entry["map"] for entry in json.loads(str(GOLDEN["_meta"]))]
    maps = GOLDEN["map"].tobytes()
    ends = np.cumsum(sizes)
    return [maps[end - size : end] for end, size in zip(ends, sizes, strict=True)]


REAL += golden_maps()[::5]


def with_byte(data, at, value):
    return data[:at] + bytes([value]) + data[at + 1 :]


def test_tiles_have_a_full_border_and_come_in_rows_and_columns():
    tiles = TILES.copy()
    tiles[3, 5] = 9
    level = nclone.load_level(pack_level(tiles, [NINJA]))
    assert level.tiles.shape == (25, 44)
    assert level.tiles[4, 6] == 9
    assert (level.tiles[[0, -1]] == 1).all()
    assert (level.tiles[:, [0, -1]] == 1).all()
    assert not level.tiles.flags.writeable


def test_entities_come_by_type_with_exits_before_their_switches_and_doors_at_theirs():
    records = [NINJA, (6, 20, 22, 2, 0), (7, 30, 30, 0, 0), (2, 8, 8, 0, 0)]
    records += [(3, 10, 10, 0, 0), (3, 12, 10, 0, 0), (4, 14, 10, 0, 0), (4, 16, 10, 0, 0)]
    level = nclone.load_level(pack_level(TILES, records, title="Doors"))
    assert level.entities[:, :3].tolist() == [
        [2, 48, 48],
        [3, 60, 60],
        [4, 84, 60],
        [3, 72, 60],
        [4, 96, 60],
        [6, 180, 180],
    ]
    assert level.doors.tolist() == [[5, 120, 132, 1, 1]]
    assert (level.name, level.spawn) == ("Doors", (300.0, 300.0))


def test_the_key_stands_for_the_content():
    assert len({nclone.load_level(data).key for data in REAL}) == len(set(REAL))
    assert nclone.load_level(REAL[0]).key == nclone.load_level(bytes(REAL[0])).key


def test_a_level_file_is_read_by_its_path(tmp_path):
    path = tmp_path / "room.map"
    path.write_bytes(pack_level(TILES, [NINJA]))
    assert nclone.load_level(path).name == "room"
    assert nclone.load_level(str(path)).spawn == (300.0, 300.0)


BAD = {
    "truncated in the header": (REAL[0][:700], r"ends at byte 700.*truncated"),
    "empty": (b"", r"ends at byte 0"),
    "oversized": (REAL[0] + bytes(5 * 9000), r"more than 8192 entity records"),
    "ninja outside": (with_byte(REAL[0], RECORDS_AT + 1, 200), r"\(200, \d+\), outside the map"),
    "entity outside": (pack_level(TILES, [NINJA, (2, 9, 101, 0, 0)]), r"gold record at byte 1235"),
    "exit without switch": (pack_level(TILES, [NINJA, (3, 9, 9, 0, 0)]), r"byte 1240.*end of the"),
    "exits not counted": (with_byte(REAL[0], 1156, 7), r"counts the exits and is 7"),
    "door without switch": (pack_level(TILES, [NINJA, (6, 9, 9, 0, 0)]), r"directly behind"),
    "orientation": (pack_level(TILES, [NINJA, (11, 9, 9, 8, 0)]), r"byte 1238 is 8; use 0..7"),
    "drone mode": (pack_level(TILES, [NINJA, (14, 9, 9, 0, 4)]), r"byte 1239 is 4; use 0..3"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_level_is_one_error_that_names_the_place(case):
    data, message = BAD[case]
    with pytest.raises(LevelError, match=message):
        nclone.load_level(data)


def test_bytes_after_the_last_record_are_left_out_with_a_warning():
    plain = nclone.load_level(REAL[0])
    with pytest.warns(LevelWarning, match=r"record at byte \d+ has 2 of 5 bytes and is left out"):
        odd = nclone.load_level(REAL[0] + b"\1\2")
    assert odd.map_data == plain.map_data
    np.testing.assert_array_equal(odd.entities, plain.entities)


@pytest.mark.parametrize(("first", "creates"), [(134, 0), (46, 0), (2, 1)])
def test_the_ninja_starts_where_the_first_record_stands_whatever_its_type(first, creates):
    data = pack_level(TILES, [NINJA, (1, 9, 9, 0, 0)])
    with pytest.warns(LevelWarning, match=rf"byte 1230 has type {first}, not 0"):
        odd = nclone.load_level(with_byte(data, RECORDS_AT, first))
    plain = nclone.load_level(data)
    assert odd.spawn == plain.spawn
    assert len(odd.entities) == len(plain.entities) + creates


def test_an_error_names_the_file(tmp_path):
    path = tmp_path / "broken.map"
    path.write_bytes(b"short")
    with pytest.raises(LevelError, match=r"broken\.map: The level ends at byte 5"):
        nclone.load_level(path)
    with pytest.raises(LevelError, match="cannot be read: No such file"):
        nclone.load_level(tmp_path / "missing.map")


def test_types_that_are_not_simulated_create_nothing():
    records = [NINJA, (15, 200, 200, 9, 9), (23, 0, 0, 0, 0), (28, 40, 40, 200, 200)]
    assert nclone.load_level(pack_level(TILES, records)).entities[:, 0].tolist() == [28]


def test_tiles_that_do_not_exist_are_empty():
    odd, empty = TILES.copy(), TILES.copy()
    odd[10:14] = 200
    jump = np.arange(200) % 7 < 3
    walk = np.ones(200, int)
    one, two = (nclone.simulate(pack_level(t, [NINJA]), walk, jump) for t in (odd, empty))
    assert (one.f == two.f).all()


@pytest.mark.parametrize(
    ("tiles", "records", "message"),
    [
        (np.zeros((10, 10)), [NINJA], "pass \\[23, 42\\]"),
        (TILES, [], "exactly one ninja"),
        (TILES, [NINJA, (2, 300, 0, 0, 0)], "outside 0..255"),
    ],
)
def test_what_cannot_be_packed_is_refused(tiles, records, message):
    with pytest.raises(LevelError, match=message):
        pack_level(tiles, records)


def plays_or_is_refused(data):
    """One LevelError, or 40 frames with finite positions."""
    try:
        level = nclone.load_level(data)
    except LevelError:
        return
    hor = np.resize([1, 1, 1, 0, -1], 40)
    trajectory = nclone.simulate(level, hor, np.resize([0, 0, 1, 1, 1, 0], 40))
    assert np.isfinite(trajectory.f).all()
    assert np.isfinite(trajectory.ep).all()
    assert len(trajectory.es) == len(level.entities)


@settings(max_examples=300)
@given(some.binary(max_size=3000))
@example(b"")
def test_any_bytes_are_a_level_or_one_error(data):
    plays_or_is_refused(data)


MUTATIONS = some.lists(
    some.tuples(some.integers(184, 3000), some.integers(0, 255)), min_size=1, max_size=12
)


@settings(max_examples=600)
@given(
    data=some.sampled_from(REAL),
    changes=MUTATIONS,
    cut=some.integers(0, 40),
    tail=some.binary(max_size=20),
)
def test_mutated_levels_play_or_are_one_error(data, changes, cut, tail):
    mutant = bytearray(data[: len(data) - cut] if cut < 10 else data) + tail
    for at, value in changes:
        mutant[at % len(mutant)] = value
    plays_or_is_refused(bytes(mutant))


@settings(max_examples=300)
@given(data=some.sampled_from(REAL), records=some.lists(some.binary(min_size=5, max_size=5)))
def test_levels_with_random_records_play_or_are_one_error(data, records):
    plays_or_is_refused(data + b"".join(records))


@pytest.mark.slow
@settings(max_examples=20000)
@given(data=some.sampled_from(REAL), changes=MUTATIONS)
def test_twenty_thousand_mutants_play_or_are_one_error(data, changes):
    mutant = bytearray(data)
    for at, value in changes:
        mutant[at % len(mutant)] = value
    plays_or_is_refused(bytes(mutant))
