"""Steps per second and per processor second of whole commands that take turns on one machine.

A machine that slows down for a minute slows down all of them: a turn lasts from one line of
metrics to the next, about a second, and whoever has no turn is stopped (SIGSTOP).
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import psutil

HERE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Rate:
    """What runs did together in a stretch of their turns."""

    per_second: float
    per_processor_second: float


@dataclass
class Watched:
    """A training run, looked at until its metrics name its last step.

    What starts, compiles and evaluates lies before the first line that counts (`first_step`) or
    behind the last one, and is in no figure. Processor time is that of the whole tree of processes.
    """

    folder: Path
    words: list[str]
    first_step: int
    last_step: int
    tree: Path = HERE
    seen: list[tuple[int, float, float]] = field(default_factory=list)
    """Step, seconds of own turns and processor seconds, one row a line of metrics."""
    awake: float = 0.0

    def begin(self) -> None:
        """Start the command; its first turn has begun."""
        self.errors = (self.folder.parent / f"{self.folder.name}.txt").open("w+")
        self.running = subprocess.Popen(
            [sys.executable, "scripts/train.py", *self.words, f"hydra.run.dir={self.folder}"],
            cwd=self.tree, env={**os.environ, "PYTHONPATH": str(self.tree)},
            stdout=subprocess.DEVNULL, stderr=self.errors,
        )  # fmt: skip
        self.process = psutil.Process(self.running.pid)
        self.woken = time.monotonic()

    def look(self) -> int:
        """Note a new line of metrics; the step of the last one."""
        ended = self.running.poll()
        line = _last_line(self.folder / "metrics.jsonl")
        if line and line["step"] > self.step:
            awake = self.awake + time.monotonic() - self.woken
            self.seen.append((int(line["step"]), awake, _processor_seconds(self.process)))
        if ended is not None and self.step < self.last_step:
            self.errors.seek(0)
            sys.exit(f"{self.words} ended with {ended}: {self.errors.read()[-2000:]}")
        return self.step

    @property
    def step(self) -> int:
        """The last step that was seen."""
        return self.seen[-1][0] if self.seen else 0

    def sleep(self) -> None:
        """End a turn."""
        _signal(self.process, signal.SIGSTOP)
        self.awake += time.monotonic() - self.woken

    def wake(self) -> None:
        """Begin a turn."""
        self.woken = time.monotonic()
        _signal(self.process, signal.SIGCONT)

    def end(self) -> None:
        """Let nothing of it go on, a stopped process least of all."""
        if hasattr(self, "running"):
            _signal(self.process, signal.SIGKILL)
            self.running.wait()

    def rates(self, stretches: int) -> list[Rate]:
        """Between the first line that counts and the last one, in equal stretches."""
        rows = [row for row in self.seen if row[0] >= self.first_step]
        ends = [rows[round(k * (len(rows) - 1) / stretches)] for k in range(stretches + 1)]
        return [
            Rate((b[0] - a[0]) / (b[1] - a[1]), (b[0] - a[0]) / (b[2] - a[2]))
            for a, b in pairwise(ends)
        ]


def in_turns(
    groups: list[list[Watched]], stretches: int, told: Callable[[str], None] = print
) -> list[list[Rate]]:
    """Each group's rates, one per stretch; the runs of a group are side by side in its turns."""
    try:
        _take_turns(groups, told)
    finally:
        for run in (run for group in groups for run in group):
            run.end()
    return [_together(group, stretches) for group in groups]


def _take_turns(groups: list[list[Watched]], told: Callable[[str], None]) -> None:
    for n, group in enumerate(groups):
        told(f"starting {n + 1} of {len(groups)}")
        for run in group:
            run.begin()
        _turn(group, lambda run: run.first_step)
    left = groups
    while left := [g for g in left if any(run.step < run.last_step for run in g)]:
        for group in left:
            for run in group:
                run.wake()
            _turn(group, lambda run: min(run.step + 1, run.last_step))
        told(f"{min(run.step for run in left[-1]):,} steps of {left[-1][0].last_step:,}")
    for group in groups:  # whole peaks are written at the end
        for run in group:
            run.wake()
        for run in group:
            run.running.wait()


def _turn(group: list[Watched], until: Callable[[Watched], int]) -> None:
    goals = [(run, until(run)) for run in group]
    while sum(run.look() < goal for run, goal in goals):  # each is looked at
        time.sleep(0.005)
    for run in group:
        run.sleep()


def _together(group: list[Watched], stretches: int) -> list[Rate]:
    return [
        Rate(
            sum(rate.per_second for rate in rates),
            statistics.harmonic_mean([rate.per_processor_second for rate in rates]),
        )
        for rates in zip(*(run.rates(stretches) for run in group), strict=True)
    ]


def _last_line(file: Path) -> dict[str, float]:
    if not file.exists():
        return {}
    whole = file.read_text().rpartition("\n")[0]
    return dict(json.loads(whole.splitlines()[-1])) if whole else {}


def _tree(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _signal(process: psutil.Process, what: int) -> None:
    for one in _tree(process):
        try:
            one.send_signal(what)
        except psutil.NoSuchProcess:
            continue


def _processor_seconds(process: psutil.Process) -> float:
    total = 0.0
    for one in _tree(process):
        try:
            used = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += used.user + used.system
    return total
