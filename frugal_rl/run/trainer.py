"""The loop: learn, evaluate, save, log, and stop in good order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
import yaml  # type: ignore[import-untyped]
from rich.console import Console
from stable_baselines3.common.utils import set_random_seed

from frugal_rl.doing import doing
from frugal_rl.errors import DiskError, FolderInUseError, MemoryBudgetError, NumbersError
from frugal_rl.invocation import override
from frugal_rl.learn.on_policy import OnPolicyLearner
from frugal_rl.learn.ranks import Ranks
from frugal_rl.learn.update import ALONE
from frugal_rl.memory.allocator import settle
from frugal_rl.memory.choices import Allocator
from frugal_rl.memory.duration import keep_pace
from frugal_rl.memory.part import Phase
from frugal_rl.memory.process import settled
from frugal_rl.report.files import FILMS, PICTURES, write_json, write_text
from frugal_rl.report.terminal import open_console, say
from frugal_rl.run.config import RunConfig
from frugal_rl.run.disk import told
from frugal_rl.run.divergence import Divergence
from frugal_rl.run.evaluate import (
    CutOffError,
    RandomPlayer,
    Result,
    draw,
    evaluate,
    evaluation_env,
    film,
    policy_player,
)
from frugal_rl.run.filling import Filling
from frugal_rl.run.guard import NumberGuard, watched_trial
from frugal_rl.run.progress import ProgressBar
from frugal_rl.run.saves import Saves
from frugal_rl.run.shares import SEED_STEP, shard
from frugal_rl.run.signals import asked_to_stop
from frugal_rl.run.stopwatch import Stopwatch
from frugal_rl.store.seen import remember_rows

if TYPE_CHECKING:
    from frugal_rl.vec_env.interface import VectorEnv


class Log(Protocol):
    """Where numbers go; `frugal_rl.report` writes `metrics.jsonl` and W&B."""

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers at one step of the run."""

    def summary(self, values: Mapping[str, Any]) -> None:
        """Numbers of the whole run."""

    def file(self, path: Path) -> None:
        """A file that belongs to the run."""


TIMED_ITERATIONS = 3
"""Fewer say nothing about how long the next run takes."""
PhaseContext = Callable[[Phase], AbstractContextManager[Any]]


def no_meter(phase: Phase) -> AbstractContextManager[Any]:
    """Measures nothing."""
    return nullcontext()


def nothing_to_forget(step: int) -> None:
    """A log that begins with the run."""


def held_by_none() -> bool:
    """A folder that nobody keeps is never gone."""
    return False


