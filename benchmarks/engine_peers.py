"""The trainers of `benchmarks/engine.py` that this interpreter runs, each a process of its own.

    python benchmarks/engine_peers.py NAME NUM_ENVS HIDDEN BATCH STEPS EPOCHS THREADS

SB3, the plain loop of `engine_cleanrl.py`, both of our engines; and `sgemm`, which has none: its
two times are those of one NumPy and one torch product, 1,024 x 1,024.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from engine_cleanrl import Loop
from engine_serve import Mark, serve
from stable_baselines3.common.callbacks import CallbackList
from train_workload import Trivial, TrivialBatch, ours, sb3

from frugal_rl.learn.on_policy_config import Engine
from frugal_rl.memory import MemoryProfile
from frugal_rl.memory.part import Phase
from frugal_rl.run.config import Hardware, RunConfig

if TYPE_CHECKING:
    from frugal_rl.learn.ppo import PpoLearner

SIDE, PRODUCTS = 1024, 4


def learner(num_envs: int, hidden: int, batch: int, threads: int, engine: Engine) -> PpoLearner:
    """Ours on the workload, under one of the engines."""
    plain = ours(num_envs, hidden, batch, threads, fused=False)
    algo = replace(plain.config, engine=engine)
    hardware = Hardware(device="cpu", threads=threads)
    run = RunConfig(Trivial(), plain.policy.agent, algo, MemoryProfile(), None, hardware=hardware)
    return algo.build(run, TrivialBatch(num_envs, run.encoding()))


def our_iteration(trained: PpoLearner) -> Callable[[Mark], object]:
    """Ours; the mark is where its update begins."""

    def iteration(mark: Mark) -> None:
        def phase(which: Phase) -> Any:
            if which is Phase.update:
                mark()
            return nullcontext()

        trained.iterate(phase)

    return iteration


def stock_iteration(num_envs: int, hidden: int, batch: int, threads: int) -> Callable[[Mark], None]:
    """Stable-Baselines3's."""
    model = sb3(num_envs, hidden, batch, threads)
    callback = CallbackList([])
    callback.init_callback(model)

    def iteration(mark: Mark) -> None:
        model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)
        mark()
        model.train()

    return iteration


def products(mark: Mark) -> None:
    """OpenBLAS's, then MKL's, as NumPy and torch ship them."""
    a = np.ones((SIDE, SIDE), np.float32)
    b = torch.from_numpy(a)
    for _ in range(PRODUCTS):
        a @ a
    mark()
    for _ in range(PRODUCTS):
        b @ b


def main() -> None:
    """Serve one trainer."""
    name = sys.argv[1]
    num_envs, hidden, batch, steps, epochs, threads = map(int, sys.argv[2:])
    torch.set_num_threads(threads)
    if name == "sgemm":
        serve(products)
    elif name == "SB3":
        serve(stock_iteration(num_envs, hidden, batch, threads))
    elif name == "plain loop":
        serve(Loop(num_envs, hidden, batch, steps, epochs).iterate)
    else:
        serve(our_iteration(learner(num_envs, hidden, batch, threads, Engine[name])))


if __name__ == "__main__":
    main()
