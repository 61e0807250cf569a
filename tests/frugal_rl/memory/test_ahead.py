"""Kernels are compiled beside the trace of a network, by two processes, and nothing waits long."""

import os
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.memory import ahead, child
from frugal_rl.memory.duration import Line, Pace
from frugal_rl.memory.machine import GIB, Limit
from frugal_rl.memory.probe import Probe
from frugal_rl.run import observe_once, trace_process
from frugal_rl.run.compose import compose_run
from nclone.config import NppConfig
from nclone.game import NppGame
from nclone.sim import world as sim


@pytest.fixture
def roomy(monkeypatch):
    """Four cores and 8 GiB, and children that are calls of this process."""
    asked, gate = [], threading.Event()

    def ask(module, run, doing, aloud=None, stop=None):
        asked.append((module, aloud))
        while not gate.is_set():
            if stop.wait(0.01):
                raise ConfigError("stopped")
        asked.append((module, "done"))

    monkeypatch.setattr(
        ahead, "find_limit", lambda: Limit(8 * GIB, "", cores=4, free_ram_bytes=8 * GIB)
    )
    monkeypatch.setattr(ahead, "ask_child", ask)
    monkeypatch.setattr(ahead, "mostly_ready", lambda run: False)
    return SimpleNamespace(asked=asked, gate=gate, patch=monkeypatch, started=[])


