"""The front of a search: what reaches more holds more, and what is neither is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
import optuna
from matplotlib.figure import Figure
from optuna.trial import FrozenTrial, TrialState

from frugal_rl.memory.advice import command_of
from frugal_rl.report.document import CommandBlock, Document, PictureBlock, TableBlock
from frugal_rl.run.disk import finished_or_absent

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

MIB = 1 << 20
MOST_REASONS = 3
"""Of trials that failed, the most frequent first."""


def search_document(study: optuna.Study, run: RunConfig, out: Path) -> Document:
    """How many trials there were, the front as table and picture, and its commands."""
    trials = study.trials
    count = {state: sum(t.state is state for t in trials) for state in TrialState}
    document = Document(f"Search: env={run.env.name}")
    document.add(
        f"{count[TrialState.COMPLETE]} trials finished, {count[TrialState.PRUNED]} were ended "
        f"early, {count[TrialState.FAIL]} failed or were refused."
    )
    why = Counter(t.user_attrs["refused"] for t in trials if "refused" in t.user_attrs)
    for reason, times in why.most_common(MOST_REASONS):
        document.add(f"{times} of them: {reason}")
    front = sorted(study.best_trials, key=lambda t: t.values[1])
    if not front:
        return document
    keys = tuple(front[0].params)
    columns = ("trial", *keys, "return", "peak, MiB")
    document.add(TableBlock(columns, [_row(trial, keys) for trial in front]))
    done = [t for t in trials if t.state is TrialState.COMPLETE]
    picture = draw_front(done, front, out / "pareto.png")
    caption = "All finished trials; the line joins those that none beats in both."
    document.add(PictureBlock(picture, caption))
    best = [tuple(f"{key}={value}" for key, value in t.params.items()) for t in front]
    document.add(CommandBlock([command_of(run, words) for words in best]))
    return document


def _row(trial: FrozenTrial, keys: Sequence[str]) -> tuple[str, ...]:
    values = (f"{v:.3g}" if isinstance(v := trial.params[k], float) else str(v) for k in keys)
    return (str(trial.number), *values, f"{trial.values[0]:.3g}", f"{trial.values[1] / MIB:,.1f}")


def draw_front(done: Sequence[FrozenTrial], front: Sequence[FrozenTrial], path: Path) -> Path:
    """Return over peak memory, with the front as a staircase."""
    matplotlib.use("Agg")
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.scatter(*_points(done), s=24, color="#888888", label=f"{len(done)} trials")
    axes.step(*_points(front), where="post", color="#cc6633")
    axes.scatter(*_points(front), s=36, color="#cc6633", label=f"{len(front)} on the front")
    for trial in front:
        axes.annotate(str(trial.number), (trial.values[1] / MIB, trial.values[0]), fontsize=8)
    axes.set_xlabel("peak memory, MiB")
    axes.set_ylabel("return")
    axes.legend()
    with finished_or_absent(path) as part:
        figure.savefig(part, dpi=120)
    return path


def _points(trials: Sequence[FrozenTrial]) -> tuple[list[float], list[float]]:
    return [t.values[1] / MIB for t in trials], [t.values[0] for t in trials]
