"""What a data-parallel run costs on the network and in memory per machine, by arithmetic.

Gradients are averaged by a ring: each process sends and receives twice the gradient but for one
part, in 2 (P - 1) messages that follow each other; two processes give each other a small one whole,
at once, which are as many bytes. The statistics of a minibatch are three numbers;
those of an epoch's minibatches go the same way at once, and once an update the flags that ask all
to stop. Its metrics are handed round, their sizes first. Observations never cross the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table

from frugal_rl.learn.pairs import LARGEST_BYTES
from frugal_rl.learn.ranks import STATISTICS_BYTES
from frugal_rl.memory.part import human
from frugal_rl.report.terminal import say, show

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

SCALES = (8, 64, 1000)
"""Numbers of processes that the table compares with the run's own."""

FLAGS, HANDED_ROUND = 1, 2
"""Sums, and rounds in which each process hears of all others, that an update ends with."""


@dataclass(frozen=True)
class Wire:
    """The network between the processes of a run.

    size             processes P
    gradient_bytes   one flat gradient
    minibatches      of one update, on every process at once
    epochs           of one update
    """

    size: int
    gradient_bytes: int
    minibatches: int
    epochs: int
    bandwidth_gbit: float
    latency_ms: float

    @property
    def update_bytes(self) -> int:
        """What each process sends in one update."""
        share = 2 * (self.size - 1) / self.size
        return int(share * (self.gradient_bytes + STATISTICS_BYTES) * self.minibatches)

    @property
    def update_seconds(self) -> float:
        """How long the network is busy in one update, where nothing overlaps."""
        gradients = self.in_a_row(self.gradient_bytes) * self.minibatches
        sums = self.in_a_row(STATISTICS_BYTES) * (self.epochs + FLAGS)
        messages = gradients + sums + HANDED_ROUND * (self.size - 1)
        moving = self.update_bytes * 8 / (self.bandwidth_gbit * 1e9)
        return moving + messages * self.latency_ms / 1e3

    def in_a_row(self, size_bytes: int) -> int:
        """Messages that follow each other until all processes have a sum of so many bytes."""
        if self.size == 2 and size_bytes <= LARGEST_BYTES:
            return 1
        return 2 * (self.size - 1)


def wire_of(run: RunConfig, gradient_bytes: int, size: int | None = None) -> Wire:
    """The network of a run, or of the same run on another number of processes."""
    algo, launch = run.algo, run.launch
    minibatches = -(-algo.num_envs * algo.n_steps // algo.batch_size)
    epochs = int(getattr(algo, "n_epochs", 1))
    settings = launch.bandwidth_gbit, launch.latency_ms
    return Wire(size or launch.size, gradient_bytes, minibatches * epochs, epochs, *settings)


def show_wire(run: RunConfig, planned: Mapping[str, Any]) -> None:
    """Print memory per process and machine, and what the network carries, now and on more.

    Args:
        run: the whole run.
        planned: the plan of one process, as `Plan.as_dict` gives it.
    """
    launch, ram = run.launch, int(planned["ram_bytes"])
    say(
        f"{launch.nodes} machines x {launch.processes} processes: {human(ram)} per process, "
        f"{human(ram * launch.processes)} per machine"
    )
    gradients = [p for p in planned["parts"] if p["name"] == "gradients"]
    found = sum(p["ram_bytes"] + p["vram_bytes"] for p in gradients)
    if not found:
        if hasattr(run.algo, "learner_parts"):
            say("network: no gradients; this algorithm sends a few numbers per update")
        else:
            say("network: known once the run fits, as the gradient is measured then")
        return
    wire = wire_of(run, found)
    say(
        f"network: {human(found)} of gradients x {wire.minibatches} minibatches: each process "
        f"sends {human(wire.update_bytes)} and waits {wire.update_seconds:.3g} s per update"
    )
    show(scales_table(run, found))


def scales_table(run: RunConfig, found: int) -> Table:
    """The same update on 8, 64 and 1,000 processes, each with environments and share as now."""
    launch = run.launch
    alone = run.algo.num_envs * run.algo.n_steps // launch.size
    own = alone / launch.steps_per_second if launch.steps_per_second else 0.0
    head = f"{launch.bandwidth_gbit:g} Gbit/s, {launch.latency_ms:g} ms"
    table = Table(title=f"the same update on more processes ({head})", title_justify="left")
    names = ["processes", "each sends", "network", "network per step"]
    for name in [*names, "time per step", "speed-up"] if own else names:
        table.add_column(name, justify="right")
    for size in sorted({launch.size, *SCALES}):
        wire = wire_of(run, found, size)
        network, steps = wire.update_seconds, alone * size
        row = [f"{size:,}", human(wire.update_bytes), f"{network:.3g} s"]
        row.append(f"{1e6 * network / steps:.3g} us")
        if own:
            row.append(f"{1e6 * (own + network) / steps:.3g} us")
            row.append(f"{size * own / (own + network):.3g} x")
        table.add_row(*row)
    return table
