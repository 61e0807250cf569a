"""A measurement in a process of its own: it speaks, it fails in words, it ends."""

import os
import signal
import sys
import threading
import time

import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.memory import child
from frugal_rl.report.speech import Mode, speaking
from frugal_rl.run.compose import compose_run
from frugal_rl.run.signals import StopAsked

PROGRAMS = {
    "answers": "import sys, json; print(json.load(sys.stdin)['values']['seed'])",
    "is_slow": "import os, pathlib, time; "
    "pathlib.Path(os.environ['FRUGAL_RL_WORDS']).write_text('kernel 3'); time.sleep(0.5); print(1)",
    "fails": "import sys; sys.exit('no such network')",
    "says_bytes": "import sys; sys.stderr.buffer.write(b'\\xff'); "
    "sys.stdout.buffer.write(b'\\xff\\n8')",
    "is_refused": "import sys; sys.exit('frugal_rl.errors.ConfigError: no room')",
    "is_killed": "import os; os.kill(os.getpid(), 9)",
    "crashes": "import os; os.kill(os.getpid(), 11)",
    "has_notes": "e = ValueError('no such room'); e.add_note('Nothing was saved.'); raise e",
    "hangs": "import time; time.sleep(60)",
    "is_silent": "",
    "says_goodbye": "print(1); print('goodbye')",
    "stands_by": "import os, sys, json; own = os.getpid(); "
    "json.load(sys.stdin); print(json.dumps([own, os.environ['FRUGAL_RL_WORDS']]))",
}


@pytest.fixture
def program(tmp_path, monkeypatch):
    for name, code in PROGRAMS.items():
        (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(child, "WORD_SECONDS", 0.1)
    run = compose_run(["env=toy", "seed=7"])
    return lambda name, **most: child.ask_child(name, run, "It", **most)


def test_the_run_is_handed_over_and_the_last_line_comes_back(program):
    assert program("answers") == 7


def test_a_child_that_was_started_before_is_the_one_that_is_asked(program):
    with child.standing_by() as start:
        start("stands_by")
        start("stands_by")  # once is enough
        waiting = child._READY["stands_by"]
        first, second = program("stands_by"), program("stands_by")
        assert first == [waiting.process.pid, str(waiting.path)]
        assert second[0] != first[0]
    assert not waiting.path.exists()


def test_a_child_that_nobody_asked_ends_with_the_block(program):
    with child.standing_by() as start:
        start("hangs")
        start("stands_by")
        left = list(child._READY.values())
    assert [each.process.returncode for each in left] == [-signal.SIGKILL] * 2
    assert not any(each.path.exists() for each in left)
    assert not child._READY


def test_bytes_that_are_no_text_end_no_measurement(program):
    assert program("says_bytes") == 8


def test_a_slow_measurement_says_that_it_goes_on(program, capfd):
    assert program("is_slow") == 1

    assert "It, 0 s (kernel 3)" in capfd.readouterr().err


def test_a_quiet_command_does_not_say_so(program, capfd):
    with speaking(Mode.quiet):
        assert program("is_slow") == 1

    assert capfd.readouterr() == ("", "")


def test_a_failure_is_told_by_its_last_line(program):
    with pytest.raises(ConfigError, match="It fails: no such network"):
        program("fails")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("is_refused", "It fails: no room$"),
        ("has_notes", "It fails: ValueError: no such room$"),
        ("is_killed", r"It fails: it was ended by SIGKILL; is the machine's memory full\?$"),
        ("crashes", "It fails: it was ended by SIGSEGV$"),
    ],
)
def test_a_failure_says_what_ended_it_and_not_its_error_twice(program, name, words):
    with pytest.raises(ConfigError, match=words):
        program(name)


def test_one_that_hangs_is_ended_with_a_remedy(program):
    with pytest.raises(ConfigError, match=r"longer than 0 s\. .*plan=arithmetic"):
        program("hangs", most_seconds=0.3)


@pytest.mark.parametrize("name", ["is_silent", "says_goodbye"])
def test_one_whose_last_line_is_no_answer_fails_in_words(program, name):
    with pytest.raises(ConfigError, match=r"It ends without an answer\."):
        program(name)


def test_whoever_is_asked_to_stop_waits_for_no_measurement(program):
    """Not even where SIGTERM asked, after which Python's own context would wait for its end."""

    def ask(number, frame):
        raise StopAsked(number)

    before = signal.signal(signal.SIGTERM, ask)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    began = time.monotonic()
    try:
        with pytest.raises(StopAsked):
            program("hangs")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert time.monotonic() - began < 20
