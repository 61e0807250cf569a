"""Segments: only what is new is written, everything comes back, damage is told."""

from __future__ import annotations

import errno
import io
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from rich.console import Console

from frugal_rl.errors import CheckpointError, DataError, DiskError
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.report.log import Log
from frugal_rl.run import disk
from frugal_rl.run.checkpoints import load_checkpoint, save_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.keeping import verdict_lines, verify_checkpoints
from frugal_rl.run.replay_aside import (
    Unread,
    brought_back,
    compared,
    forget_unused,
    set_aside,
)
from frugal_rl.run.segments import BLOCK_BYTES, Segments
from frugal_rl.run.trainer import train
from frugal_rl.store.replay import ReplayBuffer

SPACE = spaces.Box(0, 255, (2, 40, 40), np.uint8)
CAPACITY = 3000


def frame(step):
    """A picture of which a quarter is noise, by its step alone."""
    picture = np.zeros((40, 40), np.uint8)
    picture[10:30, 10:30] = (np.arange(400) * 40503 * (step + 7) >> 9 & 255).reshape(20, 20)
    picture[step % 37 : step % 37 + 3, step * 7 % 36] = step % 251 + 1
    return picture


def replay_after(count, replay=None, begin=0, location="ram"):
    """A replay to which the steps of one endless game were added."""
    replay = replay or ReplayBuffer(
        CAPACITY, SPACE, spaces.Discrete(2), "cpu",
        frame_stack=2, location=RolloutLocation(location),
    )  # fmt: skip
    for step in range(begin, count):
        now, then = (np.stack([frame(s - 1), frame(s)])[None] for s in (step, step + 1))
        end = np.array([step % 200 == 199])
        replay.add(now, then, np.array([step % 2]), np.array([step * 1.0]), end, [{}])
    return replay


def assert_same(ours, theirs):
    places = np.arange(theirs.size()), np.zeros(theirs.size(), int)
    assert ours.count == theirs.count
    assert np.array_equal(ours.rewards, theirs.rewards)
    assert np.array_equal(ours.observations[places], theirs.observations[places])
    assert np.array_equal(ours.next_observations[places], theirs.next_observations[places])


def test_a_save_writes_what_is_new_and_the_whole_comes_back(tmp_path):
    segments = Segments(tmp_path)
    replay = replay_after(2000)
    first = segments.save(replay.state())
    replay_after(2100, replay, 2000)
    second = segments.save(replay.state())
    again = segments.save(replay.state())

    other = replay_after(0)
    other.load(segments.load())
    assert second.new_bytes < first.new_bytes / 3
    assert again.new_bytes == 0
    assert_same(other, replay)
    assert_same(replay_after(2300, other, 2100), replay_after(2300, replay, 2100))


def test_an_older_segment_is_still_what_it_was_and_old_ones_go_once_unused(tmp_path):
    segments = Segments(tmp_path)
    replay = replay_after(1000)
    for end in range(1000, 15_000, 1000):
        replay_after(end, replay, replay.count)
        saved = segments.save(replay.state())
        segments.keep([saved.number, saved.number - 1])

    older = replay_after(0)
    older.load(segments.load(saved.number - 1))
    assert older.count == replay.count - 1000
    assert_same(older, replay_after(older.count))
    assert len(segments.numbers()) < 14
    held = sum(f.stat().st_size for f in tmp_path.iterdir())
    assert held < 4 * sum(a.nbytes for a in arrays_of(replay.state()))


def arrays_of(value):
    if isinstance(value, dict):
        return [a for v in value.values() for a in arrays_of(v)]
    return [value] if isinstance(value, np.ndarray) else []


def saved_twice(folder):
    segments = Segments(folder)
    rows = np.random.default_rng(0).integers(0, 256, (20, BLOCK_BYTES), np.uint8)
    segments.save({"rows": rows})
    segments.save({"rows": rows + (np.arange(20) == 3).astype(np.uint8)[:, None]})
    return segments


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("at", [3, 60, -5])
def test_an_altered_segment_is_named(tmp_path, number, at):
    segments = saved_twice(tmp_path)
    raw = bytearray(segments.path(number).read_bytes())
    raw[at] ^= 1
    segments.path(number).write_bytes(raw)

    with pytest.raises(CheckpointError, match=rf"{number}.segment"):
        segments.load(2)


@pytest.mark.parametrize("number", [1, 2])
def test_a_truncated_or_missing_segment_is_named(tmp_path, number):
    segments = saved_twice(tmp_path)
    raw = segments.path(number).read_bytes()
    segments.path(number).write_bytes(raw[:-100])
    with pytest.raises(CheckpointError, match=rf"{number}.segment.*(cut off|checksum)"):
        segments.load(2)

    segments.path(number).unlink()
    with pytest.raises(CheckpointError, match="segment"):
        segments.load(2)


