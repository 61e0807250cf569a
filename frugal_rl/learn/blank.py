"""Real updates and real acting on observations without content: no environment, nothing compiled.

What convolutions hold depends on shapes alone, and a trace does not show all of it. Networks whose
work depends on what they see (graphs of levels) are shown what the environment tells of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from frugal_rl.learn.gauge import Gauge, Line
from frugal_rl.learn.optimizer import FlatAdam
from frugal_rl.learn.trace import (
    CPU,
    FEW_ROWS,
    Traced,
    act,
    heap_bytes_of,
    heap_bytes_shown,
    learn,
    samples_at_once,
)
from frugal_rl.learn.update import update_threads
from frugal_rl.memory.allocator import SETTLED_HOLES, pin_allocator
from frugal_rl.memory.base import TINY
from frugal_rl.memory.machine import has_accelerator
from frugal_rl.memory.probe import Probe

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig


class Blank:
    """The run's learner on the CPU, and what is measured of it: `update(B)` and `acting(B)`."""

    def __init__(self, run: RunConfig) -> None:
        self.run, self.policy = run, Traced(run, CPU)
        # Nothing is learned: biases that begin at zero would grow to products of 1e-38, which
        # processors compute thirty times as slowly.
        self.adam = FlatAdam(self.policy.parameters(), 0.0, 1e-5, fused=False)

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

    def update(self, samples: int, rows: int | None = None) -> Callable[[], None]:
        """An update on B samples, of as many static rows as the run shows or `rows`."""

        def once() -> None:
            self.policy.distinct = rows
            self.adam.zero_grad()
            learn(self.policy, self.run, samples)
            self.adam.step(0.5)

        return once

    def acting(self, samples: int, rows: int | None = None) -> Callable[[], None]:
        """A forward pass on B observations; the same ones again where it is repeated."""
        self.policy.distinct = rows
        shown = self.policy.shown(samples)
        return lambda: act(self.policy, self.run, shown)


Call = Callable[[int, int | None], Callable[[], None]]
"""(B, static rows) -> what is measured or timed."""
FEW_SAMPLES = 8
"""Of so many samples static rows are added to."""
MORE_SAMPLES = 64
"""What they hold is measured of so many as well: of few, copies of weights may hide it."""


def cost_of_rows(
    call: Call,
    cost: Callable[[Callable[[], None]], float],
    rows: float,
    samples: int = FEW_SAMPLES,
) -> float:
    """What all static rows but the first one of a minibatch add to a cost, each as much."""
    few, more = FEW_ROWS
    if rows <= few:
        return 0.0
    one, some = (cost(call(samples, n)) for n in FEW_ROWS)
    return max(0.0, some - one) / (more - few) * (rows - few)


def measure_blank(run: RunConfig) -> Probe | None:
    """What the run's learner holds, by updates of growing size in this process.

    None where that depends on what the network sees and the environment tells nothing of it, or
    where it lies on an accelerator.
    """
    if has_accelerator(run.hardware.device):
        return None
    heap = heap_bytes_of(run)
    if heap is not None:
        return _measured(run, heap)
    try:
        return _measured(run, None) if hasattr(run.env, "content") else None
    except (NotImplementedError, RuntimeError):  # it reads more than is told
        return None


def _measured(run: RunConfig, heap: float | None) -> Probe:
    """What `measure_blank` finds; without `heap` of what the environment tells."""
    pin_allocator()
    blank, gauge, at_once = Blank(run), Gauge(CPU), samples_at_once(run)
    shown, players = heap is None, max(run.algo.num_envs, 2)
    blank.learns()
    learning = _line(gauge, blank, blank.update, (TINY["batch_size"], at_once), shown)
    blank.acts()
    acting = _line(gauge, blank, blank.acting, (TINY["num_envs"], players), shown)
    weights = blank.policy.weight_bytes
    return Probe(
        fixed_bytes=0,
        first_bytes=int(learning.fixed) if shown else 0,
        bytes_per_sample=learning.per_sample,
        heap_bytes_per_sample=heap_bytes_shown(run) if heap is None else SETTLED_HOLES * heap,
        parameter_bytes=weights,
        gradient_bytes=weights,
        optimizer_bytes=2 * weights,
        forward_bytes_per_sample=acting.per_sample,
    )


def _line(gauge: Gauge, blank: Blank, call: Call, sizes: tuple[int, int], shown: bool) -> Line:
    """The chord between both sizes; with what more static rows hold in the larger one."""
    few, largest = sizes
    if not shown:
        return gauge.line(lambda n: call(n, None), few, largest)
    line = gauge.line(lambda n: call(n, 1), few, largest)
    rows = blank.policy.content.distinct(largest)
    more = max(
        cost_of_rows(call, gauge.growth, rows, samples)
        for samples in {FEW_SAMPLES, min(largest, MORE_SAMPLES)}
    )
    return Line(line.fixed, line.per_sample + more / largest)
