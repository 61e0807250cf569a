"""A trained policy back from its checkpoint, with the run it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from frugal_rl.errors import CheckpointError, ConfigError, FrugalError, MemoryBudgetError
from frugal_rl.learn.policy import FrugalPolicy
from frugal_rl.memory.part import human
from frugal_rl.memory.plan import draw_up
from frugal_rl.run.allocation import SCRATCH_BYTES, AtMost, policy_bytes
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.compose import run_from
from frugal_rl.run.config import RunConfig
from frugal_rl.run.evaluate import evaluation_env
from frugal_rl.run.identity import check_same_files
from frugal_rl.run.named_code import check_named_code
from frugal_rl.run.renamed import current_values
from frugal_rl.untrusted.printing import printable, shown
from frugal_rl.vec_env.interface import VectorEnv

LONGEST_LINE = 4096
"""Characters of an error that repeats what a file holds."""


@dataclass(frozen=True)
class Saved:
    """A run, its policy, and the environments to try it in."""

    run: RunConfig
    policy: FrugalPolicy
    vec_env: VectorEnv
    num_steps: int


@contextmanager
def open_saved(path: str, asked: RunConfig, single: bool = False) -> Iterator[Saved]:
    """The policy in a checkpoint, ready to play; the environments are closed at the end.

    Args:
        path: a checkpoint, a run folder, or its `checkpoints/`.
        asked: the composed run of the command at hand; words typed there change the saved run.
        single: make one environment, not as many as the evaluation has.
    """
    content = load_checkpoint(path)
    with told_in_a_line(path):
        run = saved_run(content, asked, path)
        run = with_one_env(run) if single else run
        check_budget(run, asked)
        vec_env = evaluation_env(run)
    try:
        with told_in_a_line(path):
            steps = int(content.get("num_steps", 0))
            saved = Saved(run, load_policy(content, run, vec_env, path), vec_env, steps)
        yield saved
    finally:
        vec_env.close()


def with_one_env(run: RunConfig) -> RunConfig:
    """The run, evaluated in one environment."""
    return replace(run, evaluation=replace(run.evaluation, num_envs=1))


@contextmanager
def told_in_a_line(path: str) -> Iterator[None]:
    """Whatever a stranger's values run into becomes one printable line."""
    try:
        yield
    except FrugalError as error:
        if str(error).isprintable():
            raise
        words = " ".join(line.strip() for line in str(error).splitlines())
        raise type(error)(printable(words, LONGEST_LINE)) from error
    except Exception as error:
        raise CheckpointError(
            f"The run in {shown(path)} cannot be opened ({type(error).__name__}: "
            f"{printable(str(error))}, in {_place(error)})."
        ) from error


def _place(error: Exception) -> str:
    """File and line at which an error was raised."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else "no file"


def check_budget(run: RunConfig, asked: RunConfig) -> None:
    """Plan what opening a saved run takes, on the machine of the one who opens it.

    Raises:
        MemoryBudgetError: its environments and windows need more than there is.
    """
    players = max(1, min(run.evaluation.num_envs, run.evaluation.episodes))
    algo: Any = run.algo
    playing = replace(algo, num_envs=players, n_steps=2, batch_size=2)
    memory = replace(run.memory, budget_gib=asked.memory.budget_gib)
    plan = draw_up(replace(run, algo=playing, memory=memory, hardware=asked.hardware))
    if not plan.fits:
        raise MemoryBudgetError(
            f"Opening this run needs {human(plan.ram_bytes)}, above the "
            f"{human(plan.limit.ram_bytes)} of {plan.limit.ram_source}. Most of it is "
            f"'{plan.largest.name}' ({plan.largest.formula}). Lower evaluation.num_envs={players}."
        )


def saved_run(
    content: Mapping[str, Any], asked: RunConfig, path: str = "The checkpoint"
) -> RunConfig:
    """The run in a checkpoint, with the values typed now in the place of its own.

    Raises:
        CheckpointError: its environment was made of other files.
        ConfigError: a typed word would exchange a whole group, as `env=...` does.
    """
    if not isinstance(content.get("config"), Mapping):
        raise CheckpointError("The checkpoint holds no configuration; give one of a whole run.")
    values = current_values(deepcopy(dict(content["config"])))
    values["choices"] = _mapping(values.get("choices"))
    for word in asked.overrides:
        key, _, value = word.lstrip("+").partition("=")
        if values["choices"].get(key) == value:
            continue  # the group that the checkpoint was trained with
        if key in values and not isinstance(values[key], Mapping):
            values[key] = asked.resolved[key]
        elif "." in key:
            _put(values, asked.resolved, key)
        elif key in values:
            raise ConfigError(
                f"{word}: the checkpoint was trained with {key}="
                f"{values['choices'].get(key)}; only single values such as "
                f"{key}.<name>=... can be changed."
            )
    plugins = tuple(asked.resolved.get("plugins") or ())
    check_named_code(values, asked.resolved, plugins)
    run = run_from(values, asked.overrides, plugins)
    check_same_files(run.env, content.get("identity"), path)
    return replace(run, run_dir=asked.run_dir)


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _put(values: dict[str, Any], source: Mapping[str, Any], key: str) -> None:
    """Copy one dotted key from `source`."""
    *path, name = key.split(".")
    for part in path:
        values = values.setdefault(part, {})
        source = source[part]
    values[name] = source[name]


def load_policy(
    content: Mapping[str, Any], run: RunConfig, vec_env: VectorEnv, path: str
) -> FrugalPolicy:
    """The policy with the checkpoint's weights.

    Raises:
        CheckpointError: the weights do not fit the network of this run.
    """
    misfit = f"The weights in {shown(path)} do not fit agent={run.agent.name} on env={run.env.name}"
    try:
        weights = dict(content["learner"]["policy"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{shown(path)} holds no weights of a policy.") from error
    maker = getattr(run.algo, "build_policy", None)
    with AtMost(policy_bytes(weights) + SCRATCH_BYTES, f"{misfit}: it is far larger than they."):
        policy: FrugalPolicy = maker(run, vec_env) if maker else run.algo.build(run, vec_env).policy
    try:
        policy.load_state_dict(weights)
    except (KeyError, RuntimeError, TypeError, AttributeError) as error:
        last = printable(str(error).splitlines()[-1].strip())
        raise CheckpointError(f"{misfit}: {last}") from error
    policy.set_training_mode(False)
    return policy
