"""The trace's process: torch's meta device loads 80 MiB that no training process should hold.

Convolutions are measured here too, on observations without content.

python -m frugal_rl.run.trace_process < request.json
"""

from __future__ import annotations

import json
from dataclasses import replace

from frugal_rl.errors import FrugalError
from frugal_rl.learn.blank import measure_blank
from frugal_rl.learn.timing import pace_of
from frugal_rl.learn.trace import trace
from frugal_rl.memory.child import wait_for_quiet
from frugal_rl.run.asked import asked_run, end_with


def main() -> None:
    """Read the request, print the answer as one line of JSON; null where nothing can be traced."""
    try:
        run = asked_run()
        found = trace(run) or measure_blank(run)
        wait_for_quiet()
        answer = None if found is None else replace(found, pace=pace_of(run)).as_json()
    except FrugalError as error:
        answer = {"refused": str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    end_with(main)
