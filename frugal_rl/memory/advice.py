"""Advice: which overrides make a run fit, the cheapest first, each tried before it is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from frugal_rl.config import compose_run
from frugal_rl.errors import ConfigError
from frugal_rl.memory.plan import Plan, draw_up
from frugal_rl.memory.probe import ProbeUpdate
from frugal_rl.observation.choices import Label
from frugal_rl.rollout.layout import scalar_bytes
from frugal_rl.run import RunConfig

MARGIN = 0.95
"""Advice must fit into this share of the limit: what arithmetic leaves out stays below the rest."""

LOSSLESS = (
    ("memory=lossless",),
    ("memory.shuffle=gather",),
    ("memory.internal_observations=false",),
    ("memory.frame_stack=once",),
    ("memory.level_data=shared",),
    ("memory.buffers=reused",),
    ("memory.storage=lossless",),
    ("vec=batch",),
    ("memory.gradient_checkpointing=true",),
)
"""Savings after which training is bit for bit the same."""
PRECISION = (
    ("memory.storage=smallest",),
    ("memory=sparse",),
    ("memory=attention",),
    ("memory.precision=bf16",),
)
"""Savings that round."""
SAME_SIZE = ((Label.lossless, LOSSLESS), (Label.precision, PRECISION))
"""Ways that keep the problem as it is."""


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

    Within a label the way with the lowest peak comes first. A way that names one switch is left
    out where it changes nothing.
    """
    ways: list[Way] = []
    same_size = () if _too_many_steps(run, plan) else SAME_SIZE
    for label, options in same_size:
        tried = [w for o in options if (w := _try(run, o, label, probe)) is not None]
        better = [
            w for w in tried if fits_with_margin(w.plan) and w.plan.ram_bytes < plan.ram_bytes
        ]
        ways += sorted(better, key=lambda w: w.plan.ram_bytes)
    ways += _smaller(run, probe)
    return ways[:count]


def _too_many_steps(run: RunConfig, plan: Plan) -> bool:
    """Whether rewards and actions alone are above the limit, so that no storage can help."""
    steps, envs = run.algo.n_steps, run.algo.num_envs
    return scalar_bytes(steps, envs, run.env.action_space()) > plan.limit.ram_bytes


def variant(run: RunConfig, extra: Sequence[str]) -> RunConfig:
    """The same run with more overrides; a later word beats an earlier one of the same key."""
    if not run.resolved:
        raise ConfigError("A run that no configuration composed cannot be varied.")
    keys = {o.split("=")[0] for o in extra}
    kept = [o for o in run.overrides if o.split("=")[0] not in keys]
    config_name = str(run.resolved.get("config_name", "train"))
    return replace(compose_run([*kept, *extra], config_name, check=False), run_dir=run.run_dir)


def command_of(run: RunConfig, extra: Sequence[str] = (), script: str = "train") -> str:
    """The exact command line of a run with more overrides."""
    keys = {o.split("=")[0] for o in extra}
    own = {"compare", "format", "probe"}
    kept = [o for o in run.overrides if o.split("=")[0] not in keys | own]
    return " ".join(["python", f"scripts/{script}.py", *kept, *extra])


def _try(
    run: RunConfig, overrides: tuple[str, ...], label: Label, probe: ProbeUpdate | None
) -> Way | None:
    """One way; None where it is impossible for this run."""
    try:
        varied = variant(run, overrides)
        plan = draw_up(varied, probe)
    except ConfigError:
        return None
    costs = {Label.lossless: "nothing: the same numbers", Label.precision: "rounded values"}
    return Way(overrides, label, costs.get(label, ""), plan)


def fits_with_margin(plan: Plan) -> bool:
    """Whether a plan stays below the limits with some room."""
    limit = plan.limit
    ram = plan.ram_bytes <= MARGIN * limit.ram_bytes
    return ram and (plan.vram_bytes == 0 or plan.vram_bytes <= MARGIN * limit.vram_bytes)


def _smaller(run: RunConfig, probe: ProbeUpdate | None) -> list[Way]:
    """Smaller problems that fit: fewer environments, else shorter rollouts, else both."""
    ways = []
    for sizes in shrunk_sizes(run):
        try:
            plan = draw_up(_resized(run, sizes), probe)
        except ConfigError:  # a size that the algorithm itself refuses is no advice
            continue
        if fits_with_margin(plan):
            overrides = tuple(f"algo.{k}={v}" for k, v in sizes.items())
            cost = "a smaller problem: " + ", ".join(f"{k} {v}" for k, v in sizes.items())
            ways.append(Way(overrides, Label.capacity, cost, plan))
            if len(ways) == 2:
                break
    return ways


def shrunk_sizes(run: RunConfig) -> Iterator[dict[str, int]]:
    """Sizes to try, the largest first; minibatches shrink only with the rollout below them."""
    algo = run.algo
    for key in ("num_envs", "n_steps"):
        found = _largest_that_fits(run, key)
        if found:
            yield _with_batch(algo, {key: found})
    for num_envs in _halves(algo.num_envs):
        for n_steps in _halves(algo.n_steps):
            yield _with_batch(algo, {"num_envs": num_envs, "n_steps": n_steps})


def _largest_that_fits(run: RunConfig, key: str) -> int:
    """The largest power of two below the present size with which the run fits; 0 if none does."""
    for size in _halves(int(getattr(run.algo, key))):
        try:
            plan = draw_up(_resized(run, _with_batch(run.algo, {key: size})))
        except ConfigError:
            continue
        if fits_with_margin(plan):
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