def lying(folder, **changes):
    """A segment whose listing was changed by hand, with all its checksums right."""
    segments = Segments(folder)
    segments.save({"rows": np.arange(40_000, dtype=np.uint8), "more": np.ones(5)})
    content = load_checkpoint(segments.path(1))
    save_checkpoint(segments.path(1), {**content, **changes})
    return segments


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sizes": {"state.rows": 1 << 50, "state.more": 40}}, "another number of blocks"),
        ({"sizes": {"state.rows": -1, "state.more": 40}}, "are no numbers"),
        ({"sizes": {"state.rows": "x"}}, "are no numbers"),
        ({"sizes": 7}, "are no numbers"),
        ({"sizes": {"state.rows": 40_000, "other": 40}}, "state.more"),
        ({"sizes": {"state.rows": 30_000, "state.more": 20_000}}, "another one"),
        ({"at": np.full(4, 1 << 63, np.uint64)}, "damaged"),
        ({"at": np.full(4, 1 << 40, np.uint64)}, "another one"),
        ({"at": np.zeros((4, 9), np.uint64)}, "no list of blocks"),
        ({"at": [0, 1, 2, 3]}, "no list of blocks"),
        ({"digests": np.zeros((4, 15), np.uint8)}, "another number of blocks"),
        ({"segments": np.full(4, 7, np.uint32)}, "00000007.segment, which is not there"),
        ({"segments": np.ones(3, np.uint32)}, "another number of blocks"),
        ({"values": ["rows"]}, "no values by name"),
        ({"values": {"@": "array", "at": "x", "dtype": "|u1", "shape": [1]}}, "damaged"),
        ({"values": {"@": "array", "at": "state.rows", "dtype": "|S0", "shape": [1 << 47]}},
         "no type of array"),
        ({"extra": 1}, "it is no segment"),
    ],
)  # fmt: skip
def test_a_listing_that_lies_is_refused_in_one_line(changes, words, tmp_path):
    segments = lying(tmp_path, **changes)
    with pytest.raises(CheckpointError, match=words) as refused:
        segments.load()
    assert str(refused.value).isprintable()
    assert segments.save({"rows": np.ones(5)}).number == 2, "the next save must not mind"


def test_a_listing_that_unpacks_to_more_than_is_free_is_refused(tmp_path, monkeypatch):
    Segments(tmp_path).save({"rows": np.zeros(200 * BLOCK_BYTES)})
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=1 << 20))
    with pytest.raises(CheckpointError, match="unpacks to 25 MiB; 1 are free"):
        Segments(tmp_path).load()


def test_verifying_compares_every_block_that_is_listed(tmp_path):
    segments = saved_twice(tmp_path)
    segments.verify(2)
    raw = bytearray(segments.path(1).read_bytes())
    raw[-5] ^= 1
    segments.path(1).write_bytes(raw)
    with pytest.raises(CheckpointError, match=r"00000001.segment.*another one"):
        segments.verify(2)


def replayed(folder, resume=None):
    words = ["env=toy", "algo=dqn", "tracking=disabled", "algo.num_envs=2", "algo.n_steps=8",
             "algo.batch_size=8", "algo.learning_starts=8", "algo.buffer_size=64",
             "algo.total_steps=64", "checkpoint_every_steps=48", "evaluation.episodes=0",
             "hardware.threads=1", "hardware.device=cpu", "agent.actor=[4]"]  # fmt: skip
    run = replace(compose_run(words, check=False), run_dir=str(folder), resume=resume)
    console = Console(file=io.StringIO(), width=4000)
    train(run, Log([]), console=console)
    return console.file.getvalue()


def test_a_damaged_segment_makes_an_older_checkpoint_stand_in(tmp_path):
    replayed(tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "damaged")
    folder = tmp_path / "damaged" / "checkpoints"
    newest = max((folder / "replay").glob("*.segment"))
    newest.write_bytes(newest.read_bytes()[:-1])
    problems = [v.problem for v in verify_checkpoints(tmp_path / "damaged", compared)]
    assert newest.name in problems[0]
    assert not any(problems[1:-1])
    said = replayed(tmp_path / "again", str(tmp_path / "damaged"))
    assert f"Passed over: {newest}" in said
    assert "step_000000000048.pt at 48 steps" in said
    assert_same_weights(tmp_path / "again", tmp_path / "whole")


def assert_same_weights(a, b):
    ours, theirs = (load_checkpoint(f)["learner"]["policy"] for f in (a, b))
    assert all(torch.equal(v, theirs[k]) for k, v in ours.items())


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    segments = saved_twice(tmp_path)
    before = segments.load()

    def full(number, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk.os, "write", full)
    with pytest.raises(DiskError, match=r"Segment 3 cannot be written.*No space left"):
        segments.save({"rows": np.ones(5)})

    assert np.array_equal(segments.load()["rows"], before["rows"])
    assert sorted(f.name for f in tmp_path.iterdir()) == ["00000001.segment", "00000002.segment"]


def test_a_mapped_replay_opens_from_its_segments(tmp_path):
    segments = Segments(tmp_path)
    segments.save(replay_after(400, location="memmap").state())

    for location in ("memmap", "ram"):
        opened = replay_after(0, location=location)
        opened.load(segments.load())
        assert_same(opened, replay_after(400))


