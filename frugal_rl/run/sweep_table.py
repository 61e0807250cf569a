"""What a sweep says at its end: one line per job, and where the comparison comes from."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Set
from pathlib import Path
from typing import Any

from rich.table import Table

from frugal_rl.invocation import command_line, command_words, override, value
from frugal_rl.memory.part import human
from frugal_rl.report.document import Document, TableBlock
from frugal_rl.report.files import PLAN, SUMMARY, read_json
from frugal_rl.report.terminal import say, show
from frugal_rl.run.cells import CELL, UNWANTED, Cell, End, cells_in
from frugal_rl.run.outcome import Outcome

NOTES = (CELL, "output.log")
"""What a job that was refused before it began leaves."""
COLUMNS = ("job", "end", "steps", "return", "planned", "held", "seconds", "why")


def sum_up(at: Path) -> Outcome:
    """Print and write the table of a sweep's jobs; the status is 1 where one failed."""
    cells = cells_in(at) if at.is_dir() else []
    if not cells:
        return Outcome()
    common = set.intersection(*(set(cell.words) for _, cell in cells)) if len(cells) > 1 else set()
    rows = [line_of(folder, cell, common) for folder, cell in cells]
    table = Table()
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in ("job", "end", "why") else "right")
    for row in rows:
        table.add_row(*row)
    show(table)
    ends = Counter(cell.end for _, cell in cells)
    if set(ends) == {End.refused} and _cleared(folder for folder, _ in cells):
        say(f"{len(cells)} refused, nothing was run: {cells[0][1].reason}")
        return Outcome({"jobs": len(cells), "refused": len(cells)}, status=1)
    say(", ".join(f"{count} {end.value}" for end, count in ends.items()) + f" in {at}")
    if ends[End.failed] + ends[End.stopped]:
        again = override("hydra.sweep.dir", at)
        say(f"The same command with {again} goes on with those that did not finish.")
    if ends[End.submitted]:
        again = override("hydra.sweep.dir", at)
        say(f"The same command with {again} tells what became of those that Slurm has.")
    document = Document(f"Sweep of {len(cells)} jobs")
    document.add(TableBlock(COLUMNS, rows))
    written = document.write(at, "sweep")
    say("report:  " + command_line([*command_words("report"), f"runs=[{value(at)}]"]))
    values = {"jobs": len(cells), **{end.value: count for end, count in ends.items()}}
    return Outcome(values, written, int(any(ends[end] for end in UNWANTED)))


def _cleared(jobs: Iterable[Path]) -> bool:
    """Whether nothing is left of jobs once the notes on their ends are gone; they go only then."""
    folders = list(jobs)
    if any(path.name not in NOTES for folder in folders for path in folder.iterdir()):
        return False
    for folder in folders:
        shutil.rmtree(folder)
    return True


def line_of(folder: Path, cell: Cell, common: Set[str] = frozenset()) -> tuple[str, ...]:
    """One job: its own words, its end, what it reached, and its memory beside the plan."""
    summary = _values(folder / SUMMARY)
    plan = _values(folder / PLAN)
    return (
        " ".join(word for word in cell.words if word not in common),
        cell.end.value,
        _number(summary.get("num_steps"), ",.0f"),
        _number(summary.get("eval/return"), ".3g"),
        _bytes(plan.get("ram_bytes")),
        _bytes(summary.get("memory/peak_bytes")),
        f"{cell.seconds:.0f}",
        cell.reason,
    )


def _values(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _number(found: Any, form: str) -> str:
    return "-" if found is None else format(float(found), form)


def _bytes(found: Any) -> str:
    return "-" if found is None else human(int(found))
