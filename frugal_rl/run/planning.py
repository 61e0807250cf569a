"""Runs without a command line: compose one from the same words, plan it, make its environments.

    run = compose("env=nclone memory=parallel")
    print(plan(run).verdict)

A run is composed from the same files in `conf/` and the same words as on the command line. Imports
no torch.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from frugal_rl.errors import ConfigError
from frugal_rl.memory.refusal import plan_memory
from frugal_rl.run.compose import compose_run
from frugal_rl.run.config import RunConfig
from frugal_rl.run.probe import probe_update

if TYPE_CHECKING:
    from frugal_rl.memory.plan import Plan
    from frugal_rl.sb3.stock_plan import StockPlan
    from frugal_rl.vec_env.interface import VectorEnv

Words = str | Sequence[str]
"""Overrides as they are typed: "env=nclone seed=3", or one word per item."""


def compose(words: Words = "", *, run_dir: str | Path = "") -> RunConfig:
    """The run that `scripts/train.py <words>` would be, as frozen dataclasses.

    Args:
        words: overrides; quote a value with spaces as in a shell, or give one word per item.
        run_dir: where results go; empty means a new folder under `runs/`, named by the time.

    Raises:
        ConfigError: a mistyped key, choice or value, with the nearest valid one.

    Example:
        >>> compose("env=toy memory=parallel algo.num_envs=3").algo.num_envs
        3
    """
    run = compose_run(split_words(words))
    folder = run_dir or Path("runs", run.env.name, run.memory.profile, time_stamp())
    return replace(run, run_dir=str(folder))


@overload
def plan(run: RunConfig | Words, *, measure: bool = False) -> Plan: ...
@overload
def plan(run: type, *given: Any, **keywords: Any) -> StockPlan: ...
def plan(
    run: RunConfig | Words | type, *given: Any, measure: bool = False, **keywords: Any
) -> Plan | StockPlan:
    """What the run will hold, part by part, before anything is allocated.

    A class of Stable-Baselines3 or sb3-contrib tells of a stock run, with and without
    `frugal_rl.sb3.compact`: `print(plan(PPO, env, n_steps=2048, budget="8GiB"))`.

    Args:
        run: a composed run, its words, or a class such as PPO.
        given: after a class: the environment, or its policy and the environment.
        measure: also measure the learner's activations and the bare process, in processes of their
            own (seconds); without it the plan is arithmetic. Not for a class.
        keywords: after a class: what the model is given, `budget` and `studied` as for
            `frugal_rl.sb3.plan_stock`.

    Raises:
        MemoryBudgetError: the run does not fit; the message names an override or a size that makes
            it fit. Of a run of words, `error.plan` is the plan.
        ConfigError: an algorithm whose updates are not known; options of a class beside words.

    Example:
        >>> plan("env=toy memory=parallel").verdict
        'fits'
    """
    if isinstance(run, type):
        stock = import_module("frugal_rl.sb3.stock_plan")  # torch and Stable-Baselines3
        planned: StockPlan = stock.plan_class(run, *given, **keywords)
        return planned
    if given or keywords:
        raise ConfigError(
            f"plan takes {', '.join(keywords) or 'an environment'} beside a class, as in "
            'plan(PPO, env, n_steps=2048). A run of words has them in its words: plan("env=toy '
            'algo.n_steps=2048").'
        )
    return plan_memory(composed(run), probe_update if measure else None)


def make_vec(run: RunConfig | Words, num_envs: int | None = None) -> VectorEnv:
    """The run's training environments, side by side; rows come in stored form.

    Args:
        run: a composed run, or its words.
        num_envs: N; None means `algo.num_envs`.

    Example:
        >>> envs = make_vec("env=toy", num_envs=4)
        >>> envs.reset(seed=0)["position"].shape
        (4, 2)
    """
    made = composed(run)
    count = made.algo.num_envs if num_envs is None else num_envs
    return made.env.make_vec(count, made.encoding(), made.memory, made.vec, "train")


def composed(run: RunConfig | Words) -> RunConfig:
    """The run itself, or the one that its words compose."""
    return run if isinstance(run, RunConfig) else compose(run)


def split_words(words: Words) -> tuple[str, ...]:
    """One word per item, quotes read as a shell reads them."""
    return tuple(shlex.split(words) if isinstance(words, str) else words)


def time_stamp() -> str:
    """The time as the name of a run's folder."""
    return datetime.now().strftime("%Y-%m-%d_%H-%M-%S-%f")
