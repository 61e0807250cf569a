"""The meter sees what is held, and tells growth from steadiness; the watchdog stops in time."""

import multiprocessing
import os
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from frugal_rl.memory import usage
from frugal_rl.memory.allocator import give_back, pin_allocator
from frugal_rl.memory.meter import MOST_ROLLOUTS, MemoryMeter, median_slope
from frugal_rl.memory.part import Phase
from frugal_rl.memory.watchdog import Watchdog

MIB = 1 << 20


@pytest.fixture(autouse=True)
def pinned():
    """Also returns what earlier tests freed: blocks that fit there would not be seen to grow."""
    pin_allocator()
    give_back()


def touch(mebibytes: int) -> np.ndarray:
    return np.ones(mebibytes * MIB, np.uint8)


def test_a_short_peak_inside_a_phase_is_not_missed():
    with MemoryMeter() as meter:
        with meter.phase(Phase.rollout):
            pass
        with meter.phase(Phase.update):
            del_me = touch(200)
            del del_me
        with meter.phase(Phase.checkpoint):
            pass

    grown = meter.peaks[Phase.update].ram - meter.peaks[Phase.rollout].ram
    assert 195 * MIB < grown < 210 * MIB
    assert meter.peaks[Phase.checkpoint].ram < meter.peaks[Phase.update].ram - 150 * MIB
    assert meter.peak_bytes == meter.peaks[Phase.update].ram


def hold(mebibytes: int, ready, stop) -> None:
    kept = touch(mebibytes)
    ready.set()
    stop.wait(30)
    del kept


def test_worker_processes_are_counted_and_what_they_share_is_counted_once():
    context = multiprocessing.get_context("fork")
    shared = touch(120)
    ready, stop = context.Event(), context.Event()
    worker = context.Process(target=hold, args=(60, ready, stop))
    with MemoryMeter(sample_seconds=0.05) as meter:
        before = meter.held_bytes()
        worker.start()
        ready.wait(30)
        with meter.phase(Phase.rollout):
            time.sleep(0.5)
        stop.set()
        worker.join()

    assert shared[-1] == 1
    assert 55 * MIB < meter.peaks[Phase.rollout].ram - before < 90 * MIB


def test_what_starting_up_held_for_a_moment_is_known():
    with MemoryMeter(sample_seconds=10) as meter:
        before = meter.held_bytes()
        moment = touch(60)
        del moment
        for phase in (Phase.rollout, Phase.update, Phase.rollout):
            with meter.phase(phase):
                pass

    assert meter.peaks[Phase.start].ram - before > 55 * MIB
    assert meter.peaks[Phase.rollout].ram - before < 30 * MIB
    assert meter.peaks[Phase.update].ram - before < 30 * MIB


def test_a_process_that_ends_while_it_is_looked_at_is_left_out(monkeypatch):
    """Its shares were read, its status is gone: its pages must not be taken for files."""
    monkeypatch.setattr(usage, "_status", lambda pid, key: 0)

    assert usage.of_process(psutil.Process()) is None


def test_an_artificial_leak_is_found():
    kept = []
    with MemoryMeter() as meter:
        for _ in range(20):
            with meter.phase(Phase.rollout):
                kept.append(touch(5))

    assert meter.growth.leak
    assert 4.8 * MIB < meter.growth.bytes_per_rollout < 5.3 * MIB
    assert "leak" in meter.growth.verdict
    assert meter.summary()["memory/leak"] is True


def test_a_run_that_allocates_once_is_steady():
    with MemoryMeter() as meter:
        buffer = None
        for _ in range(20):
            with meter.phase(Phase.rollout):
                buffer = touch(30) if buffer is None else buffer
                scratch = touch(10)
                del scratch

    assert not meter.growth.leak
    assert "steady" in meter.growth.verdict


def test_a_growth_that_has_come_to_an_end_is_no_leak():
    meter = MemoryMeter()
    meter.after_rollouts = [100 * MIB + min(i, 10) * 4 * MIB for i in range(40)]

    assert not meter.growth.leak


def test_growth_is_not_judged_from_a_few_rollouts():
    meter = MemoryMeter()
    meter.after_rollouts = [100 * MIB, 200 * MIB, 300 * MIB]

    assert "not known" in meter.growth.verdict


