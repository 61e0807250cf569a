"""`memory=auto`: the cheapest savings that fit the budget, written out as explicit overrides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from frugal_rl.errors import ConfigError
from frugal_rl.memory.advice import command_of, fits_with_margin, shrunk_sizes, variant
from frugal_rl.memory.allocator import pin_allocator
from frugal_rl.memory.plan import Plan, draw_up, plan_memory, refusal
from frugal_rl.memory.probe import ProbeUpdate
from frugal_rl.memory.profile import Allocator
from frugal_rl.observation.choices import Label
from frugal_rl.run.config import RunConfig

AUTO = "auto"
LEAST_PIECE = 32
"""Micro-batches are not made smaller than this."""


@dataclass(frozen=True)
class Choice:
    """What `memory=auto` chose: the run, its plan, the overrides, and a line per step tried."""

    run: RunConfig
    plan: Plan
    overrides: tuple[str, ...]
    label: Label
    steps: tuple[str, ...]
    command: str


def prepare(run: RunConfig, probe: ProbeUpdate | None = None) -> tuple[RunConfig, Plan]:
    """Everything between configuration and training: settle `auto`, plan, pin the allocator.

    Raises:
        MemoryBudgetError: nothing that `memory.allow` permits makes the run fit.
    """
    if run.memory.profile == AUTO:
        choice = choose(run, probe)
        run, plan = choice.run, choice.plan
        print(f"memory=auto chose {' '.join(choice.overrides)} ({choice.label.value})")
    else:
        plan = plan_memory(run, probe)
    if run.memory.allocator is Allocator.pinned:
        pin_allocator()
    return run, plan


def choose(run: RunConfig, probe: ProbeUpdate | None = None) -> Choice:
    """Lossless savings first, then rounding, then a smaller problem, as `memory.allow` permits.

    Raises:
        MemoryBudgetError: nothing that is allowed fits.
    """
    allowed = {label.value for label in run.memory.allow}
    tried, last = [], None
    first = draw_up(run, probe) if Label.capacity.value in allowed else draw_up(run)
    for label, extra in _candidates(run, first):
        if label.value not in allowed:
            continue
        try:
            varied = variant(run, ("memory=lossless", *extra))
        except ConfigError as error:
            tried.append(f"{' '.join(extra)}: impossible ({error})")
            continue
        varied = replace(varied, memory=replace(varied.memory, budget_gib=run.memory.budget_gib))
        last = varied, draw_up(varied, probe)
        fits = fits_with_margin(last[1])
        words = " ".join(("memory=lossless", *extra))
        tried.append(f"{words}: {last[1].ram_bytes / 2**30:.3f} GiB, {last[1].verdict}")
        if fits:
            overrides = _explicit(run, ("memory=lossless", *extra))
            command = command_of(run, overrides)
            record = {"overrides": list(overrides), "tried": tried, "command": command}
            varied = replace(varied, resolved={**varied.resolved, AUTO: record})
            return Choice(varied, last[1], overrides, label, tuple(tried), command)
    raise refusal(*(last or (run, draw_up(run, probe))))


def _explicit(run: RunConfig, extra: tuple[str, ...]) -> tuple[str, ...]:
    """The choice as overrides that another machine can repeat without `auto`."""
    budget = run.memory.budget_gib
    return (*extra, *((f"memory.budget_gib={budget:g}",) if budget is not None else ()))


def _candidates(run: RunConfig, plan: Plan) -> Iterator[tuple[Label, tuple[str, ...]]]:
    """Savings from the cheapest to the dearest; each keeps those before it of its kind."""
    yield Label.lossless, ()
    recompute = ("memory.gradient_checkpointing=true",)
    yield Label.lossless, recompute
    pieces = list(_pieces(run))
    for piece in pieces:
        yield Label.precision, (piece,)
    smallest = ("memory.storage=smallest", *pieces[-1:])
    yield Label.precision, smallest
    yield Label.precision, (*smallest, *recompute)
    for sizes in shrunk_sizes(run, plan):
        yield Label.capacity, tuple(f"algo.{k}={v}" for k, v in sizes.items())


def _pieces(run: RunConfig) -> Iterator[str]:
    """Micro-batches of a quarter and a sixteenth; the gradient is the same up to rounding."""
    batch = min(run.algo.batch_size, run.algo.n_steps * run.algo.num_envs)
    for parts in (4, 16):
        if batch // parts >= LEAST_PIECE:
            yield f"memory.micro_batch={batch // parts}"
