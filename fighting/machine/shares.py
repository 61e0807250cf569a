"""Work on N machines, shared out among a few threads: a machine always belongs to one of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise


class Shares:
    """Does a job for each of `count` machines; `threads` 0 means one thread per core."""

    def __init__(self, count: int, threads: int = 0) -> None:
        threads = min(count, threads or os.cpu_count() or 1)
        # The calling thread takes the first share itself: one thread less to wake per step.
        self.pool = ThreadPoolExecutor(threads - 1, "machines") if threads > 1 else None
        bounds = [count * t // threads for t in range(threads + 1)]
        self.bounds = list(pairwise(bounds))

    def each(self, job: Callable[[int], None]) -> None:
        """Calls `job` with every machine's index and waits until all are done."""
        later = []
        if self.pool is not None:
            later = [self.pool.submit(self._run, a, b, job) for a, b in self.bounds[1:]]
        self._run(*self.bounds[0], job)
        for share in later:
            share.result()

    @staticmethod
    def _run(start: int, end: int, job: Callable[[int], None]) -> None:
        for index in range(start, end):
            job(index)

    def close(self) -> None:
        """Ends the threads."""
        if self.pool is not None:
            self.pool.shutdown()
