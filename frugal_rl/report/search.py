"""What `scripts/search.py` does: a search for settings that reach much and hold little.

Optuna proposes, asked and told by this process; each trial is a training process of its own. The
study lies in a file and goes on where it was killed. Two objectives: the return of the last
evaluation, and the measured peak of memory.
"""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState

from frugal_rl.doing import doing
from frugal_rl.errors import ConfigError, CrowdedError, DataError, FolderInUseError
from frugal_rl.invocation import starting, value
from frugal_rl.ranges import at_least
from frugal_rl.report.files import SUMMARY, read_json, read_metrics
from frugal_rl.report.pareto import search_document
from frugal_rl.report.terminal import say
from frugal_rl.run.cells import AGAIN_SECONDS
from frugal_rl.run.composing import check_keys
from frugal_rl.run.disk import AppendedLines
from frugal_rl.run.lock import locked
from frugal_rl.run.outcome import Outcome
from frugal_rl.run.search_path import folder
from frugal_rl.run.signals import StopAsked, passing_on
from frugal_rl.untrusted.files import refuse_irregular
from frugal_rl.untrusted.printing import printable, shown

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

NAME = "search"
SPACE = re.compile(r"([\w.]+)=(choice|range|log)\((.+)\)")
BETWEEN = re.compile(r",(?![^\[]*\])")
"""Commas between values, not those inside a list."""
INTEGER = re.compile(r"-?\d+")
RETURN, MEMORY = "eval/return", "memory/peak_bytes"
LOOK_SECONDS = 0.5
FEW = 5
"""Finished trials with which none is pruned yet."""
OWN = {"trials", "jobs", "out", "storage", "space", "prune"}


class Storage(Enum):
    """The form of the study's file."""

    sqlite = "sqlite"
    journal = "journal"


@dataclass(frozen=True)
class SearchOptions:
    """The options of `scripts/search.py` beside those of a run."""

    trials: Annotated[int, at_least(1)] = 30
    """Trials in all, those of an earlier call with the same `out` included."""
    jobs: Annotated[int, at_least(1)] = 1
    """Trials side by side; `sweep.budget_gib` bounds their memory."""
    out: str = "runs/search"
    storage: Storage = Storage.sqlite
    prune: bool = True
    """End trials early whose return is below the median of those that hold no more memory."""
    space: tuple[str, ...] = ()
    """What is searched: `key=choice(a, b)`, `key=range(low, high)` or `key=log(low, high)`."""


def search(run: RunConfig, options: SearchOptions) -> Outcome:
    """Run the trials that are missing and write the front; the status is 1 where none finished.

    Raises:
        ConfigError: the space is empty or says something that cannot be read.
        FolderInUseError: another search runs in this folder.
    """
    space = dict(drawn(text) for text in options.space)
    if not space:
        raise ConfigError(
            "space is empty; name what to search, as in space=['algo.learning_rate=log(1e-4,1e-2)']"
        )
    check_keys(str(run.resolved["config_name"]), [*run.overrides, *(f"{key}=0" for key in space)])
    out = Path(options.out)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with locked(out, "search.lock"):
        study = open_study(out, options.storage, run.seed)
        again(study)
        Searcher(run, options, study, space).run()
        shown = replace(run, overrides=own_words(run))
        written = search_document(study, shown, out).write(out, NAME)
    ends = Counter(trial.state.name.lower() for trial in study.trials)
    values = {"trials": sum(ends.values()), "finished": ends["complete"], "pruned": ends["pruned"]}
    return Outcome(values, written, status=int(not ends["complete"]))


def drawn(text: str) -> tuple[str, BaseDistribution]:
    """A key, and what Optuna draws its value from.

    Raises:
        ConfigError: the text is none of the three forms, or its numbers bound nothing.
    """
    found = SPACE.fullmatch(text.replace(" ", ""))
    if found is None:
        raise ConfigError(
            f"space: {text!r} cannot be read; write key=choice(a,b), key=range(low,high) or "
            "key=log(low,high)."
        )
    key, kind, values = found[1], found[2], BETWEEN.split(found[3])
    if kind == "choice":
        return key, CategoricalDistribution(values)
    if len(values) != 2:
        raise ConfigError(f"space: {text!r} bounds with two numbers, as {key}={kind}(1,10).")
    try:
        low, high = values
        if kind == "log" and float(low) <= 0:
            raise ValueError("a logarithm needs numbers above 0")
        if INTEGER.fullmatch(low) and INTEGER.fullmatch(high):
            return key, IntDistribution(int(low), int(high), kind == "log")
        return key, FloatDistribution(float(low), float(high), kind == "log")
    except ValueError as error:
        raise ConfigError(f"space: {text!r}: {str(error).rstrip('.')}.") from error


