"""Real updates of a replay's networks that convolve, of growing size, in a process of their own.

python -m frugal_rl.run.replay_process < request.json
"""

from __future__ import annotations

import json
from typing import Any

from frugal_rl.errors import FrugalError
from frugal_rl.learn.trace import CPU
from frugal_rl.learn.trace_replay import Networks
from frugal_rl.memory.allocator import pin_allocator
from frugal_rl.run.asked import asked_run, end_with


def main() -> None:
    """Read the request, print the answer as one line of JSON; null where the run is refused."""
    try:
        run: Any = asked_run()
        pin_allocator()
        networks = Networks(run, run.algo, run.agent, CPU)
        answer = {"bytes_per_sample": networks.measured_bytes_per_sample()}
    except FrugalError:
        answer = None
    print(json.dumps(answer))


if __name__ == "__main__":
    end_with(main)
