"""Threads beside the caller's, which wait for short pieces of work.

A `ThreadPoolExecutor` makes a future with a lock of its own for each piece: 0.1 ms of a minibatch
that takes 2.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from threading import Lock, Thread

Work = Callable[[int], object]


class Post:
    """One thread: it waits for work, and whoever gave it waits until it is done."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.given, self.done = Lock(), Lock()
        self.work: Work | None = None
        self.busy = False
        self.error: BaseException | None = None
        self.given.acquire()
        self.done.acquire()
        Thread(target=self._serve, name=f"engine_{number}", daemon=True).start()

    def give(self, work: Work | None) -> None:
        """Begin, after what an interruption left behind; None ends the thread."""
        if self.busy:
            self.wait()
        self.work, self.busy = work, True
        self.given.release()

    def _serve(self) -> None:
        while True:
            self.given.acquire()
            work, self.work = self.work, None
            if work is None:
                return
            try:
                work(self.number)
            except BaseException as error:
                self.error = error
            self.done.release()
            del work  # it may be the last to hold the crew, which then waits for `done`

    def wait(self) -> BaseException | None:
        """What went wrong."""
        self.done.acquire()
        self.busy = False
        error, self.error = self.error, None
        return error


class Crew:
    """So many threads, the caller's among them; the others end with this object."""

    def __init__(self, threads: int) -> None:
        self._posts = [Post(number) for number in range(1, threads)]
        weakref.finalize(self, _dismiss, self._posts)

    def settle(self) -> None:
        """Wait for what an interruption left behind."""
        for post in self._posts:
            if post.busy:
                post.wait()

    def __call__(self, work: Work) -> None:
        """Call it in every thread with its number, and wait for all; then raise what they did."""
        for post in self._posts:
            post.give(work)
        try:
            work(0)
        finally:
            errors = [post.wait() for post in self._posts]
        for error in filter(None, errors):
            raise error


def _dismiss(posts: list[Post]) -> None:
    for post in posts:
        post.give(None)
