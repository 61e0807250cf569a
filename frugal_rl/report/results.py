"""Finished runs, read back from their folders: what was asked, predicted, measured and reached."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from statistics import stdev
from typing import Any

from frugal_rl.errors import DataError
from frugal_rl.invocation import command_line, command_words
from frugal_rl.report.files import (
    FILMS,
    PICTURES,
    PLAN,
    RUN,
    SUMMARY,
    read_json,
    read_metrics,
)
from frugal_rl.run.lock import writer_of
from frugal_rl.untrusted.printing import shown

EVALUATION = "eval/success"
GROUPS = ("env", "memory", "algo", "tracking")
"""Parts of a configuration that a report looks into."""
T_95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
"""Student's t for a two-sided 95 % interval, with 1 to 9 degrees of freedom; 1.96 beyond."""


class State(Enum):
    """How far a run came."""

    complete = "complete"
    """All its steps are done."""
    stopped = "stopped"
    """It ended early on request; its checkpoint goes on."""
    running = "running"
    """A process writes into its folder."""
    killed = "killed"
    """It left no summary of its steps: it was killed, or ended with an error."""


@dataclass(frozen=True)
class RunResult:
    """One run folder."""

    folder: Path
    config: dict[str, Any]
    overrides: tuple[str, ...]
    plan: dict[str, Any]
    summary: dict[str, Any]
    machine: str = ""
    """Cores, processor, memory and accelerator that it ran on, as it said itself."""

    @classmethod
    def read(cls, folder: Path) -> RunResult:
        """The run in a folder; a run that is still going on, or was killed, has no summary yet."""
        asked = read_json(folder / RUN)
        config: Any = asked.get("config")
        words: Any = asked.get("overrides")
        whole = isinstance(config, dict) and isinstance(words, list)
        if not whole or not all(isinstance(config.get(name) or {}, dict) for name in GROUPS):
            raise DataError(f"{shown(folder / RUN)} holds no configuration of a run.")
        plan = read_json(folder / PLAN) if (folder / PLAN).is_file() else {}
        summary = read_json(folder / SUMMARY) if (folder / SUMMARY).is_file() else {}
        machine = str(asked.get("machine") or "")
        return cls(folder, config, tuple(map(str, words)), plan, summary, machine)

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """All lines of the run."""
        return list(read_metrics(self.folder))

    @property
    def env(self) -> str:
        """Name of the environment."""
        return str(self.config.get("env", {}).get("name", "?"))

    @property
    def profile(self) -> str:
        """Name of the memory profile."""
        return str(self.config.get("memory", {}).get("profile", "?"))

    @property
    def state(self) -> State:
        """How far it came, by who writes, its summary, and the steps that it was asked for."""
        if writer_of(self.folder) is not None:
            return State.running
        done, asked = self.summary.get("num_steps"), self.config.get("algo", {}).get("total_steps")
        if done is None:  # the log of a run that ends by an error has its memory alone
            return State.killed
        short = asked is not None and done < asked
        return State.stopped if short or self.summary.get("interrupted") else State.complete

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.config.get("seed", 0))

    @property
    def variant(self) -> str:
        """What was typed, without the seed: runs that differ in nothing else are repetitions.

        A run that was stopped and the one that went on from it are of one variant. The order of
        words counts only for those of one key, whose last one is meant; groups stand in front.
        """
        last = {word.split("=")[0]: word for word in self.overrides}
        kept = [o for o in last.values() if not o.startswith(("seed=", "hydra", "resume="))]
        words = sorted(kept, key=lambda word: ("." in word.split("=")[0], word))
        return " ".join(words) or "defaults"

    @property
    def command(self) -> str:
        """The command that repeats it."""
        folder = str(self.config.get("config_dir") or "")
        beside = ["--config-dir", folder] if folder else []
        return command_line([*command_words("train"), *beside, *self.overrides])

    @property
    def films(self) -> list[Path]:
        """Pictures and films that it left: all that were drawn, and the newest of its evaluations.

        Links are left out: one in a stranger's folder may lead anywhere.
        """
        drawn, films = (_files(self.folder / name) for name in (PICTURES, FILMS))
        return sorted(drawn) + sorted(films, key=lambda path: path.stat().st_mtime_ns)[-1:]

    @property
    def last_step(self) -> float | None:
        """The last step that was logged; None before the first."""
        return float(self.metrics[-1]["step"]) if self.metrics else None

    def number(self, name: str) -> float | None:
        """A number of the summary, else the last one that was logged by this name."""
        if name in self.summary:
            value = self.summary[name]
            return float(value) if isinstance(value, int | float) else None
        logged = [m[name] for m in self.metrics if m.get(name) is not None]
        return float(logged[-1]) if logged else None

    def curve(self, name: str) -> tuple[list[float], list[float]]:
        """Steps and values of a metric."""
        points = [(m["step"], m[name]) for m in self.metrics if m.get(name) is not None]
        return [float(s) for s, _ in points], [float(v) for _, v in points]


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*") if path.is_file() and not path.is_symlink()]