@dataclass
class Trainer:
    """One run from its first step to its last.

    `phase` tells the meter what goes on; `watch` returns advice once memory is nearly used up, and
    an empty string before: then the run saves a checkpoint and stops. `hold` keeps the run's
    folder, and tells whether it was gone and had to be made again. `go_on_from` tells the log at
    which step the run begins.
    """

    run: RunConfig
    log: Log
    phase: PhaseContext = no_meter
    watch: Callable[[], str] = str
    hold: Callable[[], bool] = held_by_none
    go_on_from: Callable[[int], None] = nothing_to_forget
    console: Console = field(default_factory=open_console)
    ranks: Ranks = ALONE
    """The processes that train this run together; the first one evaluates, logs and saves."""

    def train(self) -> dict[str, Any]:
        """Learn `algo.total_steps` environment steps; returns the run's summary."""
        run = self.run
        self.folder = Path(run.run_dir)
        self.stopwatch = Stopwatch(self.phase)
        self.phase = settled(run.memory, self.stopwatch.phase)
        with told(self.folder):
            write_text(self.folder / "cfg.resolved.yaml", yaml.safe_dump(dict(run.resolved)))
        set_random_seed(run.seed, using_cuda=torch.cuda.is_available())
        self.eval_env: VectorEnv | None = None
        self.result: Result | None = None
        self.guard, self.divergence = NumberGuard(self.folder, run.debug), Divergence()
        self.filling = Filling.of(run)
        self.steps_before, self.guard_at, self.unheld = 0, self.guard.at, ""
        own = replace(shard(run, self.ranks), ranks=self.ranks)
        with doing(f"starting {own.algo.num_envs} environments"):
            vec_env = own.env.make_vec(
                own.algo.num_envs, own.encoding(), own.memory, own.vec, "train"
            )
        try:
            with doing("building the learner"):
                self.learner = own.algo.build(own, self.guard.watch(vec_env))
                self.guard.adapt(self.learner)
                self.join()
            self.saves = Saves(run, self.learner, self.ranks)
            if run.resume:
                self.go_on(run.resume)
            self.go_on_from(self.learner.num_steps)
            with asked_to_stop() as stop:
                return self.guarded(stop)
        finally:
            vec_env.close()
            if self.eval_env is not None:
                self.eval_env.close()

    def join(self) -> None:
        """Learn together with the other processes, each with random numbers of its own."""
        if isinstance(self.learner, OnPolicyLearner) and self.ranks.size > 1:
            self.learner.join(self.ranks)
            seed = shard(self.run, self.ranks).seed
            set_random_seed(seed, using_cuda=torch.cuda.is_available())

    def go_on(self, path: str) -> None:
        """Continue where an earlier run ended.

        Processes that all went on from the first one's random numbers part ways: with equal ones
        they would try the same actions in the same first episodes.
        """
        resumed = self.saves.resume(path)
        say(resumed.words, self.console)
        alike = isinstance(self.learner, OnPolicyLearner) and not resumed.as_many
        if alike and not self.ranks.first:
            drawn = int(np.random.randint(2**31))  # noqa: NPY002 - the stream that was saved
            seed = (drawn + SEED_STEP * self.ranks.rank) % 2**32
            set_random_seed(seed, using_cuda=torch.cuda.is_available())

    def guarded(self, stop: threading.Event) -> dict[str, Any]:
        """The loop; what goes wrong in it is told with the way to continue."""
        try:
            return self.loop(stop)
        except NumbersError as error:
            raise NumbersError(f"{error} {self.saves.hint()}") from error
        except (DiskError, FolderInUseError, MemoryBudgetError):
            raise  # these say it themselves
        except (Exception, KeyboardInterrupt) as error:  # asked twice: ended at once
            error.add_note(self.saves.hint())
            raise

    def loop(self, stop: threading.Event) -> dict[str, Any]:
        """Iterate until all steps are done, somebody asks to stop, or memory runs out."""
        total, first = self.run.algo.total_steps, self.learner.num_steps
        self.began_at, self.stop, self.cut_off = first, stop, False
        with ProgressBar(total, first, self.console, self.steps_so_far) as bar:
            asked = self.stopped(stop)
            while self.learner.num_steps < total and not asked:
                before = self.learner.num_steps
                metrics = self.iterate()
                now = self.learner.num_steps
                metrics["time/steps_per_second"] = bar.rate(now)
                self.keep_folder()
                self.log.metrics(now, metrics)
                bar.show(now, metrics)
                if crosses(before, now, self.run.evaluation.every_steps) and now < total:
                    self.try_out()
                if crosses(before, now, self.run.checkpoint_every_steps):
                    self.on_the_way(self.save)
                asked = self.heed(self.watch(), stop)
            if not asked and self.run.evaluation.episodes:
                if self.ranks.any(self.saves.stale)[0]:  # playing may take longer than learning
                    self.on_the_way(self.save)
                self.try_out()
                asked = self.ranks.any(self.cut_off)[0]
            return self.finish(bar.rate(self.learner.num_steps), asked)

    def stopped(self, stop: threading.Event) -> bool:
        """Whether somebody asked any of the processes to stop: all of them do."""
        return self.ranks.any(stop.is_set())[0]

    def steps_so_far(self) -> int:
        """Environment steps of this moment, those of an unfinished collection among them."""
        inside = (self.guard.at - self.guard_at) * self.learner.vec_env.num_envs * self.ranks.size
        return max(self.learner.num_steps, self.steps_before + inside)

    def iterate(self) -> dict[str, float]:
        """Collect and learn once, under the guard."""
        self.steps_before, self.guard_at = self.learner.num_steps, self.guard.at
        watch, phases = self.stopwatch, (Phase.rollout, Phase.update)
        before = {phase: watch.times[phase].total for phase in phases}
        used = sum(watch.processor[phase].total for phase in phases)
        with doing("collecting and learning"):
            metrics = self.guard.iterate(self.learner, lambda: self.learner.iterate(self.phase))
        if self.run.memory.allocator is Allocator.pinned:
            settle()  # what the update freed would lie under the next phases
        for phase, seconds in before.items():
            metrics[f"time/{phase.value}_seconds"] = watch.times[phase].total - seconds
        now = sum(watch.processor[phase].total for phase in phases)
        metrics["time/processor_seconds"] = now - used
        vec_env = self.learner.vec_env
        restarts = getattr(getattr(vec_env, "inner", vec_env), "restarts", 0)
        if restarts:
            metrics["vec/restarts"] = float(restarts)
        for words in self.divergence.note(metrics) + self.filling.note(metrics):
            say(f"Warning: {words}", self.console)
        return metrics

    def try_out(self) -> None:
        """The first process evaluates, as long as that takes, and the others wait."""
        if self.run.evaluation.episodes:
            self.guard.settle(self.learner, self.phase)
            with self.ranks.led():
                if self.ranks.first:
                    self.evaluate()

    def evaluate(self) -> None:
        """Play on the fixed seeds; keep the best policy so far."""
        with self.phase(Phase.evaluation):
            env, best = self.trial_env(), self.run.evaluation.deterministic
            player = policy_player(self.run, self.learner.policy, env, best)
            try:
                self.result = evaluate(self.run, env, player, self.stop.is_set)
            except CutOffError:  # Slurm waits two minutes, an evaluation may take an hour
                self.result, self.cut_off = None, True
                say("The evaluation is cut off: the run was asked to stop.", self.console)
                return
            self.log.metrics(self.learner.num_steps, self.result.metrics())
            if self.run.evaluation.film:
                path = self.folder / FILMS / f"{self.learner.num_steps}.gif"
                with doing("filming the policy"), self.spared("A film"):
                    if film(self.run, self.learner.policy, path):
                        self.log.file(path)
        means = self.result.score.means
        worth = means["success"] * 1e6 + means["return"]  # success decides, the return breaks ties
        if self.run.evaluation.every_steps:
            with self.phase(Phase.checkpoint):
                self.on_the_way(lambda: self.saves.save_if_best(worth))

    def trial_env(self) -> VectorEnv:
        """The environments of evaluations, watched in every step."""
        if self.eval_env is None:
            self.eval_env = watched_trial(self.folder, evaluation_env(self.run))
        return self.eval_env

    def beside_random_play(self) -> dict[str, float]:
        """What random play reaches in the same episodes: the baseline of every result."""
        env = self.eval_env
        if env is None:
            return {}
        with self.phase(Phase.evaluation):
            seed = self.run.evaluation.seed
            chance = RandomPlayer(env.encoding, env.tables, env.action_space, seed)
            try:
                return evaluate(self.run, env, chance, self.stop.is_set).metrics("random")
            except CutOffError:
                return {}

    def draw(self) -> None:
        """Pictures of what the policy does, into the run folder and the log."""
        drawn = None
        with self.phase(Phase.evaluation):
            env = self.trial_env()
            player = policy_player(self.run, self.learner.policy, env, True)
            with doing("drawing the policy"), self.spared("A picture"):
                drawn = draw(self.run, env, player, self.folder / PICTURES)
                for path in drawn:
                    self.log.file(path)
        if drawn == []:
            say(f"visualization=true: env={self.run.env.name} has no pictures.", self.console)

    def keep_pace(self) -> None:
        """Remember what this kind of run takes, and how its rows were kept, for the next plan."""
        watch = self.stopwatch
        count = watch.times[Phase.rollout].count
        if count >= TIMED_ITERATIONS:
            steps = (self.learner.num_steps - self.began_at) / count
            alone = {phase: watch.alone[phase].mean for phase in Phase}
            processor = {phase: watch.processor[phase].mean for phase in Phase}
            keep_pace(self.run, alone, processor, steps)
            remember_rows(self.run, self.learner)

    def save(self) -> Path:
        """Write a checkpoint with everything that an exact resume needs."""
        self.guard.settle(self.learner, self.phase)
        with self.phase(Phase.checkpoint), doing("saving a checkpoint"):
            return self.saves.save()

    def keep_folder(self) -> None:
        """Keep the folder: one that was deleted or moved meanwhile is made again, and said so.

        Raises:
            FolderInUseError: another run has taken it.
        """
        try:
            gone = self.hold()
        except DiskError as error:
            if str(error) != self.unheld:  # once, and not in each iteration
                self.unheld = str(error)
                say(f"Warning: {error}", self.console)
            return
        if not gone:
            return
        say(
            f"Warning: {self.folder} was deleted or moved while this run went on. It was made again"
            " with all lines of metrics; earlier checkpoints, films and pictures are not there.",
            self.console,
        )
        if self.ranks.size == 1:  # several save together: at their time
            self.on_the_way(self.save)

    def on_the_way(self, save: Callable[[], object]) -> None:
        """Save while there is more to do: a full disk may have room again the next time."""
        try:
            save()
        except DiskError as error:
            say(f"Warning: {error} The run goes on.", self.console)

    @contextmanager
    def spared(self, what: str) -> Iterator[None]:
        """What a run can do without is left out when the disk does not take it."""
        try:
            yield
        except OSError as error:
            words = f"Warning: {what} is not written ({error.strerror or error}). The run goes on."
            say(words, self.console)

    def heed(self, advice: str, stop: threading.Event) -> bool:
        """Whether somebody asked to stop; a checkpoint before the kernel kills the run."""
        full, asked = self.ranks.any(bool(advice), stop.is_set())
        if full:
            advice = advice or "Another process of this run is nearly out of memory."
            words = f"The run was saved: continue with {override('resume', self.save())}"
            raise MemoryBudgetError(f"{advice} {words}")
        return asked

    def finish(self, rate: float, interrupted: bool) -> dict[str, Any]:
        """Save, sum up, and say where the results are."""
        self.keep_folder()
        saved = self.save()
        with self.ranks.led():
            return self.sum_up(rate, interrupted, saved) if self.ranks.first else {}

    def sum_up(self, rate: float, interrupted: bool, saved: Path) -> dict[str, Any]:
        """The last pictures, random play beside the policy, and the run's summary."""
        self.keep_pace()
        if self.run.visualization:
            self.draw()
        summary: dict[str, Any] = {
            "num_steps": self.learner.num_steps,
            "steps_per_second": rate,
            "interrupted": interrupted,
            "checkpoint": str(saved.relative_to(self.folder)),
            "parts": self.learner.parts() | self.learner.vec_env.parts(),
        }
        if self.result is not None:
            summary |= self.result.metrics() | self.beside_random_play()
        with self.spared("summary.json"):
            write_json(self.folder / "summary.json", summary)
        self.log.summary(summary)
        self.log.file(saved)
        if interrupted:
            words = f"Stopped on request; continue with {override('resume', self.folder)}"
            say(words, self.console)
        return summary


def train(run: RunConfig, log: Log, **options: Any) -> dict[str, Any]:
    """Train one agent; see `Trainer` for the options."""
    return Trainer(run, log, **options).train()


def crosses(before: int, now: int, every: int) -> bool:
    """Whether a multiple of `every` lies in (before, now]; never for 0."""
    return every > 0 and now // every > before // every
