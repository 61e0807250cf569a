"""A leaderboard that anybody can rerun: methods on every MineLib instance of a folder.

`python scripts/solve.py leaderboard=FOLDER` writes a table as Markdown and as a page, a schedule
file per cell, and what a program that reads only files (`python -m mine_rl_npv.verify`) says of it.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from frugal_rl.errors import ConfigError
from frugal_rl.invocation import command_line, command_words, value
from frugal_rl.report.document import (
    Block,
    CommandBlock,
    Document,
    Heading,
    PictureBlock,
    TableBlock,
)
from frugal_rl.run.outcome import Outcome
from mine_rl_npv.data.bundled import open_instance
from mine_rl_npv.data.solutions import period_of, read_solution
from mine_rl_npv.tools.board import Board
from mine_rl_npv.tools.cells import Cell, parse_entry, run_cell
from mine_rl_npv.tools.peers import PEERS
from mine_rl_npv.tools.solve_config import SolveConfig
from mine_rl_npv.tools.views import gap_bars, save, sections

Row = dict[str, Any]


_BUDGETS = (
    "seconds",
    "decodes",
    "seed",
    "threads",
    "lp_features",
    "bound_seconds",
    "bound_decisions",
)


@dataclass(frozen=True)
class Entry:
    """An instance of the folder and one of its problems."""

    prefix: Path
    problem: str

    @property
    def title(self) -> str:
        """As `newman1, CPIT`."""
        return f"{self.prefix.name}, {self.problem.upper()}"


def find_entries(folder: Path, problems: Iterable[str]) -> list[Entry]:
    """Instances below a folder, by their .blocks files, with the problems that they state.

    Raises:
        ConfigError: the folder holds none.
    """
    prefixes = sorted(path.with_suffix("") for path in folder.rglob("*.blocks"))
    found = [
        Entry(prefix, problem)
        for prefix in prefixes
        for problem in problems
        if prefix.with_suffix(f".{problem}").is_file()
    ]
    if not found:
        raise ConfigError(
            f"leaderboard={folder}: no NAME.blocks with a NAME.{' or NAME.'.join(problems)} beside "
            "it lies in this folder or below."
        )
    return found


def make_leaderboard(config: SolveConfig) -> tuple[str, Outcome]:
    """Runs what is missing, judges every schedule from its file, writes the board.

    Returns:
        The lines to print (the tables and where they were written), and the rows by problem.
    """
    folder = Path(config.board.results)
    _refuse_ignored(config)
    entries = find_entries(Path(config.leaderboard), config.board.problems)
    for name in config.board.methods:
        _ = name in PEERS or parse_entry(name)
    folder.mkdir(parents=True, exist_ok=True)
    board = Document("Open-pit schedules: gaps to certified bounds")
    board.add(_machine(), CommandBlock([command_of(config)]))
    found: dict[str, list[Row]] = {}
    for number, entry in enumerate(entries, 1):
        cells = _cells(entry, config)
        rows: list[Row] = []
        for cell in cells:
            where = f"[{number}/{len(entries)}] {entry.title}, {cell.entry}"
            _say(f"{where} ...")
            row = run_cell(cell, folder, config.board.seconds) | {"entry": cell.entry}
            rows.append(row | _judged(cell, row, folder))
            _say(f"{where}: {_short(rows[-1])}")
        found[f"{entry.prefix.name} {entry.problem}"] = rows
        board.add(*_section(entry, rows, folder))
        written = board.write(folder, "leaderboard")
    words = "\n".join([board.markdown(folder), *map(str, written)])
    return words, Outcome(found, written)


def _refuse_ignored(config: SolveConfig) -> None:
    """Raises ConfigError where a value belongs to one schedule and would change nothing here."""
    plain = SolveConfig(columns=dict.fromkeys(config.columns, ""))
    heard = ("leaderboard", "board", *_BUDGETS)
    ignored = [
        f.name
        for f in fields(config)
        if f.name not in heard and getattr(config, f.name) != getattr(plain, f.name)
    ]
    if ignored:
        raise ConfigError(
            f"{', '.join(ignored)} would be ignored: leaderboard={config.leaderboard} solves the "
            "folder's instances by board.methods and board.problems."
        )


def command_of(config: SolveConfig) -> str:
    """The line that makes this board again, from any folder."""
    words = [f"leaderboard={value(config.leaderboard)}"]
    words += [
        f"{name}={getattr(config, name)}"
        for name in _BUDGETS
        if getattr(config, name) != getattr(SolveConfig(), name)
    ]
    for name in ("methods", "problems", "results", "seconds"):
        chosen = getattr(config.board, name)
        if chosen != getattr(Board(), name):
            text = f"[{','.join(chosen)}]" if isinstance(chosen, tuple) else value(chosen)
            words.append(f"board.{name}={text}")
    return command_line([*command_words("solve"), *words])


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _cells(entry: Entry, config: SolveConfig) -> list[Cell]:
    names = ["upit"] if entry.problem == "upit" else list(config.board.methods)
    if entry.problem != "upit":
        names = [n for n in names if n != "upit"]
    if entry.problem == "pcpsp":
        names = [n for n in names if n not in PEERS]
    return [
        Cell(
            str(entry.prefix),
            entry.problem,
            name,
            config.seconds,
            config.decodes,
            config.seed,
            config.threads,
            config.lp_features,
            config.bound_seconds,
            config.bound_decisions,
        )
        for name in names
    ]


def _judged(cell: Cell, row: Row, folder: Path) -> Row:
    """What the independent program says of the cell's file: its own value, and the verdict."""
    if "file" not in row:
        return {}
    flags = ["--pcpsp"] if cell.problem == "pcpsp" else []
    command = [sys.executable, "-m", "mine_rl_npv.verify", cell.prefix, folder / row["file"]]
    told = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    lines = dict(line.split(None, 1) for line in told.stdout.splitlines() if " " in line)
    if told.returncode == 2 or "value" not in lines:
        return {"verdict": told.stderr.strip() or "cannot be judged"}
    value = float(lines["value"])
    agrees = abs(value - row["value"]) <= 1e-6 * max(abs(value), 1.0)  # six digits are written
    verdict = lines["feasible"] if agrees else f"its value is {value:,.2f}"
    return {"verdict": verdict}


