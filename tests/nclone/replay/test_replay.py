"""The three replay formats: written, read back, and refused when damaged."""

import contextlib
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import nclone
from nclone import replay as rp
from nclone.errors import ReplayError
from nclone.levels.bundled import bundled_level, winning_inputs

MAP = bundled_level("walk").map_data
PLAYED = rp.Replay(rp.inputs_of_actions(winning_inputs("walk")), MAP, True)
FRAMES = some.binary(max_size=200).map(lambda raw: bytes(b & 7 for b in raw))


@given(FRAMES, some.integers(0, 2**32 - 1), some.integers(0, 4))
def test_an_attract_file_gives_back_level_inputs_and_ids(inputs, level_id, mode):
    written = rp.write_attract(rp.Replay(inputs, MAP, None, level_id, mode))
    got = rp.read_attract(written)
    assert (got.inputs, got.level_id, got.game_mode) == (inputs, level_id, mode)
    assert got.map_data[8:] == MAP[8:]


def test_the_first_part_of_an_attract_file_is_a_level():
    got = rp.read_attract(rp.write_attract(PLAYED))
    level = nclone.load_level(got.map_data)
    end = nclone.simulate(level, got.hor, got.jump)
    assert end.i[0, -1] == 8
    assert end.i[0, -2] != 8


def test_an_attract_file_has_the_layout_of_the_game():
    data = rp.write_attract(rp.Replay(b"\2\2\3", MAP, level_id=7, game_mode=0))
    section = data[len(MAP) :]
    assert int.from_bytes(data[:4], "little") == len(MAP) - 8
    assert int.from_bytes(data[4:8], "little") == 33 == len(section)
    assert section[:1] == b"\0"
    assert [int.from_bytes(section[i : i + 4], "little") for i in range(1, 25, 4)] == [
        33, 1, 3, 7, 0, 0,
    ]  # fmt: skip
    assert section[25:] == b"\1\xff\xff\xff\xff\2\2\3"


@given(FRAMES, some.booleans())
def test_a_compact_replay_gives_back_what_was_recorded(inputs, success):
    replay = rp.Replay(inputs, MAP, success)
    assert rp.read_compact(rp.write_compact(replay)) == replay


def test_a_compact_replay_of_version_0_is_a_success():
    sizes = len(MAP).to_bytes(4, "little") + len(PLAYED.inputs).to_bytes(4, "little")
    assert rp.read_compact(sizes + MAP + PLAYED.inputs) == PLAYED


@given(some.lists(FRAMES, min_size=1, max_size=5), some.integers(0, 2**32 - 1))
def test_a_download_gives_back_all_levels_of_an_episode(levels, number):
    sent = rp.Download(number, 5, 6, tuple(rp.Replay(inputs) for inputs in levels))
    assert rp.read_downloaded(rp.write_downloaded(sent)) == sent


def test_a_download_of_bare_inputs_is_split_at_the_separator():
    data = bytes(16) + zlib.compress(b"\2\2\3\x26\1\1")
    assert [level.inputs for level in rp.read_downloaded(data).levels] == [b"\2\2\3", b"\1\1"]


def test_input_bytes_decode_as_demos_do():
    replay = rp.Replay(bytes([0, 4, 2, 1, 5, 3, 6, 7, 8, 2]))
    assert replay.actions.tolist() == [0, 1, 2, 3, 4, 5, 1, 4]
    assert replay.hor.tolist() == [0, -1, 1, 0, -1, 1, -1, -1]
    assert replay.jump.tolist() == [0, 0, 0, 1, 1, 1, 0, 1]


@given(some.lists(some.integers(0, 5)))
def test_actions_and_input_bytes_are_the_same(actions):
    assert rp.actions_of_inputs(rp.inputs_of_actions(actions)).tolist() == actions
    with pytest.raises(ReplayError, match=r"use 0\.\.5"):
        rp.inputs_of_actions([*actions, 6])


READERS = {
    "attract": (rp.read_attract, rp.write_attract(PLAYED)),
    "compact": (rp.read_compact, rp.write_compact(PLAYED)),
    "downloaded": (rp.read_downloaded, rp.write_downloaded(rp.Download(1, 2, 3, (PLAYED,)))),
}


@pytest.mark.parametrize("form", READERS)
def test_every_truncation_is_one_error(form):
    read, data = READERS[form]
    for size in np.unique(np.linspace(0, len(data) - 1, 300).astype(int)):
        with pytest.raises(ReplayError):
            read(data[:size])


@pytest.mark.parametrize("form", READERS)
@given(some.data())
def test_damage_is_one_error_or_another_replay(form, data):
    read, whole = READERS[form]
    damaged = bytearray(whole)
    for _ in range(data.draw(some.integers(1, 6))):
        damaged[data.draw(some.integers(0, len(damaged) - 1))] = data.draw(some.integers(0, 255))
    with contextlib.suppress(ReplayError):
        assert read(bytes(damaged)) is not None


def test_a_replay_is_read_from_a_file(tmp_path):
    path = tmp_path / "win.replay"
    path.write_bytes(rp.write_compact(PLAYED))
    assert rp.read_compact(path) == PLAYED
    with pytest.raises(ReplayError, match=r"none\.replay cannot be read"):
        rp.read_compact(tmp_path / "none.replay")


def test_a_stream_that_grows_without_end_is_refused():
    bomb = bytes(16) + zlib.compress(bytes(1 << 25))
    with pytest.raises(ReplayError, match="more than 16777216 bytes"):
        rp.read_downloaded(bomb)


def test_a_replay_without_its_level_cannot_become_a_file():
    for write in (rp.write_attract, rp.write_compact):
        with pytest.raises(ReplayError, match="map_data"):
            write(rp.Replay(b"\1"))
