"""What a person sees while a run goes on: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from frugal_rl.doing import now
from frugal_rl.report.speech import pause_after
from frugal_rl.report.terminal import open_console, say

WINDOW = 5
"""Rollouts over which return and success are averaged: the first end short episodes only."""


class MovingBar(Progress):
    """A bar that asks how far the run is whenever it is drawn, and says what goes on below it."""

    words = ""
    """Speed and statistics."""

    def __init__(self, console: Console, at: Callable[[], int]) -> None:
        super().__init__(
            TextColumn("{task.percentage:>3.0f}%"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            console=console,
            disable=not console.is_terminal,
        )
        self.at = at

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bar, then two lines that are cut rather than wrapped."""
        for task in self.tasks:
            task.completed = min(self.at(), task.total or 0)
        yield self.make_tasks_table(self.tasks)
        work = now()
        for line in (self.words, work.timed() if work else ""):
            if line:
                yield Text(line, no_wrap=True, overflow="ellipsis")


class ProgressBar:
    """Steps done, steps per second, time remaining, return and success of the last rollouts.

    Args:
        total_steps: of the whole run.
        done_steps: before this process began.
        console: where it is drawn; None means standard output.
        at: steps of this moment, also inside a rollout; None moves the bar with each rollout.
    """

    def __init__(
        self,
        total_steps: int,
        done_steps: int = 0,
        console: Console | None = None,
        at: Callable[[], int] | None = None,
    ) -> None:
        self.console = console or open_console()
        self.total_steps = total_steps
        self.first_steps = self.done_steps = done_steps
        self.began = time.perf_counter()
        self.last_line = 0.0
        self.recent = {n: deque[float](maxlen=WINDOW) for n in ("return", "success")}
        self.bar = MovingBar(self.console, at or (lambda: self.done_steps))
        self.bar.add_task("train", total=total_steps, completed=done_steps)

    def __enter__(self) -> ProgressBar:
        self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.bar.stop()

    def rate(self, steps: int) -> float:
        """Environment steps per second since the bar began, evaluations included."""
        return (steps - self.first_steps) / max(time.perf_counter() - self.began, 1e-9)

    def show(self, steps: int, metrics: Mapping[str, float]) -> None:
        """Bring the bar, or the next line, up to date."""
        for name in ("return", "success"):
            if f"episode/{name}" in metrics:
                self.recent[name].append(metrics[f"episode/{name}"])
        self.done_steps = steps
        means = " ".join(map(self._mean, self.recent))
        self.bar.words = f"{self.rate(steps):,.0f} steps/s {means} over {WINDOW} rollouts"
        self._line(f"{steps:>12,} / {self.total_steps:,} steps  {self.bar.words}")

    def _mean(self, name: str) -> str:
        """The mean over the last rollouts; a dash until the window has filled."""
        values = self.recent[name]
        full = len(values) == WINDOW
        return f"{name} {sum(values) / WINDOW:.3g}" if full else f"{name} -"

    def _line(self, text: str) -> None:
        """Where there is no bar, a line now and then: often at first, seldom later."""
        now_s = time.perf_counter()
        if not self.console.is_terminal and now_s - self.last_line > pause_after(
            now_s - self.began
        ):
            self.last_line = now_s
            say(text, self.console)
