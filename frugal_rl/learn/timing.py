"""How long an update and acting take on this machine: a few real ones, of growing size.

What the network sees is zeros of the right shapes, so that no environment is needed. The largest
size that is tried is the first one that takes a while; what lies above follows the last doubling.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from frugal_rl.learn.optimizer import FlatAdam
from frugal_rl.learn.trace import CPU, Traced, act, learn
from frugal_rl.learn.update import update_threads
from frugal_rl.memory.duration import Line, Pace

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

ENOUGH_SECONDS = 0.2
"""A size that takes this long is the last one."""
REPEATS = 3


def line(call: Callable[[int], Callable[[], Any]], largest: int) -> Line:
    """Seconds as a line in the number of samples; `call(B)` prepares what is timed.

    The best of a few repetitions counts: what else runs on the machine only ever adds.
    """
    took, size = {}, 1
    call(size)()  # loads kernels, starts threads
    while True:
        took[size] = _best(call(size))
        if size == largest or took[size] > ENOUGH_SECONDS:
            break
        size = min(4 * size, largest)
    if len(took) == 1:
        return Line(0.0, took[size] / size)
    before, last = sorted(took)[-2:]
    slope = max(0.0, (took[last] - took[before]) / (last - before))
    return Line(max(0.0, took[last] - slope * last), slope)


def _best(call: Callable[[], Any]) -> float:
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def pace_of(run: RunConfig) -> Pace:
    """Seconds of the run's update and of its acting, without an environment."""
    config: Any = run.algo
    policy = Traced(run, CPU)
    adam = FlatAdam(policy.parameters(), 1e-9, 1e-5, fused=False)
    total = config.n_steps * config.num_envs
    at_once = min(run.memory.micro_batch or config.batch_size, config.batch_size, total)

    def update(samples: int) -> Callable[[], None]:
        def once() -> None:
            adam.zero_grad()
            learn(policy, run, samples)
            adam.step(0.5)

        return once

    torch.set_num_threads(update_threads(run.hardware.threads, policy.network, at_once))
    policy.network.train()
    updating = line(update, at_once)
    torch.set_num_threads(1)  # as while collecting
    policy.network.eval()
    acting = line(lambda samples: lambda: act(policy, run, samples), config.num_envs)
    return Pace(updating, acting)
