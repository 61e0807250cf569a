"""One thread or all: whatever is faster, found out at little cost."""

import pytest

from nclone.sim import pace
from nclone.sim.pace import FIRST, MOST, TRIAL, Pace


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test moves."""
    now = [0.0]
    monkeypatch.setattr(pace.time, "perf_counter", lambda: now[0])
    return now


def calls(chooser, clock, seconds, count):
    """Threads of each of `count` calls, where n threads take seconds[n]."""
    taken = []
    for _ in range(count):
        taken.append(chooser.begin())
        clock[0] += seconds[taken[-1]]
        chooser.end()
    return taken


def test_beside_busy_processes_it_comes_down_to_one_thread_at_once(clock):
    taken = calls(Pace(4), clock, {4: 10.0, 1: 1.0}, 2 * TRIAL + 100)

    assert taken == [4] * TRIAL + [1] * (TRIAL + 100)


def test_on_a_quiet_machine_all_threads_stay_and_trials_become_rare(clock):
    taken = calls(Pace(2), clock, {2: 0.6, 1: 1.0}, 20 * MOST)

    assert taken.count(1) < 30 * TRIAL
    assert taken[-MOST:].count(1) <= TRIAL


def test_it_takes_all_threads_again_when_the_machine_is_free(clock):
    chooser = Pace(2)
    calls(chooser, clock, {2: 5.0, 1: 1.0}, FIRST)

    taken = calls(chooser, clock, {2: 0.6, 1: 1.0}, 3 * FIRST)

    assert taken[-1] == 2


def test_a_difference_within_noise_changes_nothing(clock):
    assert Pace(2).threads == 2
    chooser = Pace(2)
    calls(chooser, clock, {2: 1.0, 1: 0.95}, 4 * FIRST)
    assert chooser.threads == 2


@pytest.mark.parametrize("stalled", range(2 * TRIAL))
def test_one_call_that_stood_still_decides_nothing(clock, stalled):
    chooser = Pace(2)
    calls(chooser, clock, {2: 0.6, 1: 1.0}, stalled)
    calls(chooser, clock, {2: 60.0, 1: 60.0}, 1)

    calls(chooser, clock, {2: 0.6, 1: 1.0}, 2 * TRIAL - stalled - 1)

    assert chooser.threads == 2
