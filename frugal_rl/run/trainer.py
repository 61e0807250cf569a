"""The loop: learn, evaluate, save, log, and stop in good order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch
import yaml  # type: ignore[import-untyped]
from rich.console import Console
from stable_baselines3.common.utils import set_random_seed

from frugal_rl.errors import MemoryBudgetError
from frugal_rl.memory.allocator import give_back
from frugal_rl.memory.part import Phase
from frugal_rl.memory.profile import Allocator
from frugal_rl.report.files import PICTURES, write_json, write_text
from frugal_rl.report.terminal import open_console, say
from frugal_rl.run.checkpoints import BEST, save_checkpoint
from frugal_rl.run.config import RunConfig
from frugal_rl.run.evaluate import (
    PolicyPlayer,
    RandomPlayer,
    Result,
    Tell,
    draw,
    evaluate,
    evaluation_env,
)
from frugal_rl.run.keeping import save_newest
from frugal_rl.run.progress import ProgressBar
from frugal_rl.run.resuming import resume, snapshot
from frugal_rl.run.tools import tool
from frugal_rl.vec_env.interface import VectorEnv


class Log(Protocol):
    """Where numbers go; `frugal_rl.report` writes `metrics.jsonl` and W&B."""

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers at one step of the run."""

    def summary(self, values: Mapping[str, Any]) -> None:
        """Numbers of the whole run."""

    def file(self, path: Path) -> None:
        """A file that belongs to the run."""


PhaseContext = Callable[[Phase], AbstractContextManager[Any]]


def no_meter(phase: Phase) -> AbstractContextManager[Any]:
    """Measures nothing."""
    return nullcontext()


@dataclass
class Trainer:
    """One run from its first step to its last.

    `phase` tells the meter what goes on; `watch` returns advice once memory is nearly used up, and
    an empty string before: then the run saves a checkpoint and stops.
    """

    run: RunConfig
    log: Log
    phase: PhaseContext = no_meter
    watch: Callable[[], str] = str
    console: Console = field(default_factory=open_console)

    def train(self) -> dict[str, Any]:
        """Learn `algo.total_steps` environment steps; returns the run's summary."""
        run = self.run
        self.folder = Path(run.run_dir)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self.folder / "cfg.resolved.yaml", yaml.safe_dump(dict(run.resolved)))
        set_random_seed(run.seed, using_cuda=torch.cuda.is_available())
        self.eval_env: VectorEnv | None = None
        self.result: Result | None = None
        self.tell: Tell | None = None
        self.best = -float("inf")
        vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
        try:
            self.learner = run.algo.build(run, vec_env)
            if run.resume:
                self.resume(run.resume)
            with asked_to_stop() as stop:
                return self.loop(stop)
        finally:
            vec_env.close()
            if self.eval_env is not None:
                self.eval_env.close()

    def loop(self, stop: threading.Event) -> dict[str, Any]:
        """Iterate until all steps are done, somebody asks to stop, or memory runs out."""
        total, first = self.run.algo.total_steps, self.learner.num_steps
        with ProgressBar(total, first, self.console) as bar:
            self.tell = bar.evaluating
            while self.learner.num_steps < total and not stop.is_set():
                before = self.learner.num_steps
                metrics = self.learner.iterate(self.phase)
                if self.run.memory.allocator is Allocator.pinned:
                    give_back()  # else what the update freed would lie under the next phases
                now = self.learner.num_steps
                metrics["time/steps_per_second"] = bar.rate(now)
                self.log.metrics(now, metrics)
                bar.show(now, metrics)
                if crosses(before, now, self.run.evaluation.every_steps) and now < total:
                    self.try_out()
                if crosses(before, now, self.run.checkpoint_every_steps):
                    self.save()
                self.heed(self.watch())
            if not stop.is_set() and self.run.evaluation.episodes:
                self.try_out()
            return self.finish(bar.rate(self.learner.num_steps), stop.is_set())

    def try_out(self) -> None:
        """Evaluate on the fixed seeds; keep the best policy so far."""
        with self.phase(Phase.evaluation):
            if self.eval_env is None:
                self.eval_env = evaluation_env(self.run)
            player = PolicyPlayer(
                self.learner.policy, self.run.evaluation.deterministic, self.eval_env.tables
            )
            self.result = evaluate(self.run, self.eval_env, player, self.tell)
        self.log.metrics(self.learner.num_steps, self.result.metrics())
        film = tool(self.run.env, "film")
        if self.run.evaluation.film and film is not None:
            path = self.folder / "films" / f"{self.learner.num_steps}.gif"
            self.log.file(film(self.run, self.learner.policy, path))
        means = self.result.score.means
        worth = means["success"] * 1e6 + means["return"]  # success decides, the return breaks ties
        if worth > self.best and self.run.evaluation.every_steps:
            self.best = worth
            self.save(best=True)

    def beside_random_play(self) -> dict[str, float]:
        """What random play reaches in the same episodes: the baseline of every result."""
        env = self.eval_env
        if env is None:
            return {}
        with self.phase(Phase.evaluation):
            seed = self.run.evaluation.seed
            chance = RandomPlayer(env.encoding, env.tables, env.action_space, seed)
            return evaluate(self.run, env, chance, self.tell).metrics("random")

    def draw(self) -> None:
        """Pictures of what the policy does, into the run folder and the log."""
        with self.phase(Phase.evaluation):
            if self.eval_env is None:
                self.eval_env = evaluation_env(self.run)
            player = PolicyPlayer(self.learner.policy, True, self.eval_env.tables)
            drawn = draw(self.run, self.eval_env, player, self.folder / PICTURES)
        for path in drawn:
            self.log.file(path)
        if not drawn:
            say(f"visualization=true: env={self.run.env.name} has no pictures.", self.console)

    def save(self, best: bool = False) -> Path:
        """Write a checkpoint with everything that an exact resume needs."""
        with self.phase(Phase.checkpoint):
            content = snapshot(self.run, self.learner, self.best)
            folder = self.folder / "checkpoints"
            if best:
                return save_checkpoint(folder / BEST, content)
            return save_newest(folder, content, self.run.keep_checkpoints)

    def resume(self, path: str) -> None:
        """Continue exactly where the checkpoint of an earlier run ended."""
        resumed = resume(self.run, self.learner, path)
        self.best = resumed.best
        say(resumed.words, self.console)

    def heed(self, advice: str) -> None:
        """Stop with a checkpoint before the kernel kills the run."""
        if advice:
            saved = self.save()
            raise MemoryBudgetError(f"{advice} The run was saved: continue with resume={saved}.")

    def finish(self, rate: float, interrupted: bool) -> dict[str, Any]:
        """Save, sum up, and say where the results are."""
        saved = self.save()
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
        write_json(self.folder / "summary.json", summary)
        self.log.summary(summary)
        self.log.file(saved)
        if interrupted:
            say(f"Stopped on request; continue with resume={self.folder}", self.console)
        return summary


def train(run: RunConfig, log: Log, **options: Any) -> dict[str, Any]:
    """Train one agent; see `Trainer` for the options."""
    return Trainer(run, log, **options).train()


def crosses(before: int, now: int, every: int) -> bool:
    """Whether a multiple of `every` lies in (before, now]; never for 0."""
    return every > 0 and now // every > before // every


@contextmanager
def asked_to_stop() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set; a second signal ends the run at once."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event  # only the main thread may listen to signals
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
