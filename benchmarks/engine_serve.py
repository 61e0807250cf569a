"""How a trainer of `benchmarks/engine.py` answers from a process of its own. Imports no trainer.

Each line on the input asks for one iteration; the answer is four numbers: seconds of collecting by
the clock and of the processor, then those of the update.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import pairwise

Mark = Callable[[], None]


def serve(iteration: Callable[[Mark], object]) -> None:
    """`iteration` collects, calls what it is given, and updates."""
    iteration(lambda: None)  # compiles
    print("ready", flush=True)
    for _ in sys.stdin:
        marks: list[tuple[float, float]] = []

        def mark(into: list[tuple[float, float]] = marks) -> None:
            into.append((time.perf_counter(), time.process_time()))

        mark()
        iteration(mark)
        mark()
        spans = (b - a for pair in pairwise(marks) for a, b in zip(*pair, strict=True))
        print(*spans, flush=True)
