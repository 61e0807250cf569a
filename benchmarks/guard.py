"""What the guard on numbers costs: its own processor time beside that of whole iterations.

    python benchmarks/guard.py [words of a run]

Runs with and without it differ by less than two equal runs do; so its own calls are timed.
Last result (two cores, busy): see docs/reliability.md.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from frugal_rl.run.compose import compose_run
from frugal_rl.run.guard import NumberGuard
from frugal_rl.run.trainer import no_meter

WORDS = ["env=nclone", "memory=parallel"]
ITERATIONS = 6


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


def main() -> None:
    words = sys.argv[1:] or WORDS
    with tempfile.TemporaryDirectory() as folder:
        run = replace(compose_run(words), run_dir=folder)
        env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
        guard = NumberGuard(Path(folder))
        own = Spent()
        guard._look = own.timed(guard._look)  # type: ignore[method-assign]
        guard._check = own.timed(guard._check)  # type: ignore[method-assign]
        learner = run.algo.build(run, guard.watch(env))
        learner.iterate(no_meter)  # kernels and allocations
        own.seconds, began = 0.0, time.process_time()
        for _ in range(ITERATIONS):
            guard.iterate(learner, lambda: learner.iterate(no_meter))
        whole = time.process_time() - began
        env.close()
    share, each = own.seconds / whole, 1e3 / ITERATIONS
    print(f"{' '.join(words)}: {share:.3%} of the processor time is the guard's")
    print(f"{each * own.seconds:.2f} of {each * whole:.0f} ms an iteration")


if __name__ == "__main__":
    main()
