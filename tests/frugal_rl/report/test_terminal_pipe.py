"""A reader that leaves ends no run, nor does a disk that takes no words."""

import os
import subprocess
import sys

import pytest

from frugal_rl.errors import DiskError
from frugal_rl.report.speech import Mode, Watched, speaking
from frugal_rl.report.streams import lead_nowhere
from frugal_rl.report.terminal import open_console, say


def test_nobody_reads_any_more_and_the_run_goes_on(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as nobody:
        monkeypatch.setattr(sys, "stdout", nobody)
        console = open_console()
        say("said to nobody", console)
        assert console.quiet
        say("and by another console")
        print("and by others", flush=True)
        monkeypatch.undo()


@pytest.fixture
def hung_up():
    """A terminal that was closed."""
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal:
        os.close(ours)
        yield terminal


def test_a_terminal_that_was_closed_ends_no_command(hung_up):
    with pytest.raises(OSError, match="Input/output error"):
        os.write(hung_up.fileno(), b"as others would")
    words = Watched(hung_up, lambda: None)
    words.write("said to nobody\n")
    words.flush()
    assert not words.missing
    print("and by others", file=hung_up, flush=True)


@pytest.mark.parametrize("mode", Mode)
def test_results_are_the_first_words_after_a_terminal_was_closed(mode, hung_up, monkeypatch):
    monkeypatch.setattr(sys, "stdout", hung_up)
    with speaking(mode) as out:
        out.write("results of a launcher that was silent until then\n")
        out.flush()


@pytest.mark.parametrize("mode", Mode)
def test_results_that_a_full_disk_did_not_take_are_told(mode, monkeypatch):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(DiskError, match=r"is missing .*\(No space left"), speaking(mode) as out:
            out.write("results\n")
        monkeypatch.undo()
        lead_nowhere(full)


def test_words_that_a_full_disk_did_not_take_are_told_at_the_end(monkeypatch):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        speaks = speaking()
        speaks.__enter__()
        print("a result")  # which ends nothing here
        with pytest.raises(DiskError, match=r"is missing .*\(No space left"):
            speaks.__exit__(None, None, None)
        monkeypatch.undo()
        lead_nowhere(full)  # what is held back goes somewhere


CLOSED = """
import os, sys
from frugal_rl.report.streams import open_closed
open_closed()
with open(sys.argv[1], "w") as first:
    assert first.fileno() > 2
    print("said to nobody", flush=True)
    os.write(1, b"as a library of C does")
    os.write(2, b"or complains")
    assert sys.stdin.read() == ""
    child = "import sys; assert sys.stdout is not None; print('said to nobody')"
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", child]) == 0
"""


def test_streams_that_were_closed_lead_nowhere_and_into_no_file(tmp_path):
    program, first = tmp_path / "program.py", tmp_path / "first"
    program.write_text(CLOSED)
    words = f"'{sys.executable}' '{program}' '{first}' <&- >&- 2>&-"
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(["sh", "-c", words], check=False, env=here).returncode == 0
    assert first.read_text() == ""
