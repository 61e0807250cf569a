"""Where a run's numbers go: `metrics.jsonl` always, W&B and TensorBoard where they are asked for.

A sink that fails (a full disk, an unreachable server) is reported once and the run goes on.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from frugal_rl.doing import doing
from frugal_rl.errors import FolderInUseError
from frugal_rl.memory.machine import machine_words
from frugal_rl.report.files import (
    METRICS,
    PLAN,
    RESOLVED,
    RUN,
    SUMMARY,
    metrics_of,
    plain,
    write_json,
    write_text,
)
from frugal_rl.report.tensorboard_sink import TensorBoard
from frugal_rl.report.wandb_sink import open_wandb
from frugal_rl.run.compose import as_yaml
from frugal_rl.run.disk import AppendedLines, told
from frugal_rl.run.lock import FolderLock, locked

if TYPE_CHECKING:
    from frugal_rl.memory.meter import MemoryMeter
    from frugal_rl.memory.plan import Plan
    from frugal_rl.run.config import RunConfig


class Sink(Protocol):
    """One place that numbers go to."""

    name: str

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers at one step of the run."""

    def summary(self, values: Mapping[str, Any]) -> None:
        """Numbers of the whole run."""

    def file(self, path: Path) -> None:
        """A file that belongs to the run."""

    def close(self) -> None:
        """Write what is left."""


class MetricsFile:
    """`metrics.jsonl`: one line per call, appended whole or not at all."""

    name = METRICS

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.began = time.monotonic()
        self.lines = AppendedLines(folder / METRICS)
        if self.lines.torn_bytes:
            warnings.warn(f"{METRICS} ended in a torn line, which was cut off.", stacklevel=2)

    def go_on_from(self, step: int) -> None:
        """Forget the lines of steps that are done again."""

        def before(line: bytes) -> bool:
            values = metrics_of(line)
            return values is not None and values["step"] <= step

        self.lines.drop_behind(before)

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Append one line."""
        line = {"step": step, "seconds": round(time.monotonic() - self.began, 3), **plain(values)}
        self.lines.append(json.dumps(line, allow_nan=False, default=str))

    def summary(self, values: Mapping[str, Any]) -> None:
        """Keep the run's last numbers beside its lines."""
        write_json(self.folder / SUMMARY, values)

    def file(self, path: Path) -> None:
        """Files already lie in the run folder."""

    def close(self) -> None:
        """Close the file."""
        self.lines.close()


class Log:
    """All sinks of a run; adds what the meter measures to every line."""

    def __init__(
        self,
        sinks: list[Sink],
        plan: Plan | None = None,
        meter: MemoryMeter | None = None,
        lock: FolderLock | None = None,
        head: Callable[[], None] = lambda: None,
    ) -> None:
        self.sinks = sinks
        self.lock, self.head = lock, head
        self.plan = plan
        self.meter = meter
        self._failed: set[str] = set()
        self._last: dict[str, Any] = {}

    def hold(self) -> bool:
        """Keep the run's folder; whether it was gone, and had to be made again.

        Raises:
            FolderInUseError: another run has taken it meanwhile; nothing more is written there.
            DiskError: it cannot be made again.
        """
        if self.lock is None:
            return False
        self.lock.beat()
        if not self.lock.lost():
            return False
        try:
            self.lock.take_again()
        except FolderInUseError:
            self._each(lambda sink: sink.close())
            self.sinks = []
            raise
        with told(self.lock.path.parent):
            self.head()
        return True

    def go_on_from(self, step: int) -> None:
        """The run goes on from this step, in a folder where it may have been further once."""

        def forget(sink: Sink) -> None:
            if isinstance(sink, MetricsFile):  # trackers keep what they were given
                sink.go_on_from(step)

        self._each(forget)

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers at one step of the run."""
        measured = self.meter.metrics() if self.meter else {}
        line = {**values, **measured}
        self._each(lambda sink: sink.metrics(step, line))

    def summary(self, values: Mapping[str, Any]) -> None:
        """Numbers of the whole run, beside predicted and measured memory."""
        self._last |= dict(values)
        if self.meter and self.plan:
            self._last |= self.meter.summary(self.plan)
        self._each(lambda sink: sink.summary(self._last))

    def file(self, path: Path) -> None:
        """A file that belongs to the run."""
        self._each(lambda sink: sink.file(path))

    def close(self) -> None:
        """Sum up what was not, and write what is left."""
        if self.meter and "memory/peak_bytes" not in self._last:
            self.summary({})
        self._each(lambda sink: sink.close())

    def _each(self, call: Callable[[Sink], None]) -> None:
        for sink in self.sinks:
            try:
                call(sink)
            except Exception as error:  # a tracker must never end a training run
                if sink.name not in self._failed:
                    self._failed.add(sink.name)
                    warnings.warn(f"{sink.name} is not written: {error}", stacklevel=3)


@contextmanager
def open_log(run: RunConfig, plan: Plan, meter: MemoryMeter | None = None) -> Iterator[Log]:
    """The log of a run; writes its configuration and plan into the run folder first.

    Args:
        run: the run; its folder is created.
        plan: what was predicted; goes to W&B as `plan/*`.
        meter: what is measured; goes beside every line as `memory/*`.

    Raises:
        FolderInUseError: another run writes into the folder.
        DiskError: the folder cannot be written to.
    """
    folder = Path(run.run_dir)
    with locked(folder) as lock:
        with told(folder), doing("opening the log"):
            sinks = _sinks(run, plan, folder)
        log = Log(sinks, plan, meter, lock, lambda: _write_head(run, plan, folder))
        try:
            yield log
        finally:
            with doing("closing the log"):
                log.close()


def _sinks(run: RunConfig, plan: Plan, folder: Path) -> list[Sink]:
    """The run folder's first files, and the places that numbers go to."""
    sinks: list[Sink] = [MetricsFile(folder)]
    _write_head(run, plan, folder)
    if run.tracking.wandb != "disabled":
        sinks += open_wandb(run, plan)
    if run.tracking.tensorboard:
        sinks.append(TensorBoard(folder))
    return sinks


def _write_head(run: RunConfig, plan: Plan, folder: Path) -> None:
    """What the run was asked for, and what was planned."""
    machine = machine_words(run.hardware.device)
    asked = {"config": run.resolved, "overrides": run.overrides, "machine": machine}
    write_json(folder / RUN, asked)
    write_text(folder / RESOLVED, as_yaml(plain(run.resolved)))
    write_json(folder / PLAN, plan.as_dict())
