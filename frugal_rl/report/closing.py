"""What a run says at its end: results beside random play, memory, time, and the next commands."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from frugal_rl.invocation import command, program, value
from frugal_rl.memory.advice import command_of
from frugal_rl.memory.part import human
from frugal_rl.report.files import TENSORBOARD
from frugal_rl.report.terminal import say, show
from frugal_rl.run.preflight import has_display
from frugal_rl.run.tools import offers

if TYPE_CHECKING:
    from frugal_rl.memory.plan import Plan
    from frugal_rl.run.config import RunConfig

STATISTICS = ("success", "success_low", "success_high", "return", "length", "episodes")


def show_closing(run: RunConfig, plan: Plan, summary: Mapping[str, Any]) -> None:
    """Print the closing block of a run; every command is one line that a shell accepts."""
    if "eval/episodes" in summary:
        show(scores(summary))
    for line in (*outcome(run, plan, summary), *next_commands(run, summary)):
        say(line)


def scores(summary: Mapping[str, Any]) -> Table:
    """Player | success with its 95 % interval | return | length, as evaluated."""
    table = Table()
    for name in ("player", "success", "95 %", "return", "length", "episodes"):
        table.add_column(name, justify="left" if name == "player" else "right")
    for player, prefix in (("policy", "eval"), ("random play", "random")):
        if f"{prefix}/episodes" in summary:
            number = {name: float(summary[f"{prefix}/{name}"]) for name in STATISTICS}
            table.add_row(
                player,
                f"{number['success']:.1%}",
                f"{number['success_low']:.1%} to {number['success_high']:.1%}",
                f"{number['return']:.3g}",
                f"{number['length']:.1f}",
                f"{number['episodes']:.0f}",
            )
    return table


def outcome(run: RunConfig, plan: Plan, summary: Mapping[str, Any]) -> Iterator[str]:
    """How long it took and what it held, predicted beside measured."""
    steps, rate = int(summary["num_steps"]), float(summary["steps_per_second"])
    took = f" in {duration(float(summary['seconds']))}" if "seconds" in summary else ""
    yield f"{steps:,} environment steps{took}, {rate:,.0f} steps/s"
    measured = summary.get("memory/peak_bytes")
    if measured:
        off = plan.ram_bytes / measured - 1
        yield f"peak memory: {human(plan.ram_bytes)} planned, {human(measured)} held ({off:+.1%})"
    yield f"results: {run.run_dir}"


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def next_commands(run: RunConfig, summary: Mapping[str, Any]) -> Iterator[str]:
    """What to type next: play, report, resume, and W&B's own command for an offline run.

    A run that is complete goes on with twice its steps. Where no window can be opened, the policy
    is filmed.
    """
    folder = str(run.run_dir)
    if offers(run.env, "play"):
        seen = () if has_display(os.environ) else ("video=film.mp4",)
        yield "play:    " + command("play", *_groups(run), f"checkpoint={value(folder)}", *seen)
    yield "report:  " + command("report", f"runs=[{value(folder)}]")
    further = () if summary.get("interrupted") else (f"algo.total_steps={2 * _steps(run)}",)
    yield "resume:  " + command_of(run, (f"resume={value(folder)}", *further))
    if run.tracking.tensorboard:
        curves = str(Path(folder, TENSORBOARD))
        yield "curves:  " + program("tensorboard", "--logdir", curves)
    offline = sorted(Path(folder, "wandb").glob("offline-run-*"))
    if offline:
        yield "W&B:     " + program("wandb", "sync", str(offline[-1]))


def _steps(run: RunConfig) -> int:
    return int(run.algo.total_steps)


def _groups(run: RunConfig) -> list[str]:
    """The environment and where it comes from: `scripts/play.py` has another default."""
    beside = ["--config-dir", run.config_dir] if run.config_dir else []
    choice = run.resolved.get("choices", {}).get("env")
    plugins = [word for word in run.overrides if word.startswith("plugins=")]
    return [*beside, *([f"env={choice}"] if choice else []), *plugins]
