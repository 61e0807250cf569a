"""`memory=auto`: the cheapest savings that fit the budget, written out as explicit overrides."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from frugal_rl.errors import ConfigError
from frugal_rl.memory.advice import (
    can_serve,
    command_of,
    fits_with_margin,
    samples_of,
    shrunk_sizes,
)
from frugal_rl.memory.ahead import compiled_meanwhile
from frugal_rl.memory.checks import check_run, errors
from frugal_rl.memory.child import standing_by
from frugal_rl.memory.choices import AUTO
from frugal_rl.memory.kernels import is_ready, package_of
from frugal_rl.memory.plan import Plan, draw_up, measured_base, own_parts
from frugal_rl.memory.probe import Planning
from frugal_rl.memory.process import settle_process
from frugal_rl.memory.refusal import (
    plan_memory,
    refusal,
    stop_on_errors,
    stop_when_traced_too_long,
)
from frugal_rl.memory.savings import BY_NAME, LEAST_PIECE, filled
from frugal_rl.observation.choices import Label
from frugal_rl.remembered import turn

if TYPE_CHECKING:
    from frugal_rl.memory.probe import ProbeUpdate
    from frugal_rl.run.config import RunConfig

LOSSLESS, RECOMPUTE = BY_NAME["all lossless ones"], BY_NAME["recompute activations"]
PIECES, SMALLEST = BY_NAME["micro-batches"], BY_NAME["smallest storage"]
BF16 = BY_NAME["bfloat16 arithmetic"]


@dataclass(frozen=True)
class Choice:
    """What `memory=auto` chose: the run, its plan, the overrides, and a line per step tried."""

    run: RunConfig
    plan: Plan
    overrides: tuple[str, ...]
    label: Label
    steps: tuple[str, ...]
    command: str


def refuse_hopeless(run: RunConfig) -> None:
    """Refuse by arithmetic alone what cannot fit or work; `prepare` looks again more closely.

    Raises:
        MemoryBudgetError: the run does not fit.
        ConfigError: a check says that the run cannot work.
    """
    if run.memory.profile != AUTO:
        plan_memory(run)


def prepare(run: RunConfig, probe: ProbeUpdate | None = None) -> tuple[RunConfig, Plan]:
    """Everything between configuration and training: settle `auto`, plan, settle the process.

    Raises:
        MemoryBudgetError: nothing that `memory.allow` permits makes the run fit.
        ConfigError: a check says that the run cannot work.
    """
    for note in run.notes:
        print(note)
    if run.memory.profile == AUTO:
        choice = choose(run, probe)
        run, plan = choice.run, choice.plan
        print(f"memory=auto chose {' '.join(choice.overrides)} ({choice.label.value})")
        if probe is not None and try_out(run, probe):
            plan = plan_memory(run, probe)
    else:
        plan = plan_memory(run)  # refuses what cannot fit before it is tried out
        if probe is not None:
            try_out(run, probe)
            plan = plan_memory(run, probe)
    settle_process(run.memory)
    return run, plan


def try_out(run: RunConfig, probe: ProbeUpdate) -> bool:
    """Run a kind of run that is new here once in small: it compiles, and tells what it holds.

    That happens in a process of its own, and once per kind; a plan drawn up afterwards uses it.
    Runs of one environment that begin side by side, as a sweep's, take turns: what two of them
    compiled would be the same, and takes each half a GiB and a core.

    Where that fails, the run itself will say it better, or it knows what a process of its own does
    not, as an environment that the calling script registers. A plan by `plan=probe` does all this
    itself.

    Returns:
        Whether there are new numbers.

    Raises:
        ConfigError: the updates alone take longer than `memory.max_hours`.
    """
    if run.plan is Planning.probe or is_ready(run):
        return False
    stop_when_traced_too_long(run, probe)
    with turn(f"compiling_{package_of(run)}", "waiting for another run that compiles"):
        if is_ready(run):  # by the one that had its turn before
            return True
        return _tried(run, probe)


def _tried(run: RunConfig, probe: ProbeUpdate) -> bool:
    try:
        with standing_by() as start:
            with compiled_meanwhile(run, start):
                found = probe(run) if own_parts(run) is None else None
            measured_base(replace(run, plan=Planning.probe), found)
    except ConfigError as error:
        print(f"Warning: {error} The plan goes without it.", file=sys.stderr)
        return False
    return True


def choose(run: RunConfig, probe: ProbeUpdate | None = None) -> Choice:
    """Lossless savings first, then rounding, then a smaller problem, as `memory.allow` permits.

    Raises:
        MemoryBudgetError: nothing that is allowed fits.
        ConfigError: a check says that the run cannot work, whatever is saved.
    """
    allowed = {label.value for label in run.memory.allow}
    tried, last = [], None
    lossless = run.variant(LOSSLESS.words)
    first = draw_up(run, probe) if Label.capacity.value in allowed else draw_up(run)
    for label, extra in _candidates(run, first):
        if label.value not in allowed:
            continue
        words = (*LOSSLESS.words, *extra)
        try:
            varied = _within_budget(lossless.variant(extra), run)
            last = varied, _checked(varied, probe)
        except ConfigError as error:
            tried.append(f"{' '.join(words)}: impossible ({error})")
            continue
        plan = last[1]
        tried.append(f"{' '.join(words)}: {plan.ram_bytes / 2**30:.3f} GiB, {plan.verdict}")
        if fits_with_margin(plan) and not errors(check_run(varied, plan)):
            return _chosen(run, varied, plan, words, label, tuple(tried))
    if last is None:
        stop_on_errors(check_run(run, first))
    raise refusal(*(last or (run, draw_up(run, probe))))


def _within_budget(varied: RunConfig, run: RunConfig) -> RunConfig:
    """A variant with the budget of the run that it was made of, whether it was typed or not."""
    return replace(varied, memory=replace(varied.memory, budget_gib=run.memory.budget_gib))


def _checked(run: RunConfig, probe: ProbeUpdate | None) -> Plan:
    """A candidate's plan; one that cannot work is not probed.

    Raises:
        ConfigError: a check of severity `error`, though it fits.
    """
    plan = draw_up(run)
    if not plan.fits:
        return plan
    stop_on_errors(check_run(run, plan))
    return draw_up(run, probe) if probe is not None else plan


def _chosen(
    run: RunConfig,
    varied: RunConfig,
    plan: Plan,
    words: tuple[str, ...],
    label: Label,
    tried: tuple[str, ...],
) -> Choice:
    """The choice, written into the run that is made of it."""
    overrides = _explicit(run, words)
    command = command_of(run, overrides)
    record = {"overrides": list(overrides), "tried": list(tried), "command": command}
    varied = replace(varied, resolved={**varied.resolved, AUTO: record})
    return Choice(varied, plan, overrides, label, tried, command)


def _explicit(run: RunConfig, extra: tuple[str, ...]) -> tuple[str, ...]:
    """The choice as overrides that another machine can repeat without `auto`."""
    budget = run.memory.budget_gib
    return (*extra, *((f"memory.budget_gib={budget:g}",) if budget is not None else ()))


def _candidates(run: RunConfig, plan: Plan) -> Iterator[tuple[Label, tuple[str, ...]]]:
    """Savings from the cheapest to the dearest; each keeps those before it of its kind."""
    yield Label.lossless, ()
    yield Label.lossless, RECOMPUTE.words
    pieces = list(_pieces(run))
    for piece in pieces:
        yield PIECES.label, piece
    smallest = (*SMALLEST.words, *(pieces[-1] if pieces else ()))
    yield SMALLEST.label, smallest
    yield SMALLEST.label, (*smallest, *RECOMPUTE.words)
    if can_serve(BF16, run):
        yield BF16.label, (*smallest, *RECOMPUTE.words, *BF16.words)
    for sizes in shrunk_sizes(run, plan):
        yield Label.capacity, tuple(f"algo.{k}={v}" for k, v in sizes.items())


def _pieces(run: RunConfig) -> Iterator[tuple[str, ...]]:
    """Micro-batches of a quarter and a sixteenth of a minibatch, where they are not too small."""
    batch = samples_of(run)
    for parts in (4, 16):
        if batch // parts >= LEAST_PIECE:
            yield filled(PIECES, batch, parts)
