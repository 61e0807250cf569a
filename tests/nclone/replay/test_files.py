"""Replays in files: formats by suffix, outcomes, verdicts, conversion; damage is named."""

import contextlib

import numpy as np
import pytest

from frugal_rl.errors import DiskError
from nclone.errors import ReplayError
from nclone.levels.bundled import FOLDER, bundled_level, bundled_names, winning_inputs
from nclone.levels.format import COUNTS_AT
from nclone.replay import Replay, inputs_of_actions
from nclone.replay.files import read_replay, read_replays, write_replays
from nclone.replay.outcome import End, judge, path_of, play_out, replay_files, verify_all

WALK = bundled_level("walk")
WON = Replay(inputs_of_actions(winning_inputs("walk")), WALK.map_data, True)
DIES = Replay(inputs_of_actions([2] * 400), bundled_level("mines").map_data, False)


@pytest.mark.parametrize("suffix", [".replay", ".attract", ".download", ".inputs"])
def test_each_suffix_gives_the_inputs_back(tmp_path, suffix):
    path = tmp_path / f"run{suffix}"
    write_replays(path, [WON])
    found = read_replay(path)
    assert found.inputs == WON.inputs
    if suffix in (".replay", ".attract"):
        assert found.map_data[COUNTS_AT:] == WON.map_data[COUNTS_AT:]


def test_an_episode_of_several_levels_fits_a_download_only(tmp_path):
    write_replays(tmp_path / "e.download", [WON, DIES])
    assert [r.inputs for r in read_replays(tmp_path / "e.download")] == [WON.inputs, DIES.inputs]
    with pytest.raises(ReplayError, match="2 levels"):
        read_replay(tmp_path / "e.download")
    with pytest.raises(ReplayError, match=r"use \.download"):
        write_replays(tmp_path / "e.replay", [WON, DIES])


def test_a_wrong_suffix_and_wrong_bytes_are_named(tmp_path):
    with pytest.raises(ReplayError, match=r"run\.mp3 ends in"):
        read_replays(tmp_path / "run.mp3")
    with pytest.raises(ReplayError, match=r"ends in '\.mp3'"):
        write_replays(tmp_path / "run.mp3", [WON])
    (tmp_path / "a.inputs").write_bytes(b"\1\2\x7f")
    with pytest.raises(ReplayError, match=r"Byte 2 of .*a\.inputs is 127"):
        read_replay(tmp_path / "a.inputs")


def test_outcomes_tell_win_death_and_neither():
    assert play_out(WALK, WON).end is End.won
    assert play_out(bundled_level("mines"), DIES).end is End.died
    alive = play_out(WALK, Replay(bytes(10)))
    assert (alive.end, alive.frame, alive.frames) == (End.alive, 10, 10)


@pytest.mark.parametrize(
    ("replay", "good", "note"),
    [
        (WON, True, ""),
        (Replay(WON.inputs, success=None), True, ""),
        (Replay(WON.inputs[:-20], success=True), False, "says completed, but ends alive"),
        (Replay(WON.inputs, success=False), False, "says not completed, but wins"),
        (Replay(WON.inputs + bytes(5), success=True), False, "won 5 frames early"),
        (Replay(WON.inputs[:-20], success=False), True, ""),
        (Replay(WON.inputs[:-20]), False, "without a reset"),
        (Replay(WON.inputs[:-20] + b"\x08"), True, ""),
    ],
)
def test_a_verdict_says_what_is_wrong(replay, good, note):
    found, words = judge(replay, play_out(WALK, replay))
    assert found == good
    assert note in words


def test_every_bundled_solution_reproduces_its_win():
    verdicts = verify_all(FOLDER)
    assert len(verdicts) == len(bundled_names())
    assert all(v.reproduced and v.outcome.end is End.won for v in verdicts)


def test_a_folder_is_searched_and_damage_is_a_verdict(tmp_path):
    (tmp_path / "deep").mkdir()
    write_replays(tmp_path / "deep" / "good.replay", [WON])
    write_replays(tmp_path / "lone.inputs", [WON])
    (tmp_path / "bad.replay").write_bytes((tmp_path / "deep" / "good.replay").read_bytes()[:50])
    bad, good, lone = verify_all(tmp_path)
    assert (bad.reproduced, good.reproduced, lone.reproduced) == (False, True, None)
    assert "truncated" in bad.note
    assert verify_all(tmp_path, WALK)[2].reproduced


def test_a_folder_without_replays_is_refused(tmp_path):
    with pytest.raises(ReplayError, match="no replay"):
        replay_files(tmp_path)
    with pytest.raises(ReplayError, match="no folder or file"):
        replay_files(tmp_path / "none")


def test_the_way_ends_where_the_run_ends():
    way = path_of(WALK, np.append(winning_inputs("walk"), [0] * 50))
    assert len(way) == len(winning_inputs("walk")) + 1
    assert tuple(way[0]) == WALK.spawn


@pytest.mark.parametrize("suffix", [".replay", ".attract", ".download", ".inputs"])
def test_every_truncation_of_a_file_is_read_or_refused_in_words(tmp_path, suffix):
    path = tmp_path / f"run{suffix}"
    write_replays(path, [WON])
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with contextlib.suppress(ReplayError):
            read_replays(path)


def test_a_folder_in_the_way_is_reported_and_nothing_stays(tmp_path):
    (tmp_path / "run.replay").mkdir()
    with pytest.raises(DiskError, match=r"run\.replay cannot be written"):
        write_replays(tmp_path / "run.replay", [WON])
    assert [p.name for p in tmp_path.iterdir()] == ["run.replay"]