def best_bound(rows: Iterable[Mapping[str, Any]]) -> float:
    """The smallest certified bound that any method gave; infinite where none did."""
    return min((r["bound"] for r in rows if r.get("bound") is not None), default=float("inf"))


def gap_percent(row: Mapping[str, Any], bound: float) -> float:
    """100 (bound - value) / |bound|; 0 where both are 0."""
    distance = bound - row["value"]
    return 100 * distance / abs(bound) if bound else 0.0 if distance == 0 else float("nan")


HEAD = (
    "method",
    "gap to the best bound",
    "value",
    "certified bound",
    "seconds",
    "of them bound",
    "peak MiB",
    "independent checker",
    "schedule",
)


def _section(entry: Entry, rows: list[Row], folder: Path) -> list[Block]:
    bound = best_bound(rows)
    ranked = sorted(rows, key=lambda r: -r.get("value", -float("inf")))
    blocks: list[Block] = [
        Heading(entry.title),
        TableBlock(HEAD, [_cells_of(row, bound) for row in ranked]),
    ]
    scheduled = [r for r in ranked if "value" in r]
    if entry.problem == "upit" or not scheduled:
        return blocks
    stem = f"{entry.prefix.name}-{entry.problem}"
    gaps = {r["entry"]: gap_percent(r, bound) for r in scheduled}
    picture = save(gap_bars(gaps, entry.title), folder / f"{stem}-gaps.png")
    blocks.append(PictureBlock(picture, f"{entry.title}: gap to the best certified bound"))
    instance = open_instance(str(entry.prefix))
    best = scheduled[0]
    period = period_of(read_solution(folder / best["file"], instance))
    picture = save(sections(instance, period), folder / f"{stem}-best.png")
    blocks.append(PictureBlock(picture, f"{entry.title}: the schedule of {best['entry']}"))
    return blocks


def _cells_of(row: Row, bound: float) -> tuple[str, ...]:
    if "refused" in row or "trouble" in row:
        words = row.get("refused") or row["trouble"]
        return (row["entry"], words, *[""] * (len(HEAD) - 2))
    value = row.get("value")
    return (
        row["entry"],
        "" if value is None else f"{gap_percent(row, bound):.4f} %",
        "" if value is None else f"{value:,.2f}",
        "" if row.get("bound") is None else f"{row['bound']:,.2f}",
        f"{row['seconds'] + row['bound_seconds']:.2f}",
        f"{row['bound_seconds']:.2f}",
        f"{row['mib']:.0f}",
        row.get("verdict", ""),
        row.get("file", ""),
    )


def _short(row: Row) -> str:
    words = row.get("refused") or row.get("trouble")
    kept = ", kept" if row.get("kept") else ""
    if words:
        return str(words)
    value = f"value {row['value']:,.2f}, " if "value" in row else ""
    bound = f"bound {row['bound']:,.2f}" if row.get("bound") is not None else "no bound"
    return f"{value}{bound}{', feasible ' + row['verdict'] if 'verdict' in row else ''}{kept}"


def _machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}; one cell at a time."
