"""Room for a run beside those that this machine trains already."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from frugal_rl.memory import usage
from frugal_rl.memory.machine import GIB, find_limit
from frugal_rl.memory.plan import draw_up
from frugal_rl.run.ledger import Ledger, Reservation

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig, Sweep

PLANNING_BYTES = 640 << 20
"""A tiny run and a probe, which a plan starts one after the other."""
WHILE_PLANNED = (
    "so much is held while it is planned, more than it takes later: raise sweep.budget_gib=, or "
    "plan without a ledger (sweep.ledger='')"
)
MARGIN = 1.1
"""What is reserved of a plan: it may be off by a few percent."""


def open_ledger(sweep: Sweep, ram_gib: float | None = None) -> Ledger | None:
    """The ledger that the configuration names; None where runs look after themselves."""
    if not sweep.ledger:
        return None
    if sweep.budget_gib is not None:
        words = f"sweep.budget_gib={sweep.budget_gib:g}"
        return Ledger(Path(sweep.ledger), int(sweep.budget_gib * GIB), words)
    limit = find_limit(ram_gib=ram_gib)
    return Ledger(Path(sweep.ledger), limit.ram_bytes, limit.ram_source)


class Room:
    """What a run has reserved; nothing without a ledger."""

    def __init__(self, reservation: Reservation | None, processes: int) -> None:
        self.reservation, self.processes = reservation, processes

    def settle(self, planned_bytes: int) -> None:
        """Keep what one process is planned to hold, times their number; more waits for room.

        Raises:
            MemoryBudgetError: it will never fit.
        """
        if self.reservation is not None:
            self.reservation.resize(int(MARGIN * planned_bytes * self.processes))


@contextmanager
def admitted(run: RunConfig, share: RunConfig | None = None) -> Iterator[Room]:
    """Room to plan and to train in; waits while others leave none.

    Args:
        run: the run.
        share: what one of its processes on this machine does; None means all of it.

    Raises:
        MemoryBudgetError: there will never be enough.
    """
    ledger = open_ledger(run.sweep, run.hardware.ram_gib)
    processes = run.launch.processes
    if ledger is None:
        yield Room(None, processes)
        return
    held = usage.held_bytes(usage.of_tree())
    with ledger.entered(f"The run in {run.run_dir}", held) as reservation:
        room = Room(reservation, processes)
        room.settle(draw_up(share or run).ram_bytes)
        reservation.resize(max(reservation.entry.held, held + PLANNING_BYTES), WHILE_PLANNED)
        yield room
