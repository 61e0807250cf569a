"""Checks of sizes and times: minibatches, updates, episodes, environments, frequencies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from frugal_rl.memory.finding import Finding, Rule, Severity

if TYPE_CHECKING:
    from frugal_rl.memory.facts import Facts

MOST_GRADIENT_STEPS = 64
FEWEST_ITERATIONS = 50
MOST_EVALUATION = 0.2
"""Of the training's steps."""


def batch_against_samples(f: Facts) -> Finding:
    """F09: a minibatch is no larger than the rollout."""
    fits = f.batch_size <= f.samples
    return Finding(
        "F09",
        "minibatch against rollout",
        Severity.ok if fits else Severity.error,
        f"{f.samples / f.batch_size:g} minibatches",
        "" if fits else f"a minibatch of {f.batch_size} exceeds the rollout of {f.samples}",
        f"algo.batch_size={largest_divisor(f.samples, f.batch_size)}",
    )


def largest_divisor(number: int, most: int) -> int:
    """The largest divisor of `number` that is at most `most`."""
    divisors = (
        d
        for small in range(1, math.isqrt(number) + 1)
        if number % small == 0
        for d in (small, number // small)
    )
    return max(d for d in divisors if d <= max(1, most))


def divisibility(f: Facts) -> Finding:
    """F10: the last minibatch of an epoch is as large as the others."""
    rest = f.samples % f.batch_size
    return Finding(
        "F10",
        "minibatches divide the rollout",
        Severity.warning if rest else Severity.ok,
        f"rest {rest}",
        f"the last minibatch has {rest} samples" if rest else "",
        f"algo.batch_size={largest_divisor(f.samples, f.batch_size)}",
    )


def updates(f: Facts) -> Finding:
    """F11: how often the policy is updated, warn below 50 rollouts."""
    steps = f.iterations * f.gradient_steps_per_rollout
    few = f.iterations < FEWEST_ITERATIONS
    return Finding(
        "F11",
        "updates",
        Severity.warning if few else Severity.info,
        f"{f.iterations:,} iterations, {steps:,} gradient steps",
        f"only {f.iterations} policy updates" if few else "",
        f"algo.n_steps={max(1, f.n_steps // 4)}" if few else "",
    )


def reuse(f: Facts) -> Finding:
    """F12: gradient steps on one rollout without a limit on divergence, warn above 64."""
    steps = f.gradient_steps_per_rollout
    much = steps > MOST_GRADIENT_STEPS and f.target_kl is None
    return Finding(
        "F12",
        "gradient steps per rollout",
        Severity.warning if much else Severity.ok,
        f"{steps}",
        f"{steps} gradient steps on one rollout" if much else "",
        "algo.n_epochs=4 or algo.target_kl=0.02",
    )


def rollout_against_episode(f: Facts) -> Finding | None:
    """F13: steps per rollout against the length of an episode, warn outside 0.5 to 20."""
    if f.episode_steps is None:
        return None
    shortest, longest = f.episode_steps
    most, fewest = f.n_steps / shortest, f.n_steps / longest
    odd = fewest < 0.5 or most > 20
    if most > 20:
        words = (
            f"each environment plays {fewest:.0f} to {most:.0f} episodes per rollout: advantages "
            "gain nothing and the policy gets stale"
        )
    else:
        words = f"a rollout sees only {fewest:.0%} of an episode of {longest} steps"
    envs = f.num_envs * 8 if most > 20 else max(1, f.num_envs // 2)
    steps = max(1, f.samples // envs)
    return Finding(
        "F13",
        "rollout against episode",
        Severity.warning if odd else Severity.ok,
        f"{fewest:.2g} to {most:.2g} episodes" if fewest != most else f"{most:.2g} episodes",
        words if odd else "",
        f"algo.num_envs={envs} algo.n_steps={steps}",
    )


def name_clash(f: Facts) -> Finding | None:
    """F14: one number used as the rollout's length and as the episode's limit."""
    if f.time_limit_steps is None:
        return None
    same = f.time_limit_steps == f.n_steps
    return Finding(
        "F14",
        "one number, two meanings",
        Severity.warning if same else Severity.ok,
        f"{f.n_steps} and {f.time_limit_steps}",
        "the rollout's length and the episode's limit are the same number: is one meant for both?"
        if same
        else "",
        f"algo.n_steps={max(1, f.n_steps // 2)}",
    )


def environments_against_cores(f: Facts) -> Finding:
    """F16: environments that keep the cores busy, warn below half of them."""
    per_core = {"threads": 8, "batch": 8, "shared_memory": 1, "sb3": 1}.get(f.vec, 1)
    wanted = max(1, per_core * f.cores) if f.vec != "serial" else 1
    idle = f.num_envs < wanted / 2
    return Finding(
        "F16",
        "environments against cores",
        Severity.warning if idle else Severity.ok,
        f"{f.num_envs} of {wanted}",
        f"cores idle {max(0.0, 1 - f.num_envs / wanted):.0%}" if idle else "",
        f"algo.num_envs={wanted} algo.n_steps={max(1, f.samples // wanted)}",
    )


def workers_against_cores(f: Facts) -> Finding | None:
    """F17: no more workers, and no more torch threads beside them, than twice the cores."""
    workers = f.workers or (f.num_envs if f.vec == "sb3" else 0)
    if not workers:
        return None
    many = workers > 2 * f.cores or f.torch_threads * workers > 2 * f.cores
    return Finding(
        "F17",
        "workers against cores",
        Severity.warning if many else Severity.ok,
        f"{workers} workers, {f.torch_threads} threads, {f.cores} cores",
        "workers and torch threads wait for each other" if many else "",
        "hardware.threads=1 or vec=threads",
    )


def frequency_units(f: Facts) -> Finding | None:
    """F23: a frequency in steps means whole iterations."""
    if not f.save_every_steps:
        return None
    whole = f.save_every_steps % f.samples == 0
    return Finding(
        "F23",
        "frequency units",
        Severity.ok if whole else Severity.info,
        f"every {f.save_every_steps / f.samples:.3g} iterations",
        "" if whole else "saves come at the first iteration after each multiple",
        f"checkpoint_every_steps={f.samples * max(1, round(f.save_every_steps / f.samples))}",
    )


def evaluation(f: Facts) -> Finding | None:
    """F25: evaluation on its own seeds, at less than a fifth of the training's steps."""
    if not f.eval_steps:
        return None
    every = f.eval_every_steps or f.total_steps
    cost = f.eval_steps / every
    odd = f.eval_seed_is_training_seed or cost > MOST_EVALUATION
    words = (
        "evaluated on the training seed"
        if f.eval_seed_is_training_seed
        else (f"evaluation takes up to {cost:.0%} of the training's steps" if odd else "")
    )
    return Finding(
        "F25",
        "evaluation",
        Severity.warning if odd else Severity.ok,
        f"{cost:.1%}",
        words,
        _rarer_evaluation(f, cost),
    )


def _rarer_evaluation(f: Facts, cost: float) -> str:
    """The override that mends it: another seed, else evaluations further apart, else shorter."""
    apart = math.ceil(f.eval_steps / MOST_EVALUATION)
    if f.eval_seed_is_training_seed:
        return f"evaluation.seed={f.seed + 1_000_003}"
    if cost <= MOST_EVALUATION:
        return ""
    if f.eval_every_steps and apart <= f.total_steps:
        return f"evaluation.every_steps={apart}"
    return f"evaluation.episodes={max(1, int(f.eval_episodes * MOST_EVALUATION / cost))}"


def horizon(f: Facts) -> Finding | None:
    """F30: the discount's horizon against a long episode, warn below a tenth, tell above three."""
    if f.gamma is None or f.gamma >= 1 or f.episode_steps is None:
        return None
    longest = f.episode_steps[1]
    share = round(1 / (1 - f.gamma) / longest, 6)
    far = Severity.info if share > 3 else Severity.ok
    severity = Severity.warning if share < 0.1 else far
    return Finding(
        "F30",
        "horizon",
        severity,
        f"{share:.0%} of an episode",
        f"algo.gamma={f.gamma:g} looks {1 / (1 - f.gamma):.0f} steps ahead, an episode takes up to "
        f"{longest}"
        if severity is not Severity.ok
        else "",
        f"algo.gamma={1 - 1 / max(2, longest):.4g}",
    )


def bf16_units(f: Facts) -> Finding | None:
    """F37: bf16 on a processor or device without units for it."""
    if not f.bf16:
        return None
    slow = not f.has_bf16
    return Finding(
        "F37",
        "bf16 units",
        Severity.warning if slow else Severity.ok,
        "none" if slow else "yes",
        "without units for bf16 an update takes about 12 times as long as in float32"
        if slow
        else "",
        "memory.precision=float32",
    )


def unread(f: Facts) -> Finding | None:
    """F45: the network reads all that a stranger's environment shows."""
    if f.unread is None:
        return None
    names = ",".join(f.unread)
    return Finding(
        "F45",
        "observations not read",
        Severity.warning if names else Severity.ok,
        names or "none",
        f"the network does not read {names}: more values than agent.largest_field" if names else "",
        "agent.largest_field=1000000000",
    )


def total_steps(f: Facts) -> Finding:
    """F35: a run ends with a whole rollout."""
    exact = f.total_steps / f.samples
    steps = f.iterations * f.samples
    whole = f.total_steps % f.samples == 0
    return Finding(
        "F35",
        "total steps",
        Severity.ok if whole else Severity.info,
        f"{steps:,} steps",
        "" if whole else f"{exact:.2f} -> {f.iterations} rollouts = {steps:,} steps",
        f"algo.total_steps={steps}",
    )


RULES: tuple[Rule, ...] = (
    batch_against_samples,
    divisibility,
    updates,
    reuse,
    rollout_against_episode,
    name_clash,
    environments_against_cores,
    workers_against_cores,
    frequency_units,
    evaluation,
    horizon,
    total_steps,
    bf16_units,
    unread,
)