@pytest.fixture
def heard():
    """Ctrl-C is heard also where the tests were begun in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def run_of(**offers):
    return SimpleNamespace(env=SimpleNamespace(**offers))


def test_two_processes_compile_while_the_block_runs_and_are_over_with_it(roomy):
    with ahead.compiled_meanwhile(run_of(observed=None), roomy.started.append):
        while len(roomy.asked) < 2:
            time.sleep(0.01)
        assert sorted(roomy.asked) == [(ahead.ALL_KERNELS, True), (ahead.OBSERVING, False)]
        assert child._SIGNS[-1].exists()
        roomy.gate.set()
        while child._SIGNS[-1].exists():
            time.sleep(0.01)  # what was measured beside them may be timed now
    assert [told for _, told in roomy.asked[2:]] == ["done", "done"]
    assert roomy.started == [ahead.ALL_KERNELS]  # what is measured next imports meanwhile
    assert not child._SIGNS


def test_an_environment_that_says_no_more_is_compiled_by_one(roomy):
    roomy.gate.set()
    with ahead.compiled_meanwhile(run_of(), roomy.started.append):
        pass
    assert [module for module, told in roomy.asked if told == "done"] == [ahead.ALL_KERNELS]
    assert not roomy.started  # no core is free before it is timed


def test_nobody_waits_for_a_compiler_once_the_block_has_failed(roomy):
    began = time.monotonic()
    with (
        pytest.raises(ConfigError, match="too long"),
        ahead.compiled_meanwhile(run_of(), roomy.started.append),
    ):
        raise ConfigError("It takes too long.")
    assert time.monotonic() - began < 5
    assert (ahead.ALL_KERNELS, "done") not in roomy.asked


def test_nor_does_anybody_who_is_asked_to_stop_while_only_compilers_work(roomy, heard):
    # The kernel may give a signal to any thread; here it does to one that nobody waits in.
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT))
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), ahead.compiled_meanwhile(run_of(), roomy.started.append):
        timer.start()
    assert time.monotonic() - began < 5
    assert (ahead.ALL_KERNELS, "done") not in roomy.asked


@pytest.mark.parametrize("machine", [(1, 8, 8), (2, 2, 8), (2, 8, 2)])
def test_a_small_machine_compiles_later(machine, roomy):
    cores, ram, free = machine
    limit = Limit(ram * GIB, "", cores=cores, free_ram_bytes=free * GIB)
    roomy.patch.setattr(ahead, "find_limit", lambda: limit)
    with ahead.compiled_meanwhile(run_of(observed=None), roomy.started.append):
        pass
    assert roomy.asked == []


def test_what_another_kind_of_run_has_compiled_is_not_run_through_once_more(roomy):
    roomy.patch.setattr(ahead, "mostly_ready", lambda run: True)
    with ahead.compiled_meanwhile(run_of(observed=None), roomy.started.append):
        pass
    assert roomy.asked == []


def test_what_is_timed_waits_until_nothing_compiles_beside_it(tmp_path, monkeypatch):
    sign = tmp_path / "busy"
    sign.touch()
    monkeypatch.setenv(child.BUSY, str(sign))
    threading.Timer(0.3, sign.unlink).start()
    began = time.monotonic()
    child.wait_for_quiet()
    assert time.monotonic() - began > 0.25
    monkeypatch.setenv(child.BUSY, "")
    child.wait_for_quiet()


def test_a_network_is_traced_beside_compilers_and_timed_after_them(monkeypatch, capsys):
    done = []

    def step(name, answer=None):
        monkeypatch.setattr(trace_process, name, lambda *run: done.append(name) or answer)

    step("asked_run")
    step("trace", Probe(1, 2.0, 3, 4, 5))
    step("wait_for_quiet")
    step("pace_of", Pace(Line(0.0, 1.0), Line(0.0, 1.0)))
    trace_process.main()
    assert done == ["asked_run", "trace", "wait_for_quiet", "pace_of"]
    assert '"per_sample": 1.0' in capsys.readouterr().out


def test_children_are_told_of_the_sign_and_leave_the_word_to_who_compiles(
    tmp_path, monkeypatch, capfd
):
    code = "import os, time; time.sleep(0.4); print(repr(os.environ['FRUGAL_RL_BUSY'] != ''))"
    (tmp_path / "told.py").write_text(code.replace("repr(", "int("))
    monkeypatch.setattr(child.sys, "path", [str(tmp_path), *child.sys.path])
    monkeypatch.setattr(child, "WORD_SECONDS", 0.1)
    run = compose_run(["env=toy"])
    with child.busy() as over:
        assert child.ask_child("told", run, "It") == 1
        assert "It, " not in capfd.readouterr().err
        assert child.ask_child("told", run, "It", aloud=True) == 1
        assert "It, " in capfd.readouterr().err
        over()
        child.ask_child("told", run, "It")
        assert "It, " in capfd.readouterr().err
    assert child.ask_child("told", run, "It") == 0


def test_a_child_that_is_not_wanted_any_more_is_ended(tmp_path, monkeypatch):
    told = tmp_path / "pid"
    (tmp_path / "hangs.py").write_text(
        f"import os, pathlib, time\n"
        f"pathlib.Path({str(told)!r}).write_text(str(os.getpid()))\n"
        "time.sleep(600)"
    )
    monkeypatch.setattr(child.sys, "path", [str(tmp_path), *child.sys.path])
    monkeypatch.setattr(child, "WORD_SECONDS", 0.1)
    stop = threading.Event()

    def stop_once_it_hangs():
        while not (told.exists() and told.read_text()):
            time.sleep(0.05)
        stop.set()

    threading.Thread(target=stop_once_it_hangs, daemon=True).start()
    with pytest.raises(ConfigError, match="It was stopped"):
        child.ask_child("hangs", compose_run(["env=toy"]), "It", stop=stop)
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text()), 0)


def test_the_second_compiler_resets_and_steps_nothing(monkeypatch, capsys):
    run, nicer = compose_run(["env=nclone", "env.levels=[walk]"]), []
    monkeypatch.setattr(observe_once, "asked_run", lambda: run)
    monkeypatch.setattr(observe_once.os, "nice", nicer.append)
    monkeypatch.setattr(sim, "advance_worlds", lambda *of: pytest.fail("a frame was played"))
    began = []
    real = NppGame.begin
    monkeypatch.setattr(NppGame, "begin", lambda game, which: began.append(real(game, which)))
    observe_once.main()
    assert capsys.readouterr().out == "null\n"
    assert began
    assert nicer == [observe_once.NICE]


def test_a_reset_that_is_only_observed_plays_no_frame(monkeypatch):
    config = NppConfig(levels=("simplest",))
    played = []
    monkeypatch.setattr(sim, "advance_worlds", lambda *of: played.append(of))
    for each, expected in ((config.observed(), 0), (config, 1)):
        game = NppGame(each, config.open_levels("train")[:2], 2, threads=1)
        game.seed([np.random.default_rng(n) for n in range(2)])
        game.begin(np.arange(2))
        assert len(played) == expected