def open_study(out: Path, storage: Storage, seed: int) -> optuna.Study:
    """The study of a folder, begun or gone on with; a killed search's torn last line is cut off.

    Raises:
        DataError: the file is none of a study.
    """
    sqlite = storage is Storage.sqlite
    file = out / ("study.db" if sqlite else "study.log")
    if file.exists():
        refuse_irregular(file)
        if not sqlite:
            AppendedLines(file).close()
    try:
        return _study(file, sqlite, seed)
    except OSError:
        raise
    except Exception as error:  # each storage has errors of its own, and of its own libraries
        words = printable(str(error).partition("\n")[0])
        raise DataError(
            f"{shown(file)} cannot be read as the study of a search ({type(error).__name__}: "
            f"{words}). Move it away to begin anew, or name another folder with out=..."
        ) from error


def _study(file: Path, sqlite: bool, seed: int) -> optuna.Study:
    kept: BaseStorage = (
        RDBStorage(f"sqlite:///{file}") if sqlite else JournalStorage(JournalFileBackend(str(file)))
    )
    return optuna.create_study(
        storage=kept,
        study_name=NAME,
        directions=["maximize", "minimize"],
        load_if_exists=True,
        sampler=optuna.samplers.TPESampler(seed=seed + len_of(kept)),
    )


def len_of(storage: BaseStorage) -> int:
    """Trials that a storage holds: a search that goes on must not draw the same again."""
    return sum(storage.get_n_trials(s._study_id) for s in storage.get_all_studies())


def again(study: optuna.Study) -> None:
    """Trials of a search that was killed are tried again, from their checkpoints."""
    for trial in study.get_trials(states=(TrialState.RUNNING,)):
        study.tell(trial.number, state=TrialState.FAIL)
        attrs = {"at": trial.user_attrs.get("at")}
        study.enqueue_trial(trial.params, user_attrs=attrs)


class Searcher:
    """Asks and tells, one training process per trial."""

    def __init__(
        self,
        run: RunConfig,
        options: SearchOptions,
        study: optuna.Study,
        space: dict[str, BaseDistribution],
    ) -> None:
        self.run_config, self.options, self.study, self.space = run, options, study, space
        self.lock = threading.Lock()
        self.running: dict[str, int] = {}
        """Process ids of trials that train, by their folder."""
        self.asked: list[int] = []
        """Signals that asked the search to stop."""

    def run(self) -> None:
        """All trials that are missing, some side by side.

        Raises:
            KeyboardInterrupt: it was asked to stop; trials have saved, and go on with the search.
        """
        jobs = self.options.jobs
        going = doing("searching", self.options.trials, "trials")
        listening = passing_on(lambda: list(self.running.values()))
        with listening as self.asked, going as self.going, ThreadPoolExecutor(jobs) as pool:
            for done in [pool.submit(self.work) for _ in range(jobs)]:
                done.result()
        if self.asked:
            stop = StopAsked(self.asked[0])
            stop.add_note("The same words go on with its trials, from their checkpoints.")
            raise stop

    def work(self) -> None:
        """Trial after trial, until there are enough, or somebody asks to stop."""
        while not self.asked and (trial := self.ask()) is not None:
            at = Path(trial.user_attrs["at"])
            state, values = self.train(trial, at)
            if self.asked:
                return  # the trial is still running, for the search that goes on
            with self.lock:
                self.study.tell(trial, values, state=state)
            why = trial.user_attrs.get("refused")
            end = told(state, values) + (f": {why}" if why else "")
            say(f"trial {trial.number}: {self.words(trial)}: {end}")

    def ask(self) -> Trial | None:
        """The next trial; None where there are enough."""
        counted = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING)
        with self.lock:
            refused = [t for t in self.study.trials if "refused" in t.user_attrs]
            self.going.done = known = len(
                self.study.get_trials(deepcopy=False, states=counted)
            ) + len(refused)
            if known >= self.options.trials:
                return None
            trial = self.study.ask(self.space)
            if not trial.user_attrs.get("at"):
                at = Path(self.options.out, "trials", str(trial.number))
                trial.set_user_attr("at", str(at))
            return trial

    def words(self, trial: Trial) -> str:
        """The overrides of a trial alone."""
        return " ".join(f"{key}={value}" for key, value in trial.params.items())

    def train(self, trial: Trial, at: Path) -> tuple[TrialState, list[float] | None]:
        """Train with the trial's words; its end and its two values."""
        at.mkdir(parents=True, exist_ok=True)
        wait_for(at)
        if (found := values_of(at)) is not None:
            return TrialState.COMPLETE, found
        code = self.watched(trial, at)
        while code and crowded(at) and not self.asked:
            time.sleep(AGAIN_SECONDS)
            code = self.watched(trial, at)
        trial.set_user_attr("returns", returns_of(at))
        if code is None:
            return TrialState.PRUNED, None
        if code == 0 and (found := values_of(at)) is not None:
            return TrialState.COMPLETE, found
        trial.set_user_attr("refused", last_words(at))
        return TrialState.FAIL, None

    def watched(self, trial: Trial, at: Path) -> int | None:
        """The exit status of a trial's process; None where it was ended early."""
        with (
            (at / "output.log").open("a") as log,
            subprocess.Popen(
                self.command(trial, at), stdout=log, stderr=log, start_new_session=True
            ) as child,
        ):
            self.running[str(at)] = child.pid
            while child.poll() is None:
                time.sleep(LOOK_SECONDS)
                if self.options.prune and self.hopeless(at):
                    child.terminate()
                    child.wait()
                    del self.running[str(at)]
                    return None
        del self.running[str(at)]
        return child.returncode

    def command(self, trial: Trial, at: Path) -> list[str]:
        """The training process of a trial."""
        run = self.run_config
        beside = ["--config-dir", run.config_dir] if run.config_dir else []
        again = [f"resume={value(at)}"] if any((at / "checkpoints").glob("*.pt")) else []
        words = [
            *(word for word in own_words(run) if word.partition("=")[0] not in trial.params),
            *self.words(trial).split(),
            *again,
            f"hydra.run.dir={value(at)}",
        ]
        return [*starting("train", folder("scripts")), *beside, *words]

    def hopeless(self, at: Path) -> bool:
        """Whether a trial is behind most of those that held no more memory than it holds."""
        own = list(progress(at))
        if not own:
            return False
        step, reached, held = own[-1]
        with self.lock:
            done = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        rivals = [r for t in done if (r := at_step(t, step)) is not None and t.values[1] <= held]
        return len(done) >= FEW and len(rivals) >= FEW // 2 and reached < median(rivals)


