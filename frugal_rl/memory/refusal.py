"""The plan of a run that may start: what does not fit or cannot work is refused with a way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from frugal_rl.errors import ConfigError, FrugalError, MemoryBudgetError
from frugal_rl.memory.advice import advise
from frugal_rl.memory.checks import check_run, errors
from frugal_rl.memory.duration import estimate, stop_when_too_long
from frugal_rl.memory.part import human
from frugal_rl.memory.plan import Plan, draw_up, own_parts

if TYPE_CHECKING:
    from frugal_rl.memory.finding import Finding
    from frugal_rl.memory.probe import ProbeUpdate
    from frugal_rl.run.config import RunConfig

NO_MEMORY = "can't allocate memory"
"""What torch says where Python raises MemoryError."""


def plan_memory(run: RunConfig, probe: ProbeUpdate | None = None) -> Plan:
    """The run's plan, refused if it does not fit or if a check says that it cannot work.

    Arithmetic comes first, so that a hopeless run is refused at once; only one that passes it is
    probed.

    Args:
        run: the run.
        probe: measures the learner in a process of its own (`frugal_rl.run.probe`).
            Without it the plan is arithmetic, and a bare process a remembered constant.

    Raises:
        MemoryBudgetError: before anything is allocated; its message names the largest part and an
            override that makes the run fit, its attribute `plan` is the plan.
        ConfigError: a check of severity `error`, with the override that mends it; or the run takes
            longer than `memory.max_hours`.
    """
    plan = draw_up(run)
    if plan.fits:
        stop_on_errors(check_run(run, plan))
        plan = draw_up(run, probe) if probe is not None else plan
    if not plan.fits:
        raise refusal(run, plan, probe)
    stop_when_too_long(run, plan.duration)
    return plan


def stop_when_traced_too_long(run: RunConfig, probe: ProbeUpdate) -> None:
    """Refuse by the hours of its updates a run that was never tried out, before it is.

    Raises:
        ConfigError: it takes longer than `memory.max_hours` without its environment.
    """
    if run.memory.max_hours is not None and own_parts(run) is None:
        stop_when_too_long(run, estimate(run, probe(run)))


def stop_on_errors(findings: list[Finding]) -> None:
    """Refuse a run of which a check says that it cannot work.

    Raises:
        ConfigError: with the check's message and the override that mends it.
    """
    for finding in errors(findings):
        mend = finding.override or finding.command
        raise ConfigError(f"{finding.id}, {finding.name}: {finding.message}. Try {mend}.")


def refusal(run: RunConfig, plan: Plan, probe: ProbeUpdate | None = None) -> MemoryBudgetError:
    """The error that refuses a plan: what, why, what to do.

    Ways are tried with the numbers that the refused plan was made of; `probe` measures those whose
    learner differs.
    """
    on_device = plan.ram_bytes <= plan.limit.ram_bytes
    need = plan.vram_bytes if on_device else plan.ram_bytes
    have = plan.limit.vram_bytes if on_device else plan.limit.ram_bytes
    source = plan.limit.vram_source if on_device else plan.limit.ram_source
    largest = plan.largest
    size = largest.vram_bytes if on_device else largest.ram_bytes
    ways = advise(run, plan, probe=probe)
    todo = " or ".join(" ".join(way.overrides) for way in ways)
    error = MemoryBudgetError(
        f"This run needs {human(need)}, above the {human(have)} of {source}. Most of it is "
        f"'{largest.name}' ({human(size)} = {largest.formula}). "
        + (f"It fits with {todo}." if todo else "Raise the budget, or choose a smaller problem.")
    )
    error.plan = plan  # type: ignore[attr-defined]
    return error


@contextmanager
def told_when_full(plan: Plan) -> Iterator[None]:
    """Say in words that an allocation failed inside the block, whoever made it.

    Raises:
        MemoryBudgetError: names what was planned and the limit; carries the notes of what failed.
    """
    try:
        yield
    except FrugalError:
        raise  # it says itself what is full, and how to go on
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and NO_MEMORY not in str(error):
            raise
        told = MemoryBudgetError(
            f"The system gave no more memory: {human(plan.ram_bytes)} were planned, of "
            f"{human(plan.limit.ram_bytes)} ({plan.limit.ram_source}). Free some, raise the limit, "
            "or choose a smaller algo.num_envs."
        )
        for note in getattr(error, "__notes__", []):
            told.add_note(note)
        raise told from error
