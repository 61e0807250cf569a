"""Advice: which overrides make a run fit, the cheapest first, each tried before it is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from frugal_rl.errors import ConfigError
from frugal_rl.invocation import command_line, command_words, typed_words
from frugal_rl.memory.machine import has_accelerator, has_bf16
from frugal_rl.memory.part import Kind
from frugal_rl.memory.plan import Plan, assemble, draw_up
from frugal_rl.memory.savings import COSTS, Needs, Saving, filled, labelled
from frugal_rl.observation.choices import Label
from frugal_rl.store.layout import scalar_bytes

if TYPE_CHECKING:
    from frugal_rl.memory.probe import ProbeUpdate
    from frugal_rl.run.config import RunConfig

MARGIN = 0.95
"""Advice must fit into this share of the limit: what arithmetic leaves out stays below the rest."""
PIECES = 8
"""A minibatch is cut into this many micro-batches."""
SAME_SIZE = (Label.lossless, Label.precision)
"""Savings that keep the problem as it is."""

SPLIT = ("num_envs", "batch_size")
"""Sizes that a run's words give for all of its processes, and a plan for one."""


@dataclass(frozen=True)
class Way:
    """Overrides that make a run fit, what they cost, and the plan that they lead to."""

    overrides: tuple[str, ...]
    label: Label
    cost: str
    plan: Plan


def advise(
    run: RunConfig, plan: Plan, count: int = 3, probe: ProbeUpdate | None = None
) -> list[Way]:
    """The cheapest ways to fit: lossless ones first, then rounding, then a smaller problem.

    Within a label the way with the lowest peak comes first. A probed plan is compared with plans
    of the same measurements; `probe` measures the few ways whose learner differs.
    """
    ways: list[Way] = []
    for label in () if _too_many_steps(run, plan) else SAME_SIZE:
        known = [s for s in labelled(label) if s.advised and can_serve(s, run)]
        tried = [way for s in known if (way := _try(run, plan, s, probe)) is not None]
        fitting = [way for way in tried if fits_with_margin(way.plan)]
        ways += sorted(fitting, key=lambda w: (w.plan.ram_bytes, w.plan.vram_bytes))
    ways += _smaller(run, plan)
    return ways[:count]


def can_serve(saving: Saving, run: RunConfig) -> bool:
    """Whether the machine has what the saving needs, so that it makes nothing worse."""
    device = run.hardware.device
    if saving.needs is Needs.bf16_units:
        return has_bf16(device)
    return saving.needs is Needs.nothing or has_accelerator(device)


def _too_many_steps(run: RunConfig, plan: Plan) -> bool:
    """Whether rewards and actions alone are above the limit, so that no storage can help."""
    steps, envs = run.algo.n_steps, run.algo.num_envs
    return scalar_bytes(steps, envs, run.env.action_space()) > plan.limit.ram_bytes


def command_of(run: RunConfig, extra: Sequence[str] = (), script: str = "train") -> str:
    """The exact command line of a run with more overrides, quoted for a shell."""
    return command_line(
        [*command_words(script), *typed_words(run.overrides, run.config_dir, extra)]
    )


def samples_of(run: RunConfig) -> int:
    """Samples of a minibatch, at most those of the rollout."""
    return int(min(run.algo.batch_size, run.algo.n_steps * run.algo.num_envs))


def _try(run: RunConfig, plan: Plan, saving: Saving, probe: ProbeUpdate | None) -> Way | None:
    """One way; None where it is impossible for this run, or not known."""
    words = filled(saving, samples_of(run), PIECES)
    measure = saving.other_learner and plan.probed
    if measure and (probe is None or not _worth_measuring(plan)):
        return None
    try:
        varied = run.variant(words)
        tried = draw_up(varied, probe) if measure else alike(varied, plan)
    except ConfigError:
        return None
    return Way(words, saving.label, COSTS[saving.label], tried)


def alike(run: RunConfig, plan: Plan) -> Plan:
    """A run's plan with the measurements of another one that has the same learner."""
    if plan.base is None or not plan.probed:
        return draw_up(run)
    return assemble(run, plan.base, plan.probe)


def _worth_measuring(plan: Plan) -> bool:
    """Whether most of the activations would make up for what is missing."""
    held = sum(p.ram_bytes + p.vram_bytes for p in plan.parts if p.kind is Kind.activations)
    over_ram = plan.ram_bytes - MARGIN * plan.limit.ram_bytes
    over_vram = plan.vram_bytes - MARGIN * plan.limit.vram_bytes if plan.vram_bytes else 0.0
    return 0.75 * held > max(over_ram, over_vram)


def fits_with_margin(plan: Plan) -> bool:
    """Whether a plan stays below the limits with some room."""
    limit = plan.limit
    ram = plan.ram_bytes <= MARGIN * limit.ram_bytes
    return ram and (plan.vram_bytes == 0 or plan.vram_bytes <= MARGIN * limit.vram_bytes)


def _smaller(run: RunConfig, plan: Plan) -> list[Way]:
    """Smaller problems that fit: fewer environments, else shorter rollouts, else both."""
    ways = []
    for sizes in shrunk_sizes(run, plan):
        try:
            tried = alike(_resized(run, sizes), plan)
        except ConfigError:  # a size that the algorithm itself refuses is no advice
            continue
        if fits_with_margin(tried):
            whole = {k: v * run.split if k in SPLIT else v for k, v in sizes.items()}
            overrides = tuple(f"algo.{k}={v}" for k, v in whole.items())
            cost = "a smaller problem: " + ", ".join(f"{k} {v}" for k, v in whole.items())
            ways.append(Way(overrides, Label.capacity, cost, tried))
            if len(ways) == 2:
                break
    return ways


def shrunk_sizes(run: RunConfig, plan: Plan) -> Iterator[dict[str, int]]:
    """Sizes to try, the largest first; minibatches shrink only with the rollout below them."""
    algo = run.algo
    for key in ("num_envs", "n_steps"):
        found = _largest_that_fits(run, plan, key)
        if found:
            yield _with_batch(algo, {key: found})
    for num_envs in _halves(algo.num_envs):
        for n_steps in _halves(algo.n_steps):
            yield _with_batch(algo, {"num_envs": num_envs, "n_steps": n_steps})


def _largest_that_fits(run: RunConfig, plan: Plan, key: str) -> int:
    """The largest power of two below the present size with which the run fits; 0 if none does."""
    for size in _halves(int(getattr(run.algo, key))):
        try:
            tried = alike(_resized(run, _with_batch(run.algo, {key: size})), plan)
        except ConfigError:
            continue
        if fits_with_margin(tried):
            return size
    return 0


def _halves(size: int) -> Iterator[int]:
    """Powers of two below `size`, descending."""
    power = 1 << max(0, (size - 1).bit_length() - 1)
    while power >= 1 and power < size:
        yield power
        power //= 2


def _with_batch(algo: Any, sizes: dict[str, int]) -> dict[str, int]:
    """Lower the minibatch to the rollout where it would exceed it."""
    samples = sizes.get("num_envs", algo.num_envs) * sizes.get("n_steps", algo.n_steps)
    return sizes | ({"batch_size": samples} if algo.batch_size > samples else {})


def _resized(run: RunConfig, sizes: dict[str, int]) -> RunConfig:
    algo: Any = replace(run.algo, **sizes)  # type: ignore[type-var]
    values = dict(run.resolved)
    values["algo"] = {**values.get("algo", {}), **sizes}
    return replace(run, algo=algo, resolved=values)
