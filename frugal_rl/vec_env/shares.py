"""Work on N things, shared out among a few threads: a thing belongs to one of them at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from typing import TypeVar

Answer = TypeVar("Answer")


def shares(count: int, workers: int) -> list[tuple[int, int]]:
    """Things [first, end) of each worker, as equal as possible."""
    bounds = [count * w // workers for w in range(workers + 1)]
    return list(pairwise(bounds))


class Shares:
    """Threads for jobs that release the interpreter's lock; they start with the first such job."""

    def __init__(self, threads: int = 0, least: int = 1) -> None:
        """Starts nothing yet.

        Args:
            threads: 0 means one per core; 1 never starts a thread.
            least: things for which it is worth waking one.
        """
        self.threads, self.least = threads or os.cpu_count() or 1, least
        self._pool: ThreadPoolExecutor | None = None

    def each(
        self, count: int, job: Callable[[int, int], Answer], threads: int | None = None
    ) -> list[Answer]:
        """Calls `job(first, end)` for shares of `count` things, and waits until all are done.

        Args:
            count: things in all.
            job: does what is to be done with things [first, end).
            threads: fewer than there are.

        Returns:
            The answers in the order of the shares.
        """
        most = min(count // self.least, threads or self.threads, self.threads)
        if most <= 1:
            return [job(0, count)]
        # The calling thread takes the first share itself: one thread less to wake per step.
        own, *others = shares(count, most)
        pool = self._threads()
        later = [pool.submit(job, *share) for share in others]
        try:
            first = job(*own)
        finally:
            wait(later)  # nobody works on arrays that the caller takes for its own again
        return [first, *(answer.result() for answer in later)]

    def one_by_one(self, count: int, job: Callable[[int], object]) -> None:
        """Calls `job(i)` for each of `count` things: whoever is free takes the next one.

        For things that take long and not equally long: no thread waits while another has several
        left.
        """
        left = iter(range(count))  # taking from it is one step of the interpreter

        def some(*_: int) -> None:
            for thing in left:
                job(thing)

        self.each(count, some)

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads - 1, "shares")
        return self._pool

    def close(self) -> None:
        """Ends the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
