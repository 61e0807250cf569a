"""What every script does around its task: words, refusals, how to speak, the end.

@main("train")
def train(cfg: DictConfig) -> Outcome:
...
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from frugal_rl.doing import doing
from frugal_rl.errors import ConfigError, FrugalError
from frugal_rl.garbage import collect_again
from frugal_rl.invocation import called, called_as, value
from frugal_rl.report.speech import Mode, labelled, speaking
from frugal_rl.report.streams import visible
from frugal_rl.run import arguments
from frugal_rl.run.compose import composed_command, fitting_agent_of, run_jobs, sweep_folder
from frugal_rl.run.composing import check_choices, check_keys, check_words, named_plugins
from frugal_rl.run.disk import disk_in_words
from frugal_rl.run.help import help_text
from frugal_rl.run.lock import LAUNCHER_LOCK, LOCK, SWEEP_LOCK, kept_for_run, locked
from frugal_rl.run.mistyped import check_taken_once
from frugal_rl.run.of_run import groups_of_run
from frugal_rl.run.outcome import Outcome, concluded, failed
from frugal_rl.run.preflight import Command, Job, check_launcher, lock_of, preflight, writable
from frugal_rl.run.search_path import check_named_configuration, groups, searching
from frugal_rl.run.signals import StopAsked, stop_in_words, stop_where_told
from frugal_rl.run.sweep_table import sum_up
from frugal_rl.run.zoo.words import translated
from frugal_rl.threads import sleep_while_waiting

STOPPED = 128 + signal.SIGTERM
"""Exit status of a sweep that was asked to stop."""
LEFT_BY_HYDRA = (".hydra", "*.log", "multirun.yaml", LOCK, LAUNCHER_LOCK, SWEEP_LOCK)
"""What lies in a folder before its run, or its sweep, has begun."""
DOING = {
    "ablate": "training with each saving",
    "evaluate": "evaluating",
    "generate": "generating",
    "plan": "planning",
    "play": "playing",
    "profile_memory": "measuring memory",
    "record": "recording",
    "report": "writing the report",
    "search": "searching",
    "solve": "solving",
    "study": "studying",
    "train": "training",
    "verify": "reading the checkpoint",
    "verify_storage": "comparing representations",
}
"""What a script does where it says nothing more exact, by its configuration."""
Task = Callable[[Any], Outcome | None]


def main(
    config_name: str, in_sweep: Callable[[Job], Outcome] | None = None
) -> Callable[[Task], Callable[[], None]]:
    """Decorate a script: Hydra composes `conf/<config_name>.yaml` and the command line.

    Args:
        config_name: the top-level file of the command.
        in_sweep: does a job of a sweep in the place of the task, and keeps its end in its folder.

    What is mistyped, missing or impossible is refused in one line before anything runs. An error
    that is meant for the user ends a single run with its message; in a sweep it stays an exception,
    so that the other jobs run.
    """

    def decorate(task: Task) -> Callable[[], None]:
        @functools.wraps(task)
        def script() -> None:
            sleep_while_waiting()
            stop_in_words()
            stop_where_told(sys.argv)
            command = Script(config_name, task, in_sweep)
            try:
                with disk_in_words():
                    status = command.run()
            except FrugalError as error:
                sys.exit(command.refused(error))
            except KeyboardInterrupt as stop:  # a run that trains was asked twice, and says more
                number = stop.number if isinstance(stop, StopAsked) else signal.SIGINT
                by = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
                words = [f"Stopped by {by}.", *getattr(stop, "__notes__", [])]
                print(visible(" ".join(words)), file=sys.stderr)
                sys.exit(128 + number)
            if status:
                sys.exit(status)

        return script

    return decorate


class Script:
    """One call of a script."""

    def __init__(
        self, config_name: str, task: Task, in_sweep: Callable[[Job], Outcome] | None = None
    ) -> None:
        self.config_name, self.task, self.in_sweep = config_name, task, in_sweep
        self.mode, self.sweep = Mode.people, False
        self.outcomes: list[Outcome] = []
        self.command: Command | None = None
        self.called = called()

    def run(self) -> int:
        """Check, compose, do; returns the exit status.

        Raises:
            FrugalError: the command line or the run is refused.
        """
        self.mode = arguments.take_mode(sys.argv)
        arguments.check_place()
        arguments.check_letters(sys.argv[1:])
        typed = arguments.switches_first(sys.argv[1:])
        sys.argv[1:] = translated(arguments.in_our_words(typed))
        self.sweep = arguments.sweeps(sys.argv)
        beside = arguments.typed_folders(sys.argv[1:])
        first = "sweeping" if self.sweep else "reading the configuration"
        with speaking(self.mode) as out, doing(first):
            with searching(plugins_of(sys.argv[1:]), beside):
                if arguments.asks_for_help(sys.argv[1:]):
                    out.write(self.help(sys.argv[1:]))
                    return 0
                sys.argv += groups_of_run(arguments.overrides(sys.argv[1:]))
                asks = arguments.asks(sys.argv[1:])
                if not asks:
                    self.check(sys.argv[1:])
                with self.concluded() if not asks else nullcontext(), self.held():
                    run_jobs(self.config_name, self.job, self.command)
            out.write(concluded(self.mode, self.outcomes, self.sweep))
            out.flush()
        return max((outcome.status for outcome in self.outcomes), default=0)

    def help(self, typed: list[str]) -> str:
        """What the command is for and takes, with the words that stand beside `--help`."""
        about = str(self.task.__globals__.get("__doc__") or "").strip().partition("\n")[0]
        return help_text(about, self.config_name, arguments.overrides(typed))

    def check(self, typed: list[str]) -> None:
        """Refuse what can be refused by the words and the values that they compose.

        Raises:
            FrugalError: naming what is wrong, and what to do.
        """
        for folder in arguments.typed_folders(typed):
            if not Path(folder).is_dir():
                raise ConfigError(f"--config-dir {folder} is no folder; name one with YAML files.")
        arguments.check_form(typed)
        check_named_configuration(typed)
        words = arguments.typed_words(typed)
        check_taken_once(words)
        arguments.check_added(words, groups())
        launchers = [w.partition("=")[2] for w in words if w.startswith("hydra/launcher=")]
        for name in launchers:
            check_launcher(name)
        if self.sweep:  # which composes each job again
            check_words(self.config_name, words)
            if self.mode is Mode.json and launchers:
                raise ConfigError("--json tells of a sweep's jobs only without hydra/launcher=.")
        elif not arguments.OTHER_CONFIGURATION & set(typed):
            self.command = self.composed(words)
            preflight(self.command)

    def composed(self, words: list[str]) -> Command:
        """The command that the words compose, with the agent that a memory profile wants.

        Raises:
            ConfigError: a word names nothing, or they compose nothing.
        """
        check_choices(words, sweep=False)
        sys.argv += fitting_agent_of(self.config_name, words)
        try:
            return composed_command(self.config_name, arguments.overrides(sys.argv[1:]))
        except ConfigError:
            check_keys(self.config_name, words)  # says more exactly which
            raise

    @contextmanager
    def concluded(self) -> Iterator[None]:
        """A sweep has a place to write to; one whose jobs are processes is summed up at its end."""
        if not self.sweep:
            yield
            return
        at = sweep_folder(self.config_name, arguments.overrides(sys.argv[1:]))
        writable(at, "hydra.sweep.dir")
        sys.argv.append(f"hydra.sweep.dir={value(at)}")  # the time in it goes on
        if not self.in_sweep:
            yield
            return
        with locked(at, SWEEP_LOCK):  # another sweep would take its running jobs for failed ones
            try:
                yield
            finally:
                self.outcomes.append(sum_up(at))
                forget(at)

    @contextmanager
    def held(self) -> Iterator[None]:
        """A run's folder is its own before Hydra writes there; one that it left empty goes."""
        name = lock_of(self.command) if self.command else None
        if self.command is None or name is None:
            yield
            return
        at = self.command.folder.absolute()
        sys.argv.append(f"hydra.run.dir={value(at)}")  # the time in it goes on
        with kept_for_run(at, name):
            try:
                yield
            except (FrugalError, KeyboardInterrupt):
                forget(at)
                raise

    def job(self, cfg: Any, job: Job) -> None:
        """One job: of a single run the only one, of a sweep one of many."""
        called_as(self.called)  # in a launcher's process nobody else has said it
        collect_again()
        with self.labelled(job), self.tidied(job), disk_in_words():
            if self.sweep and not self.in_sweep:
                preflight(job.command)
            if self.sweep and self.in_sweep:
                outcome = self.in_sweep(job)
            else:
                with doing(DOING.get(self.config_name, f"working: {self.config_name}")):
                    outcome = self.task(cfg) or Outcome()
        self.outcomes.append(outcome)
        if self.sweep and outcome.interrupted:
            raise SystemExit(STOPPED)  # whoever stops one job of a sweep means all of them

    @contextmanager
    def labelled(self, job: Job) -> Iterator[None]:
        """Jobs that run side by side say which one speaks."""
        if not (self.sweep and job.side_by_side):
            yield
            return
        with labelled(f"[{job.number}] "):
            yield

    @contextmanager
    def tidied(self, job: Job) -> Iterator[None]:
        """Leave no folder behind in which nothing was written but what Hydra writes."""
        try:
            yield
        except (FrugalError, KeyboardInterrupt):
            forget(job.command.folder)
            raise

    def refused(self, error: FrugalError) -> str:
        """The line that ends the command; as JSON too, where that was asked for."""
        kind = type(error).__name__
        words = " ".join([str(error), *getattr(error, "__notes__", [])])
        if self.mode is Mode.json:
            sys.stdout.write(failed(kind, words))
        return f"{kind}: " + "\n".join(map(visible, words.split("\n")))  # may repeat a stranger's


def plugins_of(typed: list[str]) -> list[str]:
    """Packages that `plugins=[...]` names."""
    return named_plugins(arguments.overrides(typed))


def forget(folder: Path) -> None:
    """Remove a run folder that holds nothing of a run, and the empty ones above it."""
    if folder.resolve() == Path.cwd() or not folder.is_dir():
        return
    kept = {p for pattern in LEFT_BY_HYDRA for p in folder.glob(pattern)}
    if set(folder.iterdir()) - kept:
        return
    shutil.rmtree(folder)
    for above in folder.parents:
        if above.resolve() == Path.cwd() or any(above.iterdir()):
            return
        os.rmdir(above)
