"""Steps per second and per processor second of whole commands, between lines of their metrics."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

HERE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Rate:
    """What a run did once it had begun."""

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

    def __post_init__(self) -> None:
        self.errors = (self.folder.parent / f"{self.folder.name}.txt").open("w+")
        self.running = subprocess.Popen(
            [sys.executable, "scripts/train.py", *self.words, f"hydra.run.dir={self.folder}"],
            cwd=self.tree, env={**os.environ, "PYTHONPATH": str(self.tree)},
            stdout=subprocess.DEVNULL, stderr=self.errors,
        )  # fmt: skip
        self.process = psutil.Process(self.running.pid)

    def look(self) -> bool:
        """Note a new line of metrics; True while more are to come."""
        ended = self.running.poll() is not None
        line = _last_line(self.folder / "metrics.jsonl")
        if line and not ended and (not self.seen or line["step"] > self.seen[-1][0]):
            self.seen.append((int(line["step"]), line["seconds"], _processor_seconds(self.process)))
        return not ended and not (self.seen and self.seen[-1][0] >= self.last_step)

    def rate(self) -> Rate:
        """Wait for the end, then the rates; exits with what the run said where it failed."""
        if self.running.wait():
            self.errors.seek(0)
            sys.exit(f"{self.words}: {self.errors.read()[-2000:]}")
        first, began, used = next(row for row in self.seen if row[0] >= self.first_step)
        last, ended, spent = self.seen[-1]
        return Rate((last - first) / (ended - began), (last - first) / (spent - used))


def watch(runs: list[Watched]) -> list[Rate]:
    """The rates of runs that are side by side."""
    while sum(run.look() for run in runs):  # each is looked at
        time.sleep(0.02)
    return [run.rate() for run in runs]


def _last_line(file: Path) -> dict[str, float]:
    if not file.exists():
        return {}
    whole = file.read_text().rpartition("\n")[0]
    return dict(json.loads(whole.splitlines()[-1])) if whole else {}


def _processor_seconds(process: psutil.Process) -> float:
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        try:
            used = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += used.user + used.system
    return total
