"""Whole runs of a few words that say nothing: for tests of what becomes of their files."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from frugal_rl.memory.plan import Plan, draw_up
from frugal_rl.report.log import open_log
from frugal_rl.run.compose import compose_run
from frugal_rl.run.trainer import train

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig


@cache
def planned(words: tuple[str, ...]) -> tuple[RunConfig, Plan]:
    """The run that these words describe, and its plan; made once."""
    run = compose_run(list(words), check=False)
    return run, draw_up(run)


def quiet_run(words: tuple[str, ...], folder: Path, resume: str | None = None) -> dict[str, Any]:
    """Train to the end in a folder; the run's summary."""
    run, plan = planned(words)
    run = replace(run, run_dir=str(folder), resume=resume)
    with open_log(run, plan) as log:
        kept = {"hold": log.hold, "go_on_from": log.go_on_from}
        return train(run, log, console=Console(file=io.StringIO()), **kept)
