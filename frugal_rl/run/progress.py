"""What a person sees while a run goes on: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from frugal_rl.report.terminal import open_console, say

LEAST_SECONDS, MOST_SECONDS = 2.5, 10.0
"""Between two lines where there is no bar."""
WINDOW = 5
"""Rollouts over which return and success are averaged: the first end short episodes only."""


class ProgressBar:
    """Steps done, steps per second, time remaining, return and success of the last rollouts."""

    def __init__(
        self, total_steps: int, done_steps: int = 0, console: Console | None = None
    ) -> None:
        self.console = console or open_console()
        self.total_steps = total_steps
        self.first_steps = done_steps
        self.began = time.perf_counter()
        self.last_line = 0.0
        self.recent = {n: deque[float](maxlen=WINDOW) for n in ("return", "success")}
        self.bar = Progress(
            TextColumn("{task.percentage:>3.0f}%"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[words]}"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task("train", total=total_steps, completed=done_steps, words="")

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
        words = " ".join([f"{self.rate(steps):,.0f} steps/s", *map(self._mean, self.recent)])
        self.bar.update(self.task, completed=steps, words=words)
        self._line(f"{steps:>12,} / {self.total_steps:,} steps  {words}")

    def evaluating(self, played: int, episodes: int) -> None:
        """Say how far an evaluation is."""
        words = f"evaluating, {played} of {episodes} episodes"
        self.bar.update(self.task, words=words)
        self._line(words)

    def _mean(self, name: str) -> str:
        """The mean over the last rollouts; a dash until the window has filled."""
        values = self.recent[name]
        full = len(values) == WINDOW
        return f"{name} {sum(values) / WINDOW:.3g}" if full else f"{name} -"

    def _line(self, text: str) -> None:
        """Where there is no bar, a line now and then: often at first, seldom later."""
        now = time.perf_counter()
        pause = min(MOST_SECONDS, max(LEAST_SECONDS, (now - self.began) / 30))
        if not self.console.is_terminal and now - self.last_line > pause:
            self.last_line = now
            say(text, self.console)
