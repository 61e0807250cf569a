"""The process that `benchmarks/instructions.py` counts or times.

    python benchmarks/instructions_counted.py REPEATS [LIBRARY]

Prints a name and the least processor seconds of each thing; with a library (`instructions.c`)
callgrind is on during the last repetition only. The code, its workload and maps come from
the checkout in PYTHONPATH.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch
from simulator import load_maps, sticky_actions
from train_workload import Trivial, TrivialBatch, iterate, ours

from frugal_rl.memory import MemoryProfile
from frugal_rl.run.config import Hardware, RunConfig
from nclone.sim import state as st
from nclone.sim.world import World

ENVS, HIDDEN, BATCH = 16, 64, 2048
WORLDS, FRAMES = 8, 125


def learner(num_envs: int, engine: str):
    """Ours on the trivial workload; a checkout that has no engines is the exact one."""
    plain = ours(num_envs, HIDDEN, BATCH, 1, fused=False)
    if engine == "exact":
        return plain
    from frugal_rl.learn.on_policy_config import Engine

    algo = replace(plain.config, engine=Engine[engine])
    hardware = Hardware(device="cpu", threads=1)
    run = RunConfig(Trivial(), plain.policy.agent, algo, MemoryProfile(), None, hardware=hardware)
    return algo.build(run, TrivialBatch(num_envs, run.encoding()))


def update(engine: str) -> Callable[[], object]:
    """One update; what is loaded at the first one is loaded by a small one before."""
    iterate(learner(1, engine))
    trained = learner(ENVS, engine)
    rollout = trained.collector.collect(getattr(trained, "actor", trained.policy))
    return lambda: trained.learn(rollout)


def frames() -> Callable[[], object]:
    """1,000 frames of the simulator: eight worlds in one call."""
    levels = list(load_maps().values())
    world = World(levels, np.arange(WORLDS, dtype=np.int32) % len(levels), threads=1)
    actions = sticky_actions(FRAMES, WORLDS)
    world.step(actions[:1], frames=1, on_end=st.RESTART)
    return lambda: world.step(actions, frames=1, on_end=st.RESTART)


def things() -> Iterator[tuple[str, Callable[[], object]]]:
    """Names and what they do."""
    yield "1,000 frames", frames()
    yield "update, exact", update("exact")
    if hasattr(learner(1, "exact").config, "engine"):
        yield "update, compiled", update("compiled")


def main() -> None:
    """Count or time each."""
    repeats, library = int(sys.argv[1]), ctypes.CDLL(sys.argv[2]) if sys.argv[2:] else None
    torch.set_num_threads(1)
    for name, call in things():
        seconds = []
        for number in range(repeats):
            if library and number == repeats - 1:
                library.start()
            began = time.process_time()
            call()
            seconds.append(time.process_time() - began)
        if library:
            library.stop(name.encode())
        print(f"{name}\t{min(seconds)}", flush=True)


if __name__ == "__main__":
    main()
