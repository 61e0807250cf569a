"""One run, one folder: whoever comes second is told who is there, and the dead hold nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from frugal_rl.errors import FolderInUseError
from frugal_rl.run.compose import composed_command
from frugal_rl.run.lock import (
    BEAT_SECONDS,
    LAUNCHER_LOCK,
    LOCK,
    STALE_SECONDS,
    kept_for_run,
    locked,
)
from frugal_rl.run.preflight import CHECKS, lock_of, written

HOLD = """
import sys, time
from pathlib import Path
from frugal_rl.run.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other(tmp_path):
    """Another process that holds the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_a_second_process_is_refused_and_takes_over_once_the_first_was_killed(other, tmp_path):
    with (
        pytest.raises(FolderInUseError, match=f"written by process {other.pid} on .*since"),
        locked(tmp_path),
    ):
        pass
    other.send_signal(signal.SIGKILL)
    other.wait()
    with locked(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    assert (tmp_path / LOCK).read_text() == ""


def test_a_stopped_process_still_holds_its_folder(other, tmp_path):
    other.send_signal(signal.SIGSTOP)
    with pytest.raises(FolderInUseError), locked(tmp_path):
        pass
    other.send_signal(signal.SIGCONT)


def test_another_hosts_lock_is_kept_until_nobody_touched_it_for_long(tmp_path):
    theirs = json.dumps({"pid": 7, "host": "elsewhere\x1b[2J", "since": "today"})
    (tmp_path / LOCK).write_text(theirs)
    with (
        pytest.raises(FolderInUseError, match=r"process 7 on elsewhere\\x1b\[2J"),
        locked(tmp_path),
    ):
        pass
    assert (tmp_path / LOCK).read_text() == theirs
    long_ago = time.time() - STALE_SECONDS - 1
    os.utime(tmp_path / LOCK, (long_ago, long_ago))
    with locked(tmp_path):
        pass


@pytest.mark.parametrize("text", ["", "{", "[" * 5000, '{"pid": "x", "host": 1}', "\0" * 100])
def test_a_damaged_lock_that_nobody_holds_is_taken(text, tmp_path):
    (tmp_path / LOCK).write_text(text)
    with locked(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()


def test_a_run_that_goes_on_touches_its_lock(tmp_path):
    with locked(tmp_path) as lock:
        os.utime(tmp_path / LOCK, (0, 0))
        lock.beat()
        assert (tmp_path / LOCK).stat().st_mtime == 0  # not every time
        lock.beaten -= 2 * BEAT_SECONDS
        lock.beat()
        assert time.time() - (tmp_path / LOCK).stat().st_mtime < 60


def test_two_folders_of_one_process_do_not_meet(tmp_path):
    again = tmp_path / "b" / ".." / "a"
    with locked(tmp_path / "a"), locked(tmp_path / "b"), pytest.raises(FolderInUseError):
        locked(again).__enter__()


@pytest.mark.parametrize(
    ("name", "words"),
    [("train", []), ("train", ["launch=torchrun"]), ("evaluate", ["checkpoint=x"])],
)
def test_a_command_is_refused_before_hydra_writes_into_the_folder_of_a_run(
    name, words, other, tmp_path
):
    command = composed_command(name, ["env=toy", *words, f"hydra.run.dir={tmp_path}"])
    assert written in CHECKS
    with pytest.raises(FolderInUseError, match=f"is written by process {other.pid}"):
        written(command)
    other.kill()
    other.wait()
    with locked(tmp_path, LAUNCHER_LOCK), pytest.raises(FolderInUseError):
        written(command)
    written(command)


def test_processes_of_a_run_find_its_folder_held_and_are_not_refused(other, tmp_path):
    """They begin where their launcher, or the first of them, holds it already."""
    for words in (["hydra.output_subdir=null"], ["launch.nodes=2", "launch.meet=a:29400"]):
        command = composed_command("train", ["env=toy", *words, f"hydra.run.dir={tmp_path}"])
        assert lock_of(command) is None
        written(command)


def test_a_run_takes_over_what_its_command_holds(tmp_path):
    with kept_for_run(tmp_path):
        with locked(tmp_path) as lock:
            assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
            with pytest.raises(FolderInUseError):
                locked(tmp_path).__enter__()
        assert not lock.lost()
        assert (tmp_path / LOCK).read_text() != ""  # still the command's, to its end
    with locked(tmp_path):
        pass


def test_a_folder_that_went_away_before_its_run_began_is_made_again(tmp_path):
    with kept_for_run(tmp_path / "a"):
        shutil.rmtree(tmp_path / "a")
        with locked(tmp_path / "a") as lock:
            assert not lock.lost()
    assert (tmp_path / "a" / LOCK).read_text() == ""


@pytest.mark.slow
def test_of_two_commands_that_begin_at_once_one_alone_writes(tmp_path):
    words = ["env=toy", "tracking=disabled", "algo.num_envs=2", "algo.n_steps=8",
             "algo.batch_size=8", "algo.total_steps=16", "evaluation.episodes=0"]  # fmt: skip
    both = [
        subprocess.Popen(
            [sys.executable, "scripts/train.py", *words, f"seed={n}", f"hydra.run.dir={tmp_path}"],
            stderr=subprocess.PIPE, text=True,
        )
        for n in (1, 2)
    ]  # fmt: skip
    ends = {n: (p.communicate()[1], p.returncode) for n, p in zip((1, 2), both, strict=True)}
    assert sorted(status for _, status in ends.values()) == [0, 1]
    ran = next(n for n, (_, status) in ends.items() if status == 0)
    assert "is written by process" in ends[3 - ran][0]
    assert f"seed={ran}" in (tmp_path / ".hydra" / "overrides.yaml").read_text()
    assert json.loads((tmp_path / "run.json").read_text())["config"]["seed"] == ran
