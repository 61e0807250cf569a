"""How commands speak: no long silence, whole lines in a pipe, labels, JSON and quiet."""

import io
import json
import sys
import time

import pytest

from frugal_rl.doing import doing, now
from frugal_rl.errors import ConfigError
from frugal_rl.report import speech
from frugal_rl.report.speech import Heartbeat, Mode, Watched, labelled, pause_after
from frugal_rl.run.arguments import check_form, take_mode
from frugal_rl.run.outcome import Outcome, concluded


class Clock:
    seconds = 0.0

    def __call__(self):
        return self.seconds


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_what_goes_on_is_known_inside_the_block_alone():
    with doing("evaluating", 64, "episodes") as work:
        work.done = 40
        assert str(now()) == "evaluating, 40 of 64 episodes"
        with doing("saving"):
            assert str(now()) == "saving"
    assert now() is None


@pytest.mark.parametrize(("seconds", "longest"), [(0, 1.5), (600, 1.5), (86400, 30.0)])
def test_pauses_grow_only_in_the_log_of_a_long_run(seconds, longest):
    assert pause_after(seconds) == longest


def test_a_silent_command_says_what_it_does():
    clock, pipe = Clock(), io.StringIO()
    beat = Heartbeat(io.StringIO(), pipe, clock)
    with doing("planning"):
        for clock.seconds in (0.5, 1.0, 2.0, 2.5, 2.75, 3.0):
            beat.look()
        spoken = pipe.getvalue().splitlines()
        beat.out.write("a table\n")
        clock.seconds = 4.0
        beat.look()

    assert [line.partition(",")[0] for line in spoken] == ["planning", "planning"]
    assert len(pipe.getvalue().splitlines()) == 2


def test_a_command_speaks_while_it_is_imported_and_goes_on_where_it_was(monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr(speech, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(speech, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(sys, "stderr", pipe)
    speech.speak_early()
    until = time.monotonic() + 10  # a busy machine lets its thread wait
    while not pipe.getvalue() and time.monotonic() < until:
        time.sleep(0.01)
    with speech.speaking(), doing("planning"):
        time.sleep(0.1)

    assert pipe.getvalue() == "starting, 0 s\n"  # and nothing more so soon


@pytest.mark.parametrize("word", ["--quiet", "-sc"])
def test_a_command_is_silent_where_nobody_reads_what_it_does(word, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py", word])
    speech.speak_early()

    assert speech._EARLY == []


def test_on_a_terminal_the_words_are_overwritten():
    clock, terminal = Clock(), Terminal()
    beat = Heartbeat(terminal, terminal, clock)
    with doing("planning"):
        clock.seconds = 2.0
        beat.look()
        beat.out.write("result\n")

    assert terminal.getvalue().endswith("\r\x1b[2Kresult\n")
    assert "\n" not in terminal.getvalue().removesuffix("result\n")


def test_a_line_leaves_a_pipe_when_it_ends():
    class Pipe(io.StringIO):
        flushed = 0

        def flush(self):
            self.flushed += 1

    pipe = Pipe()
    out = Watched(pipe, lambda: None)
    out.write("half a ")
    assert pipe.flushed == 0
    out.write("line\n")
    assert pipe.flushed == 1


def test_jobs_side_by_side_say_which_one_speaks(capsys):
    with labelled("[3] "):
        print("first\nsecond")
        print("third")

    assert capsys.readouterr().out == "[3] first\n[3] second\n[3] third\n"


def test_the_mode_is_taken_out_of_the_words():
    words = ["train.py", "--json", "env=toy"]

    assert take_mode(words) is Mode.json
    assert words == ["train.py", "env=toy"]


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("env:toy", "env=toy"),
        ("toy", "written key=value: env=toy"),
        ("--memory", "write memory="),
        ("--seed=3", "write seed=3"),
    ],
)
def test_a_word_that_is_no_override_is_answered_with_one(word, answer):
    with pytest.raises(ConfigError, match=answer):
        check_form([word])


def test_words_of_hydra_pass():
    check_form(["-m", "env=toy", "--config-dir", "conf", "~experiment", "--cfg", "job"])


def test_results_end_as_one_object_or_as_paths():
    ends = [Outcome({"value": float("nan"), "interrupted": False}, ["runs/a"])]

    assert json.loads(concluded(Mode.json, ends, False)) == {
        "value": None,
        "interrupted": False,
        "files": ["runs/a"],
    }
    assert len(json.loads(concluded(Mode.json, ends * 2, True))["jobs"]) == 2
    assert concluded(Mode.quiet, ends, False) == "runs/a\n"
    assert concluded(Mode.people, ends, False) == ""
