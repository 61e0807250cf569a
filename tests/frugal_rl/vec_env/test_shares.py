"""Work shared out among threads: all of it once, in order, and nobody works on after the answer."""

import threading
import time

import pytest

from frugal_rl.vec_env.shares import Shares, shares


@pytest.fixture
def three():
    """Three threads, ended afterwards."""
    threads = Shares(3)
    yield threads
    threads.close()


@pytest.mark.parametrize(("count", "workers"), [(7, 3), (3, 3), (64, 5), (2, 3), (0, 2)])
def test_shares_cover_everything_once_and_differ_by_one(count, workers):
    parts = shares(count, workers)
    things = [i for first, end in parts for i in range(first, end)]
    sizes = [end - first for first, end in parts]

    assert things == list(range(count))
    assert max(sizes) - min(sizes) <= 1


def test_answers_come_in_the_order_of_the_shares(three):
    def late_first(first, end):
        time.sleep(0.02 if first == 0 else 0.0)
        return list(range(first, end))

    assert three.each(8, late_first) == [[0, 1], [2, 3, 4], [5, 6, 7]]


def test_shares_run_side_by_side_and_the_caller_takes_the_first(three):
    together = threading.Barrier(3, timeout=5.0)  # broken unless all three are there at once
    names = three.each(3, lambda *_: (together.wait(), threading.current_thread().name)[1])

    assert names[0] == threading.current_thread().name
    assert len(set(names)) == 3


def test_who_is_free_takes_the_next_thing(three):
    others, done = threading.Event(), []

    def job(thing):
        if thing == 0:
            assert others.wait(5.0), "the others wait for the slow one"
        done.append(thing)
        if len(done) == 6:
            others.set()

    three.one_by_one(7, job)

    assert sorted(done) == list(range(7))
    assert done[-1] == 0


@pytest.mark.parametrize(
    ("count", "threads", "parts"), [(9, 1, 1), (9, 2, 2), (9, 8, 3), (2, 3, 2)]
)
def test_no_more_threads_than_asked_for_had_or_useful(three, count, threads, parts):
    assert len(three.each(count, lambda *share: share, threads)) == parts


def test_few_things_are_not_worth_a_thread():
    before = threading.active_count()
    few = Shares(4, least=64)

    assert few.each(127, lambda *share: share) == [(0, 127)]
    assert few.each(0, lambda *share: share) == [(0, 0)]
    assert threading.active_count() == before

    assert few.each(128, lambda *share: share) == [(0, 64), (64, 128)]
    few.close()


def test_a_mistake_is_told_only_when_nobody_works_any_more(three):
    ended = []

    def job(first, end):
        if first == 0:
            raise ValueError("the caller's own share")
        time.sleep(0.05)
        ended.append(first)

    with pytest.raises(ValueError, match="own share"):
        three.each(3, job)
    assert sorted(ended) == [1, 2]


def test_a_mistake_in_a_thread_reaches_the_caller(three):
    def job(first, end):
        if end == 3:
            raise KeyError("the last share")

    with pytest.raises(KeyError, match="last share"):
        three.each(3, job)
    assert three.each(3, lambda *share: share[0]) == [0, 1, 2]