def find_runs(places: Iterable[str | Path]) -> list[RunResult]:
    """All runs below some folders, in order of their paths.

    Raises:
        DataError: a folder is not there, or none holds a run.
    """
    found = []
    folders = [Path(p) for p in places]
    if not folders:
        raise DataError("runs=[] names no folder; name run folders, or folders above them.")
    for place in folders:
        if not place.is_dir():
            raise DataError(f"{place} is no folder; name run folders, or folders above them.")
        found += [RunResult.read(p.parent) for p in sorted(place.rglob(RUN))]
    if not found:
        raise DataError(f"No run lies below {', '.join(map(str, folders))}.")
    return found


@dataclass(frozen=True)
class Row:
    """Repetitions of one variant, with the means of their numbers over complete runs.

    A spread is half of the 95 % interval of the mean over seeds; None with fewer than two.
    """

    env: str
    variant: str
    profile: str
    label: str
    seeds: int
    bytes_per_transition: float | None
    predicted_bytes: float | None
    measured_bytes: float | None
    steps_per_second: float | None
    success: float | None
    episode_return: float | None
    incomplete: int = 0
    """Runs that were stopped, killed or still go on: in no mean."""
    success_spread: float | None = None
    return_spread: float | None = None

    @property
    def error(self) -> float | None:
        """How far the prediction was off, as a share of what was measured."""
        if not self.predicted_bytes or not self.measured_bytes:
            return None
        return self.predicted_bytes / self.measured_bytes - 1


def compare(runs: Sequence[RunResult]) -> list[Row]:
    """One row per variant, in order of first appearance."""
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for run in runs:
        groups.setdefault((run.env, run.variant), []).append(run)
    return [_row(env, variant, group) for (env, variant), group in groups.items()]


def _row(env: str, variant: str, group: list[RunResult]) -> Row:
    first = group[0]
    complete = [r for r in group if r.state is State.complete]
    success = [r.number(EVALUATION) for r in complete]
    returns = [r.number("eval/return") for r in complete]
    return Row(
        env=env,
        variant=variant,
        profile=first.profile,
        label=str(first.plan.get("label", "")),
        seeds=len({r.seed for r in complete}),
        bytes_per_transition=mean([r.plan.get("bytes_per_transition") for r in group]),
        predicted_bytes=mean([r.plan.get("ram_bytes") for r in complete]),
        measured_bytes=mean([r.number("memory/peak_bytes") for r in complete]),
        steps_per_second=mean([r.number("steps_per_second") for r in complete]),
        success=mean(success),
        episode_return=mean(returns),
        incomplete=len(group) - len(complete),
        success_spread=spread(success),
        return_spread=spread(returns),
    )


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of what is known."""
    known = [float(v) for v in values if v is not None]
    return sum(known) / len(known) if known else None


def spread(values: Sequence[float | None]) -> float | None:
    """Half of the 95 % interval of the mean, by Student's t; None for fewer than two values."""
    known = [float(v) for v in values if v is not None]
    if len(known) < 2:
        return None
    t = T_95[len(known) - 2] if len(known) - 2 < len(T_95) else 1.96
    return t * stdev(known) / math.sqrt(len(known))


def short_names(runs: Sequence[RunResult]) -> tuple[dict[str, str], list[str]]:
    """What to call each variant among these runs, and the words that all of them share."""
    words = {run.variant: run.variant.split(" ") for run in runs}
    shared = [w for w in next(iter(words.values()), []) if all(w in v for v in words.values())]
    if len(words) == 1:
        return {variant: variant for variant in words}, []
    names = {v: " ".join(w for w in own if w not in shared) for v, own in words.items()}
    return {variant: name or "nothing else" for variant, name in names.items()}, shared