def own_words(run: RunConfig) -> tuple[str, ...]:
    """The overrides of the runs themselves."""
    return tuple(w for w in run.overrides if w.partition("=")[0] not in OWN)


def wait_for(at: Path) -> None:
    """Wait for a run that a search which was killed has left behind in a trial's folder."""
    while True:
        try:
            with locked(at):
                return
        except FolderInUseError:
            time.sleep(LOOK_SECONDS)


def values_of(at: Path) -> list[float] | None:
    """Both objectives of a finished run; None of another."""
    summary = read_json(at / SUMMARY) if (at / SUMMARY).is_file() else {}
    if RETURN not in summary or summary.get("interrupted"):
        return None
    return [float(summary[RETURN]), float(summary[MEMORY])]


def progress(at: Path) -> Iterator[tuple[int, float, float]]:
    """Step, return and held bytes at each evaluation of a run so far."""
    held = 0.0
    try:
        for line in read_metrics(at):
            held = max(held, float(line.get("memory/held_bytes") or 0.0))
            if line.get(RETURN) is not None:
                yield int(line["step"]), float(line[RETURN]), held
    except (OSError, DataError):
        return  # it has not begun to write


def returns_of(at: Path) -> dict[str, float]:
    """The return at each evaluated step."""
    return {str(step): reached for step, reached, _ in progress(at)}


def at_step(trial: FrozenTrial, step: int) -> float | None:
    """What a finished trial had reached at a step; None where it was not evaluated there."""
    found = trial.user_attrs.get("returns", {}).get(str(step))
    return None if found is None else float(found)


def last_words(at: Path) -> str:
    """The last line that a run said."""
    path = at / "output.log"
    said = path.read_text(errors="replace") if path.is_file() else ""  # the disk may be full
    lines = said.strip().splitlines()
    return lines[-1][:400] if lines else "nothing was said"


def crowded(at: Path) -> bool:
    """Whether a trial found no room beside others that waited, too: it finds some later."""
    return last_words(at).startswith(CrowdedError.__name__)


def told(state: TrialState, values: Sequence[float] | None) -> str:
    """A trial's end in words."""
    if values is None:
        return "pruned" if state is TrialState.PRUNED else "failed"
    return f"return {values[0]:.3g}, {values[1] / 2**20:,.0f} MiB"
