"""A process that imports what a run imports, steps two of its environments and says what it holds.

python -m frugal_rl.memory.bare_process < request.json
"""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from frugal_rl.config import run_from
from frugal_rl.memory.allocator import pin_allocator
from frugal_rl.memory.profile import Allocator
from frugal_rl.memory.usage import held_bytes, of_tree
from frugal_rl.run import RunConfig

ENVS = 2


def measure(run: RunConfig) -> int:
    """Bytes of this process and its children, without what the plan counts for two environments."""
    if run.memory.allocator is Allocator.pinned:
        pin_allocator()
    importlib.import_module("frugal_rl.train.trainer")
    if run.tracking.wandb != "disabled":
        importlib.import_module("wandb")
    small: Any = replace(run.algo, num_envs=ENVS, batch_size=ENVS, n_steps=2)  # type: ignore[type-var]
    run = replace(run, algo=small)
    encoding = run.encoding()
    envs = run.env.make_vec(ENVS, encoding, run.memory, run.vec, "train")
    envs.reset(0)
    for _ in range(2):
        envs.step(np.array([envs.action_space.sample() for _ in range(ENVS)]))
    held = held_bytes(of_tree())
    planned = sum(p.ram_bytes for p in run.env.parts(ENVS, encoding, run.memory, run.vec))
    envs.close()
    return max(0, held - planned)


def main() -> None:
    """Read the request, print the answer as one line of JSON."""
    request = json.load(sys.stdin)
    run = run_from(request["values"], plugins=tuple(request["plugins"] or ()))
    print(json.dumps({"bytes": measure(run)}))


if __name__ == "__main__":
    main()
