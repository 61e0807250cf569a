"""Threads beside the caller's: each gets its piece, errors come back, nobody stays behind."""

import gc
import threading
import time

import pytest

from frugal_rl.learn.compiled.crew import Crew, Post


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_each_thread_does_its_piece_every_time(threads):
    crew, done = Crew(threads), []
    for _ in range(50):
        done.clear()
        crew(lambda number: done.append((number, threading.get_ident())))
        assert sorted(number for number, _ in done) == list(range(threads))
        assert len({thread for _, thread in done}) == threads
        assert (0, threading.get_ident()) in done


@pytest.mark.parametrize("fails", [0, 1, 2])
def test_an_error_is_raised_when_all_are_done_and_the_crew_works_on(fails):
    crew, done = Crew(3), []

    def work(number):
        if number == fails:
            raise ArithmeticError(number)
        time.sleep(0.02)
        done.append(number)

    for _ in range(2):
        done.clear()
        with pytest.raises(ArithmeticError, match=str(fails)):
            crew(work)
        assert sorted(done) == [n for n in range(3) if n != fails]
    crew(lambda number: None)


def interrupted(post):
    raise KeyboardInterrupt


def test_what_an_interruption_left_behind_is_waited_for(monkeypatch):
    crew, done = Crew(2), []

    def slow(number):
        time.sleep(0.05 * number)
        done.append(number)

    with monkeypatch.context() as patch:
        patch.setattr(Post, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            crew(slow)
    crew(slow)
    assert sorted(done) == [0, 0, 1, 1]


def test_a_thread_that_held_the_crew_last_ends_as_well(monkeypatch):
    before = set(threading.enumerate())
    with monkeypatch.context() as patch:
        patch.setattr(Post, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            leave_work_behind(Crew(2))
    threads = set(threading.enumerate()) - before
    assert len(threads) == 1
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


def leave_work_behind(crew):
    """Work that holds its crew, and goes on when nobody else does."""
    crew(lambda number: time.sleep(0.3 * number) or crew)


def test_threads_end_with_the_crew():
    before = set(threading.enumerate())
    crew = Crew(3)
    crew(lambda number: None)
    threads = set(threading.enumerate()) - before
    assert len(threads) == 2
    del crew
    gc.collect()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()
