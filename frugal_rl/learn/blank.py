"""Real updates and real acting on observations without content: no environment, nothing compiled.

What convolutions hold depends on shapes alone, and a trace does not show all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from frugal_rl.learn.gauge import Gauge
from frugal_rl.learn.optimizer import FlatAdam
from frugal_rl.learn.trace import CPU, Traced, act, heap_bytes_of, learn, samples_at_once
from frugal_rl.learn.update import update_threads
from frugal_rl.memory.allocator import pin_allocator
from frugal_rl.memory.base import TINY
from frugal_rl.memory.machine import has_accelerator
from frugal_rl.memory.probe import Probe

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig


class Blank:
    """The run's learner on the CPU, and what is measured of it: `update(B)` and `acting(B)`."""

    def __init__(self, run: RunConfig) -> None:
        self.run, self.policy = run, Traced(run, CPU)
        self.adam = FlatAdam(self.policy.parameters(), 1e-9, 1e-5, fused=False)

    def learns(self) -> None:
        """From here on as in an update."""
        run, network = self.run, self.policy.network
        wanted, processes = run.hardware.threads, run.launch.processes
        torch.set_num_threads(update_threads(wanted, network, samples_at_once(run), processes))
        network.train()

    def acts(self) -> None:
        """From here on as while collecting."""
        torch.set_num_threads(1)
        self.policy.network.eval()

    def update(self, samples: int) -> Callable[[], None]:
        """An update on B samples."""

        def once() -> None:
            self.adam.zero_grad()
            learn(self.policy, self.run, samples)
            self.adam.step(0.5)

        return once

    def acting(self, samples: int) -> Callable[[], None]:
        """A forward pass on B observations."""
        return lambda: act(self.policy, self.run, samples)


def measure_blank(run: RunConfig) -> Probe | None:
    """What the run's learner holds, by updates of growing size in this process.

    None where that depends on what the network sees, or lies on an accelerator.
    """
    if has_accelerator(run.hardware.device):
        return None
    heap = heap_bytes_of(run)
    if heap is None:
        return None
    pin_allocator()
    blank, gauge = Blank(run), Gauge(CPU)
    blank.learns()
    learning = gauge.line(blank.update, TINY["batch_size"], samples_at_once(run))
    blank.acts()
    acting = gauge.line(blank.acting, TINY["num_envs"], max(run.algo.num_envs, 2))
    weights = blank.policy.weight_bytes
    return Probe(
        fixed_bytes=0,
        bytes_per_sample=learning.per_sample,
        heap_bytes_per_sample=heap,
        parameter_bytes=weights,
        gradient_bytes=weights,
        optimizer_bytes=2 * weights,
        forward_bytes_per_sample=acting.per_sample,
    )
