"""What the guard on numbers costs: iterations with and without it, and its own processor time.

    python benchmarks/guard.py [words of a run]

Two equal learners in one process take turns, one of them guarded. Their ratio also holds the noise
of two equal runs, so the guard's own calls are timed as well.
Last result: see docs/reliability.md.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from frugal_rl.run.compose import compose_run
from frugal_rl.run.guard import NumberGuard
from frugal_rl.run.trainer import no_meter

WORDS = ["env=nclone", "memory=parallel"]
ITERATIONS = 20
MOST = 0.01
"""Share of the processor time of training that the guard may take."""


class Spent:
    """Processor seconds of this thread in the calls that it wraps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, its seconds added up."""

        def timed(*args: Any) -> Any:
            began = time.thread_time()
            try:
                return call(*args)
            finally:
                self.seconds += time.thread_time() - began

        return timed


def seconds_of(call: Callable[[], Any]) -> float:
    """Processor seconds of all threads during a call."""
    began = time.process_time()
    call()
    return time.process_time() - began


def main() -> None:
    words = sys.argv[1:] or WORDS
    with tempfile.TemporaryDirectory() as folder:
        run = replace(compose_run(words), run_dir=folder)
        sizes = (run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
        env, other = (run.env.make_vec(*sizes) for _ in range(2))
        guard = NumberGuard(Path(folder))
        own = Spent()
        guard._look = own.timed(guard._look)  # type: ignore[method-assign]
        guard._look_at_actions = own.timed(guard._look_at_actions)  # type: ignore[method-assign]
        guard._check = own.timed(guard._check)  # type: ignore[method-assign]
        guarded = run.algo.build(run, guard.watch(env))
        plain = run.algo.build(run, other)
        pair = (
            lambda: guard.iterate(guarded, lambda: guarded.iterate(no_meter)),
            lambda: plain.iterate(no_meter),
        )
        for iterate in pair:
            iterate()  # kernels and allocations
        own.seconds = 0.0
        taken = []
        for number in range(ITERATIONS):
            order = (0, 1) if number % 2 else (1, 0)
            spent = {place: seconds_of(pair[place]) for place in order}
            taken.append((spent[0], spent[1]))
        env.close()
        other.close()
    ratios = sorted(a / b for a, b in taken)
    whole, each = sum(a for a, _ in taken), 1e3 / ITERATIONS
    share = own.seconds / whole
    verdict = "within" if share <= MOST else "ABOVE"
    print(
        f"{' '.join(words)}: the guard's own calls took {share:.3%} of the processor time", end=" "
    )
    print(f"({each * own.seconds:.2f} of {each * whole:.0f} ms an iteration),", end=" ")
    print(f"{verdict} {MOST:.0%}; guarded / plain {median(ratios):.4f}", end=" ")
    print(f"(middle half {ratios[ITERATIONS // 4]:.4f} to {ratios[-1 - ITERATIONS // 4]:.4f})")


if __name__ == "__main__":
    main()
