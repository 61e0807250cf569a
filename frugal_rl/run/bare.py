"""What a bare training process of this installation holds, phase by phase.

    python -m frugal_rl.run.bare < request.json

A tiny run of the toy, less what is planned for its sizes.
"""

from __future__ import annotations

import json

from frugal_rl.memory.base import Base, measured_peaks, tiny
from frugal_rl.memory.machine import device_here
from frugal_rl.memory.part import Confidence
from frugal_rl.memory.plan import residual
from frugal_rl.run.asked import asked, end_with
from frugal_rl.run.compose import compose_run
from frugal_rl.run.probe import probe_update

WORDS = ("env=toy", "agent=mlp", "algo=ppo", "memory=lossless")


def main() -> None:
    """Read the request, print the answer as one line of JSON."""
    values = asked()["values"]
    like = [f"tracking.wandb={values['tracking']['wandb']}"]
    like += [f"hardware.device={device_here(values['hardware']['device'])}"]
    like += [f"memory.{name}={values['memory'][name]}" for name in ("allocator", "library_pages")]
    run = compose_run([*WORDS, *like])
    nothing = Base.everywhere(0, Confidence.probed)
    found = probe_update(run)
    base = residual(tiny(run), found, nothing, measured_peaks(run))
    print(json.dumps({"bytes": {p.value: count for p, count in base.by_phase.items()}}))


if __name__ == "__main__":
    end_with(main)
