"""What a worker process of a run holds, and once what starts them: bytes of several, by difference.

What the plan counts of their environments elsewhere is no part of it, nor is what this process
imports. `frugal_rl.run.workers_process` asks for it.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import FrugalError
from frugal_rl.memory.allocator import pin_allocator
from frugal_rl.memory.sizes import counted_bytes
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
    """Bytes of `each` worker, and `once` of what all share, beside what the plan counts anyway."""
    import_module("stable_baselines3")  # as a training process has, and torch, before its workers
    pin_allocator()
    few, all_of_them = (counted_bytes(run, count) for count in (FEW, 2 * FEW))
    bare = held_now()
    kept = [_started(run)]  # these compile what is new; they end before what all share is read
    first = held_now()
    try:
        kept.append(_started(run))
        more = held_now() - first
        close_all([kept.pop(0)])
        rest = held_now() - bare
    finally:
        close_all(kept)
    each = max(0, more - (all_of_them - few)) // FEW
    return {"each": each, "once": max(0, rest - few - FEW * each)}


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
