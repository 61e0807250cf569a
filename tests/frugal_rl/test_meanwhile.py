"""What is done beside a block: again and again, and not after it."""

import threading
from itertools import count

import pytest

from frugal_rl.meanwhile import meanwhile

PATIENCE_S = 20.0


def test_calls_go_on_until_the_block_is_over():
    calls, third = count(1), threading.Event()
    with meanwhile(lambda: next(calls) >= 3 and third.set(), 0.001, "beside"):
        assert third.wait(PATIENCE_S)
        assert "beside" in [thread.name for thread in threading.enumerate()]
    assert "beside" not in [thread.name for thread in threading.enumerate()]


def test_the_thread_ends_with_a_block_that_fails():
    with pytest.raises(KeyError), meanwhile(lambda: None, 60.0, "beside"):
        raise KeyError
    assert "beside" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.filterwarnings("error")  # an error that nobody expects is told by its thread
def test_an_error_that_ends_the_calls_ends_nothing_else():
    called = []

    def call():
        called.append(threading.current_thread())
        raise ConnectionError

    with meanwhile(call, 0.001, "beside", ConnectionError):
        while not called:
            pass
        called[0].join(PATIENCE_S)
        assert not called[0].is_alive()
    assert len(called) == 1
