"""One run, one folder: whoever comes second is told who is there, and the dead hold nothing."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from frugal_rl.errors import FolderInUseError
from frugal_rl.run.lock import BEAT_SECONDS, LOCK, STALE_SECONDS, locked

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