def test_a_long_run_keeps_few_of_its_rollouts_and_the_same_slope(monkeypatch):
    meter = MemoryMeter()
    monkeypatch.setattr(usage, "anonymous_bytes", lambda: 100 * MIB + 1024 * meter._rollouts)
    for _ in range(100_000):
        meter.note_rollout()

    assert len(meter.after_rollouts) <= MOST_ROLLOUTS
    assert meter.growth.leak
    assert meter.growth.bytes_per_rollout == 1024
    assert 70_000 < meter.growth.rollouts <= 100_000
    apart = np.diff(meter.after_rollouts)
    assert (apart == 1024 * meter.stride).all()


def test_the_median_slope_ignores_a_jump():
    assert median_slope([0, 1, 2, 3, 4000, 5, 6, 7, 8, 9]) == pytest.approx(1, abs=0.01)


def test_shares_of_a_process_add_up_to_what_it_sees():
    own = usage.of_tree()[0]

    assert own.anonymous + own.shared + own.files == pytest.approx(own.resident, rel=0.05)
    assert usage.held_bytes([own]) <= own.resident * 1.01


def test_what_is_freed_while_a_process_is_looked_at_is_not_taken_for_files(monkeypatch):
    """An update's end between two readings of /proc made one sample 77 MiB too large."""
    pin_allocator()
    before = usage.of_process(psutil.Process())
    held = [np.ones(64 << 20, np.uint8)]
    read = usage._status

    def freed_in_between(pid, key):
        held.clear()
        give_back()
        return read(pid, key)

    monkeypatch.setattr(usage, "_status", freed_in_between)
    now = usage.of_process(psutil.Process())
    assert not held
    assert now.files - before.files < 16 << 20
    assert now.anonymous - before.anonymous > 48 << 20


def test_the_files_of_one_program_are_counted_once():
    one = usage.Usage("python", 10, 2, 100, 0, 0)
    other = usage.Usage("python", 20, 3, 90, 0, 0)
    tracker = usage.Usage("tracker", 1, 0, 30, 0, 0)

    assert usage.held_bytes([one, other, tracker]) == 10 + 2 + 20 + 3 + 1 + 100 + 30


def test_the_watchdog_is_silent_below_its_share_and_advises_above_it():
    with MemoryMeter() as meter:
        with meter.phase(Phase.rollout):
            pass
        quiet = Watchdog(meter, meter.peak_bytes * 2, "memory.budget_gib=1", 0.95)
        assert quiet() == ""
        with meter.phase(Phase.update):
            spike = touch(100)
            del spike
        advice = Watchdog(meter, meter.peak_bytes, "memory.budget_gib=0.1", 0.95)()

    assert "memory.budget_gib=0.1" in advice
    assert "scripts/plan.py" in advice


@pytest.mark.skipif(not usage.KCMP, reason="address spaces are compared on Linux only")
def test_a_program_that_is_being_started_does_not_count_its_parent_twice(monkeypatch):
    """Until it begins, a child has its parent's memory; here one is only said to have it."""
    waiting = [sys.executable, "-S", "-c", "input()"]
    own, child = os.getpid(), subprocess.Popen(waiting, stdin=subprocess.PIPE)
    try:
        assert usage._same_memory(own, own)
        assert not usage._same_memory(own, child.pid)
        begun = len(usage.of_tree())
        monkeypatch.setattr(usage, "_same_memory", lambda *pids: pids == (own, child.pid))
        assert len(usage.of_tree()) == begun - 1
    finally:
        child.communicate(b"\n")


def test_the_meter_notes_the_libraries_once_an_update_was_made():
    with MemoryMeter() as meter:
        with meter.phase(Phase.rollout):
            assert not meter.libraries
        with meter.phase(Phase.update):
            pass
        seen = dict(meter.libraries)
        with meter.phase(Phase.update):
            pass

    assert meter.libraries == seen
    assert any("libc" in name and 2**12 <= count < 2**24 for name, count in seen.items())
    assert all(count >= 0 and name.startswith("/") for name, count in seen.items())
