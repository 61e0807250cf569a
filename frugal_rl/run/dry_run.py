"""A tiny training run in a process of its own, and the most that its tree held in each phase.

    python -m frugal_rl.run.dry_run < request.json

It goes through everything that a long run goes through once: libraries, kernels, tracker, rollout,
update, evaluation, checkpoint. What the plan counts for its sizes is taken off by the caller.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING

from frugal_rl.memory.base import tiny
from frugal_rl.memory.meter import MemoryMeter
from frugal_rl.memory.plan import draw_up
from frugal_rl.memory.process import settle_process
from frugal_rl.report.log import open_log
from frugal_rl.run.asked import asked_run, end_with
from frugal_rl.run.compiling import told_compiling
from frugal_rl.run.trainer import train

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

SAMPLE_SECONDS = 0.1


def measure(run: RunConfig) -> dict[str, dict[str, int]]:
    """Of a tiny run: peak bytes of this process tree in each phase, and bytes of each library."""
    settle_process(run.memory)
    with tempfile.TemporaryDirectory() as folder:
        run = replace(tiny(run), run_dir=folder)
        with (
            MemoryMeter(sample_seconds=SAMPLE_SECONDS) as meter,
            open_log(run, draw_up(run), meter) as log,
        ):
            train(run, log, phase=meter.phase)
            peaks = {phase.value: most.ram for phase, most in meter.peaks.items()}
            return {"bytes": peaks, "libraries": meter.libraries}


def main() -> None:
    """Read the request, print the answer as one line of JSON."""
    run = asked_run()
    with told_compiling() as compiling:
        found = measure(run)
    print(json.dumps({**found, "compiled": compiling.count > 0}))


if __name__ == "__main__":
    end_with(main)
