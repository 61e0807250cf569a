"""Runs without a command line: train, evaluate and load policies as the scripts do.

    summary = train("env=nclone memory=parallel")
    results = evaluate(summary["run_dir"])

Imports torch; `run/planning.py` has what comes before that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugal_rl.errors import ConfigError
from frugal_rl.invocation import command
from frugal_rl.memory.auto import prepare, refuse_hopeless
from frugal_rl.run.admission import admitted
from frugal_rl.run.compose import compose_run
from frugal_rl.run.planning import Words, composed, split_words, time_stamp
from frugal_rl.run.probe import probe_update
from frugal_rl.run.session import evaluate_saved, train_planned
from frugal_rl.run.watch import Watch, open_watch

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig
    from frugal_rl.run.evaluate import Result


def train(run: RunConfig | Words) -> dict[str, Any]:
    """Plan, then train as `scripts/train.py` does; the run's summary, with its `run_dir`.

    Waits for room beside other runs of this machine, in the ledger that all of them share.

    Raises:
        MemoryBudgetError: the run does not fit; nothing was allocated.
        ConfigError: the words ask for several processes, which only the command line starts.

    Example:
        >>> summary = train("env=toy algo.total_steps=65536")  # doctest: +SKIP
        >>> summary["eval/success"]  # doctest: +SKIP
        1.0
    """
    asked = composed(run)
    if asked.launch.size > 1 or asked.launch.scheduler:
        raise ConfigError(
            "frugal_rl.train trains in this process, and launch= starts several; use "
            f"{command('train')} with the same words, or launch=single here."
        )
    refuse_hopeless(asked)
    with admitted(asked) as room:
        settled, drawn_up = prepare(asked, probe_update)
        room.settle(drawn_up.ram_bytes)
        return {**train_planned(settled, drawn_up), "run_dir": settled.run_dir}


def evaluate(path: str | Path, words: Words = "") -> dict[str, Result]:
    """Results of the policy in a run folder, and of random play beside it.

    Args:
        path: a run folder or a checkpoint.
        words: single values to change, such as "evaluation.episodes=500".

    Raises:
        CheckpointError: missing, damaged, or of another configuration.

    Example:
        >>> results = evaluate("runs/toy/lossless/...", "evaluation.episodes=500")  # doctest: +SKIP
        >>> results["policy"].score.means["return"]  # doctest: +SKIP
        0.81
    """
    asked = replace(
        compose_run(split_words(words)), run_dir=str(Path("runs", "evaluations", time_stamp()))
    )
    return evaluate_saved(str(path), asked)


@contextmanager
def load_policy(path: str | Path, words: Words = "") -> Iterator[Watch]:
    """The policy in a run folder with one environment of its own, played step by step.

    `choose()` gives the policy's actions for what it sees now, `step(actions)` takes them; look at
    `vec_env` in between. The environment is closed at the end of the `with` block.

    Raises:
        CheckpointError: missing, damaged, or of another configuration.

    Example:
        >>> with load_policy("runs/toy/lossless/...") as player:  # doctest: +SKIP
        ...     step = player.step(player.choose())
    """
    with open_watch(str(path), compose_run(split_words(words))) as watch:
        yield watch
