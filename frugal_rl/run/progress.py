"""What a person sees while a run goes on: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from frugal_rl.report.terminal import open_console, say

SECONDS_BETWEEN_LINES = 10.0


class ProgressBar:
    """Steps done, steps per second, time remaining, return and success of recent episodes."""

    def __init__(
        self, total_steps: int, done_steps: int = 0, console: Console | None = None
    ) -> None:
        self.console = console or open_console()
        self.total_steps = total_steps
        self.first_steps = done_steps
        self.began = time.perf_counter()
        self.last_line = 0.0
        self.recent: dict[str, float] = {}
        self.bar = Progress(
            TextColumn("{task.percentage:>3.0f}%"), BarColumn(), MofNCompleteColumn(),
            TextColumn("{task.fields[words]}"), TimeRemainingColumn(),
            console=self.console, disable=not self.console.is_terminal,
        )  # fmt: skip
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
                self.recent[name] = metrics[f"episode/{name}"]
        words = " ".join(
            [f"{self.rate(steps):,.0f} steps/s"] + [f"{n} {v:.3g}" for n, v in self.recent.items()]
        )
        self.bar.update(self.task, completed=steps, words=words)
        now = time.perf_counter()
        if not self.console.is_terminal and now - self.last_line > SECONDS_BETWEEN_LINES:
            self.last_line = now
            say(f"{steps:>12,} / {self.total_steps:,} steps  {words}", self.console)
