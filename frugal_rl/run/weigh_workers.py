"""What a worker process of a run holds, and once what starts them: bytes of several, by difference.

`frugal_rl.run.workers_process` asks for it. What this process imports counts for none of them.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import FrugalError
from frugal_rl.memory.allocator import pin_allocator
from frugal_rl.run.asked import asked_run
from frugal_rl.run.weigh import held_now
from frugal_rl.vec_env.ending import close_all

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv

FEW = 2
"""Workers that are added at a time."""
STEPS = 8


def weigh_workers(run: RunConfig) -> dict[str, int]:
    """Bytes of `each` worker, and `once` of what all of them share."""
    import_module("stable_baselines3")  # as a training process has, and torch, before its workers
    pin_allocator()
    bare = held_now()
    kept = [_started(run)]
    first = held_now() - bare
    try:
        kept.append(_started(run))
        each = max(0, held_now() - bare - first) // FEW
    finally:
        close_all(kept)
    return {"each": each, "once": max(0, first - FEW * each)}


def _started(run: RunConfig) -> VectorEnv:
    """Workers that have made their environments and stepped them."""
    env: VectorEnv = run.env.make_vec(FEW, run.encoding(), run.memory, run.vec.stepping(), "train")
    env.reset(run.seed)
    for _ in range(STEPS):
        env.step(np.stack([env.action_space.sample() for _ in range(FEW)]))
    return env


def main() -> None:
    """Read the request, print the answer as one line of JSON; null where they cannot be made."""
    try:
        answer = weigh_workers(asked_run())
    except FrugalError:
        answer = None
    print(json.dumps(answer))
