"""What the scripts do, as functions: train a planned run, try out a saved one."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from torch.distributed.elastic.multiprocessing.errors import get_error_handler

from frugal_rl.errors import FrugalError
from frugal_rl.learn.on_policy import choose_device
from frugal_rl.learn.ranks import Ranks, joined
from frugal_rl.learn.update import ALONE
from frugal_rl.memory.auto import prepare
from frugal_rl.memory.base import keep_libraries
from frugal_rl.memory.checks import check_run
from frugal_rl.memory.finding import Severity
from frugal_rl.memory.meter import MemoryMeter
from frugal_rl.memory.process import settle_process
from frugal_rl.memory.refusal import stop_on_errors, told_when_full
from frugal_rl.memory.watchdog import Watchdog
from frugal_rl.report.closing import show_closing
from frugal_rl.report.files import PICTURES, write_json
from frugal_rl.report.log import Log, open_log
from frugal_rl.report.plan_table import parts_table, show_checks, verdict_line
from frugal_rl.report.terminal import say, show
from frugal_rl.run.alike import check_alike
from frugal_rl.run.compiling import told_compiling
from frugal_rl.run.disk import told
from frugal_rl.run.evaluate import RandomPlayer, Result, draw, evaluate, policy_player
from frugal_rl.run.guard import watched_trial
from frugal_rl.run.keeping import continuing
from frugal_rl.run.saved import open_saved
from frugal_rl.run.shares import share_of
from frugal_rl.run.signals import stop_with
from frugal_rl.run.tools import OPPONENTS, needed, own_findings
from frugal_rl.run.trainer import train

if TYPE_CHECKING:
    from frugal_rl.memory.plan import Plan
    from frugal_rl.memory.probe import ProbeUpdate
    from frugal_rl.run.config import RunConfig


def train_planned(run: RunConfig, plan: Plan) -> dict[str, Any]:
    """Print the plan and what the checks found, train under meter and watchdog; the summary."""
    at = str(Path(run.run_dir).absolute())  # an environment may change into another folder
    return _lead(continuing(replace(run, run_dir=at)), plan, ALONE)


def train_rank(run: RunConfig, probe: ProbeUpdate) -> None:
    """Be one of the processes that train a run together.

    The first one plans, and does all that is said and written. What goes wrong is handed to the
    launcher, which says it once.
    """
    stop_with(os.getppid())  # else a launcher that was killed would leave it training
    try:
        gpu = choose_device(run.hardware.device).type == "cuda"
        with joined(run.launch.timeout_s, gpu) as ranks:
            check_alike(run, ranks)
            run = continuing(replace(run, run_dir=ranks.from_first(run.run_dir)))
            with ranks.led():  # measuring an installation takes its time
                own = prepare(share_of(run), probe)[1] if ranks.first else None
            plan = ranks.from_first(own)
            assert plan is not None
            if ranks.first:
                _lead(run, plan, ranks)
            else:
                _follow(run, plan, ranks)
    except Exception as error:
        get_error_handler().record_exception(with_notes(error))
        if isinstance(error, FrugalError):
            sys.exit(1)  # all is said
        raise


def with_notes(error: Exception) -> Exception:
    """An error of the same name that says its notes, too: an environment's step stands in them."""
    said = str(error)
    if not isinstance(error, FrugalError) and not said.endswith((".", "!", "?")):
        said += "."  # ours are whole sentences, or end with a command
    kind = type(type(error).__name__, (Exception,), {})  # its own may ask for other arguments
    told: Exception = kind(" ".join([said, *getattr(error, "__notes__", [])]))
    return told


def _follow(run: RunConfig, plan: Plan, ranks: Ranks) -> None:
    """Train with the first process, silently."""
    settle_process(run.memory)
    with MemoryMeter() as meter:
        watch = Watchdog.of(share_of(run), meter, plan)
        silent = Console(quiet=True)
        train(run, Log([]), phase=meter.phase, watch=watch, console=silent, ranks=ranks)
        ranks.at_first(meter.peak_bytes)


def _lead(run: RunConfig, plan: Plan, ranks: Ranks) -> dict[str, Any]:
    show(parts_table(plan))
    show(verdict_line(plan))
    findings = check_run(run, plan, own_findings(run))
    stop_on_errors(findings)
    found = [f for f in findings if f.severity is not Severity.ok]
    if found:
        show_checks(found)
    settle_process(run.memory)  # torch was loaded since the plan was made
    with told_compiling(), MemoryMeter() as meter, open_log(run, plan, meter) as log:
        watch = Watchdog.of(share_of(run), meter, plan)
        began = time.perf_counter()
        kept = {"hold": log.hold, "go_on_from": log.go_on_from}
        with told_when_full(plan):
            summary = train(run, log, phase=meter.phase, watch=watch, ranks=ranks, **kept)
        summary |= meter.summary(plan) | {"seconds": time.perf_counter() - began}
        keep_libraries(run, meter.libraries)
        if ranks.size > 1:
            summary["memory/rank_peak_bytes"] = ranks.at_first(meter.peak_bytes)
            log.summary(summary)
    show_closing(run, plan, summary)
    return summary


def evaluate_saved(path: str, asked: RunConfig) -> dict[str, Result]:
    """Results of the policy in a checkpoint and of random play, by player; printed and written."""
    with open_saved(path, asked) as saved:
        run, env = saved.run, watched_trial(Path(saved.run.run_dir), saved.vec_env)
        policy = policy_player(run, saved.policy, env, run.evaluation.deterministic)
        chance = RandomPlayer(env.encoding, env.tables, env.action_space, run.evaluation.seed)
        results = {
            "policy": evaluate(run, env, policy),
            "random": evaluate(run, env, chance),
        }
        drawn = draw(run, env, policy, Path(run.run_dir) / PICTURES) if run.visualization else []
    written = {name: result.metrics("eval") for name, result in results.items()}
    folder = Path(run.run_dir)
    with told(folder):
        write_json(folder / "evaluation.json", {"checkpoint": path, **written})
    show(score_table(results))
    say(f"Results: {folder / 'evaluation.json'}")
    if run.visualization:
        say(f"{len(drawn)} pictures: {folder / PICTURES}")
    return results


def contest(paths: str | Sequence[str], asked: RunConfig) -> str:
    """A tournament of the environment's own players and the checkpoints (or `none`).

    Raises:
        ConfigError: the environment has no opponents.
    """
    play = needed(asked.env, "tournament", OPPONENTS)
    given = [paths] if isinstance(paths, str) else paths
    checkpoints = [path for path in given if path not in ("", "none")]
    table: str = play(asked, checkpoints)
    print(table)
    return table


def score_table(results: dict[str, Result]) -> Table:
    """Player | level | episodes | success with its 95 % interval | return | length."""
    table = Table()
    for name in ("player", "level", "episodes", "success", "95 %", "return", "length"):
        table.add_column(name, justify="left" if name in ("player", "level") else "right")
    for player, result in results.items():
        for level, score in {"all": result.score, **result.levels}.items():
            means = score.means
            table.add_row(
                player,
                level,
                str(score.episodes),
                f"{means['success']:.1%}",
                f"{score.success_low:.1%} to {score.success_high:.1%}",
                f"{means['return']:.3g}",
                f"{means['length']:.1f}",
            )
    return table
