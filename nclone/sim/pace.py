"""How many threads a loop over worlds gets: all of them, or one where others use the machine.

A loop on several threads ends with its last one. Beside busy processes that one may not be
running, and all wait for it, longer than the loop takes. So both ways are timed now and then, and
the faster one is kept; what the loop computes does not depend on it.
"""

from __future__ import annotations

import time

TRIAL = 12
"""Calls that are timed of each way."""
FIRST, MOST = 200, 6400
"""Calls between two comparisons: doubled each time the choice is confirmed."""
BETTER = 0.9
"""Share of the time that the other way must take to be chosen."""


class Pace:
    """Chooses between one thread and `threads` for the calls that it times."""

    def __init__(self, threads: int) -> None:
        self.threads = self.most = threads
        self.interval, self.calls = FIRST, FIRST - 2 * TRIAL
        self.spent, self.longest = [0.0, 0.0], [0.0, 0.0]
        self.began = 0.0

    def begin(self) -> int:
        """Threads for the next call."""
        self.began = time.perf_counter()
        return self.other if self.calls >= self.interval - TRIAL else self.threads

    @property
    def other(self) -> int:
        """The way that is not taken at present."""
        return 1 if self.threads > 1 else self.most

    def end(self) -> None:
        """The call is over; after a comparison the faster way is taken."""
        took = time.perf_counter() - self.began
        if self.calls >= self.interval - 2 * TRIAL:
            way = self.calls >= self.interval - TRIAL
            self.spent[way] += took
            self.longest[way] = max(self.longest[way], took)
        self.calls += 1
        if self.calls == self.interval:
            self._compare()

    def _compare(self) -> None:
        # one call of each way may hold a closed lid, or a second of somebody else's
        present, other = (whole - one for whole, one in zip(self.spent, self.longest, strict=True))
        if other < BETTER * present:
            self.threads, self.interval = self.other, FIRST
        else:
            self.interval = min(2 * self.interval, MOST)
        self.calls, self.spent, self.longest = 0, [0.0, 0.0], [0.0, 0.0]
