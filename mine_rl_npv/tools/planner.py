"""What `scripts/solve.py` does: opens a mine, tells how it was read, solves it, writes files."""

from __future__ import annotations

import math
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from frugal_rl.doing import doing
from frugal_rl.errors import ConfigError
from frugal_rl.run.outcome import Outcome
from mine_rl_npv.data.block_model import BlockModel, read_csv
from mine_rl_npv.data.bundled import BUNDLED, open_instance
from mine_rl_npv.data.economics import Economics, MinePlan, model_instance
from mine_rl_npv.data.solutions import period_of
from mine_rl_npv.data.units import Units
from mine_rl_npv.data.vertical import ASSUMED
from mine_rl_npv.tools.constrained import solve_mine
from mine_rl_npv.tools.scenarios import assess, varied
from mine_rl_npv.tools.schedule_csv import ADDED, added_names, write_schedule_csv
from mine_rl_npv.tools.solution import ONLY_IF, Solution, write_solution
from mine_rl_npv.tools.solve_config import Method, SolveConfig

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Instance

EVERY_SECONDS = 5.0
CONDITION = "z grows upward"
UNSTATED = (
    f"{ONLY_IF}    {CONDITION}, which nothing states: were its numbers depths, walls, value and "
    "schedule above would be wrong; columns.z_direction=up or =down settles it"
)
"""Stands below every answer about a model whose direction is assumed."""


def answer(config: SolveConfig) -> tuple[str, Outcome]:
    """What `scripts/solve.py` prints and hands on: one schedule, or a leaderboard."""
    if not config.leaderboard:
        solution = run(config)
        return solution.report(), Outcome(solution.summary())
    from mine_rl_npv.tools.leaderboard import make_leaderboard  # imports matplotlib

    return make_leaderboard(config)


def run(config: SolveConfig) -> Solution:
    """Opens the instance, solves it, and writes what was asked for."""
    with warnings.catch_warnings(), doing("reading the mine"):
        warnings.showwarning = _warn
        instance, model = open_mine(config)
    if config.risk.realisations:
        varied(model, config)
    if model is not None:
        _tell(model, config)
    with doing(f"scheduling by {config.method.value}"):
        solution = solve_mine(instance, config, Progress())
    if model is not None and ASSUMED in model.vertical:
        notes = (*solution.notes, UNSTATED)
        solution = replace(solution, notes=notes, condition=CONDITION)
    if config.risk.realisations:
        with doing("trying the plan on other grades"):
            solution = _with_risk(solution, model, config)
    with doing("writing what was asked for"):
        _write(solution, model, config)
    return solution


def _with_risk(solution: Solution, model: BlockModel | None, config: SolveConfig) -> Solution:
    """The solution with its risk among the notes; writes the plan of the mean values."""
    risk = assess(solution, model, config)
    if config.risk.schedule:
        write_schedule_csv(risk.expected, model, config.risk.schedule)
    return replace(solution, notes=(*solution.notes, *risk.lines()))


def open_mine(config: SolveConfig) -> tuple[Instance, BlockModel | None]:
    """The instance, and the block model that it was made of where a file holds one.

    Raises:
        ConfigError: prices, slopes or columns were given for MineLib files.
    """
    path = config.model or (config.instance if config.instance.endswith(".csv") else "")
    if path:
        size, units = config.block_size or None, config.units
        model = read_csv(path, size, columns=config.columns, units=units)
        return model_instance(model, config.economics, config.plan, Path(path).stem), model
    files = config.instance not in BUNDLED
    ignored = [f"columns.{role}" for role, name in config.columns.items() if name]
    ignored += ["block_size"] if config.block_size else []
    ignored += ["units"] if config.units != Units() else []
    if files:
        ignored += ["economics"] if config.economics != Economics() else []
        ignored += ["plan"] if config.plan not in (MinePlan(), MinePlan(slope_levels=0)) else []
    if ignored:
        raise ConfigError(
            f"{', '.join(ignored)} would be ignored: instance={config.instance} brings its own "
            "money, periods and precedences. They belong to block models (model=FILE.csv)."
        )
    pit_only = config.method is Method.upit
    return open_instance(config.instance, config.economics, config.plan, pit_only), None


class Progress:
    """Prints a line on the error stream every few seconds of a search."""

    def __init__(self) -> None:
        self.last = time.perf_counter()

    def __call__(self, seconds: float, decodes: int, best: float) -> None:
        """Seconds of the search (nan: stopped by Ctrl-C), decodes, best value over the bound."""
        if math.isnan(seconds):
            print(f"stopped by Ctrl-C after {decodes} decodes; keeping the best", file=sys.stderr)
        elif time.perf_counter() - self.last > EVERY_SECONDS:
            self.last = time.perf_counter()
            gap = 100 * (1 - best)
            print(f"{seconds:8.1f} s {decodes:8d} decodes  gap {gap:.4f} %", file=sys.stderr)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    print(f"note: {message}", file=sys.stderr)


def _tell(model: BlockModel, config: SolveConfig) -> None:
    """How the file was understood."""
    print(f"columns    {model.reading}")
    print(f"vertical   {model.vertical}")
    names = added_names(model.table.names if model.table is not None else ())
    if (config.schedule or config.risk.schedule) and names != ADDED:
        print(f"schedule   its columns are {', '.join(names)}: the model has one so called already")
    if config.plan.slope_sectors:
        print("azimuths   clockwise from north: column x is taken as east, column y as north")
    if model.edge is not None:
        small, large = model.edge.min(axis=0), model.edge.max(axis=0)
        words = " x ".join(f"{a:g} to {b:g}" for a, b in zip(small, large, strict=True))
        print(f"blocks     {len(model.cell)} of {words} m")
        return
    size = " x ".join(f"{edge:g}" for edge in model.block_size)
    turned = f", axes turned to azimuth {model.bearing:g}" if model.bearing else ""
    grid = " x ".join(map(str, model.shape))
    weight = model.columns["ton"].sum() / (len(model.cell) * math.prod(model.block_size))
    print(
        f"blocks     {len(model.cell)} of {size} m in {grid} cells{turned}; "
        f"a cubic metre weighs {weight:.3g} t"
    )


def _write(solution: Solution, model: BlockModel | None, config: SolveConfig) -> None:
    if config.output:
        write_solution(solution, config.output)
    if config.schedule:
        write_schedule_csv(solution, model, config.schedule)
    if solution.shares is None:
        return
    if config.pictures:
        from mine_rl_npv.tools.views import draw_schedule  # imports matplotlib

        draw_schedule(solution.instance, solution.shares, config.pictures)
    if config.report:
        from mine_rl_npv.tools.page import write_page  # imports matplotlib

        write_page(solution, model, config, config.report)
    if config.solid:
        from mine_rl_npv.tools.solid import save_solid  # imports PyVista

        save_solid(solution.instance, period_of(solution.shares), config.solid)