def test_a_replay_of_another_environment_or_codec_is_refused(tmp_path):
    segments = Segments(tmp_path)
    state = replay_after(100).state()
    segments.save(state)
    other = ReplayBuffer(CAPACITY, spaces.Box(-1, 1, (3,)), spaces.Discrete(2), "cpu")
    with pytest.raises(DataError, match="this run builds"):
        other.load(segments.load())

    segments.save(state | {"form": state["form"].replace("codec 1", "codec 9")})
    with pytest.raises(DataError, match="codec 9"):
        replay_after(0).load(segments.load())


CHILD = """
import sys
sys.path.insert(0, {folder!r})
from test_segments import Segments, replay_after
replay, segments = replay_after(50, location={location!r}), Segments({target!r})
while True:
    segments.save(replay.state())
    replay_after(replay.count + 150, replay, replay.count)
"""


@pytest.mark.slow
def test_after_ten_kills_all_complete_segments_are_there(tmp_path):
    rng = np.random.default_rng(1)
    seen = 0
    for kill in range(10):
        target = tmp_path / str(kill)
        location = ("ram", "memmap")[kill % 2]
        code = CHILD.format(folder=os.path.dirname(__file__), target=str(target), location=location)
        child = subprocess.Popen([sys.executable, "-c", code])
        while not list(target.glob("*.segment")):
            time.sleep(0.05)
        time.sleep(rng.uniform(0, 1.5))
        child.send_signal(signal.SIGKILL)
        child.wait()

        segments = Segments(target)
        for number in segments.numbers()[-3:]:
            replay = replay_after(0, location=location)
            replay.load(segments.load(number))
            assert replay.count == 50 + 150 * (number - 1)
            assert_same(replay, replay_after(replay.count))
        resumed = replay_after(replay.count + 100, replay, replay.count)
        assert_same(resumed, replay_after(resumed.count))
        seen += len(segments.numbers())
    assert seen > 10


def checkpointed(folder, name, rows):
    """A checkpoint whose replay lies beside it."""
    content = {"learner": {"collector": {"replay": [rows]}}, "num_steps": 1}
    save_checkpoint(folder / name, set_aside(content, folder))


def test_what_a_checkpoint_that_cannot_be_read_may_need_stays_and_nothing_else(tmp_path):
    """Its own segment and older ones; those that are written later go as ever."""
    rows = np.random.default_rng(0).integers(0, 256, (4, BLOCK_BYTES), np.uint8)
    for number, name in enumerate(["last.pt", "mine.pt"]):
        checkpointed(tmp_path, name, rows + number)
    raw = (tmp_path / "mine.pt").read_bytes()
    (tmp_path / "mine.pt").write_bytes(raw[:-1])
    os.mkfifo(tmp_path / "pipe.pt")  # nobody would ever read the other end
    unread, segments = Unread(), Segments(tmp_path / "replay")
    with pytest.warns(UserWarning, match=r"mine\.pt is damaged .* remove .*mine\.pt to have"):
        forget_unused(tmp_path, unread)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # told once
        for number in range(2, 9):
            checkpointed(tmp_path, "last.pt", rows + number)
            forget_unused(tmp_path, unread)
    assert segments.numbers() == [1, 2, 9]
    (tmp_path / "mine.pt").write_bytes(raw)  # repaired, from a copy somewhere
    forget_unused(tmp_path, unread)
    assert (brought_back(load_checkpoint(tmp_path / "mine.pt"), tmp_path / "mine.pt")
            ["learner"]["collector"]["replay"][0] == rows + 1).all()  # fmt: skip
    (tmp_path / "mine.pt").unlink()
    forget_unused(tmp_path, unread)
    assert segments.numbers() == [9]


def test_a_damaged_segment_keeps_older_ones_and_no_later_one(tmp_path):
    rows = np.random.default_rng(0).integers(0, 256, (4, BLOCK_BYTES), np.uint8)
    for number, name in enumerate(["a.pt", "b.pt", "last.pt", "last.pt", "last.pt"]):
        checkpointed(tmp_path, name, rows + number)
    segments = Segments(tmp_path / "replay")
    raw = segments.path(2).read_bytes()
    segments.path(2).write_bytes(raw[:60])
    forget_unused(tmp_path, Unread())
    assert segments.numbers() == [1, 2, 5]


def test_every_file_that_keeps_segments_is_verified(tmp_path):
    checkpointed(tmp_path, "last.pt", np.zeros((1, 8), np.uint8))
    checkpointed(tmp_path, "mine.pt", np.ones((1, 8), np.uint8))
    (tmp_path / "mine.pt").write_bytes((tmp_path / "mine.pt").read_bytes()[:-1])
    lines = verdict_lines(verify_checkpoints(tmp_path, compared))
    assert [line.split()[0] for line in lines] == ["sound", "UNSOUND"]
    assert "mine.pt" in lines[1]
