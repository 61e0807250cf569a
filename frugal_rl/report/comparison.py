"""What `scripts/report.py` does: compare finished runs in one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

from frugal_rl.errors import DataError
from frugal_rl.memory.part import human
from frugal_rl.ranges import between
from frugal_rl.report import plots
from frugal_rl.report.document import (
    Block,
    CommandBlock,
    Document,
    Heading,
    PictureBlock,
    TableBlock,
)
from frugal_rl.report.files import FILMS, PICTURES
from frugal_rl.report.results import (
    EVALUATION,
    Row,
    RunResult,
    State,
    compare,
    find_runs,
    short_names,
)
from frugal_rl.report.wandb_report import check_sending, save_report
from frugal_rl.run.disk import finished_or_absent
from frugal_rl.untrusted.files import read_bytes
from frugal_rl.untrusted.limits import MIB
from frugal_rl.untrusted.odd import refused
from frugal_rl.untrusted.printing import file_name, printable

CURVES = (EVALUATION, "eval/return", "episode/return", "episode/success", "memory/held_bytes")
"""Metrics that are drawn where they were logged."""


SIGNATURES = {".png": b"\x89PNG\r\n\x1a\n", ".gif": b"GIF8"}
"""How pictures begin, by the ending of their names."""
MOST_PICTURE_BYTES = 64 * MIB


class Format(Enum):
    """What is written."""

    all = "all"
    html = "html"
    markdown = "markdown"
    wandb = "wandb"


FORMS = {Format.all: ("md", "html"), Format.html: ("html",), Format.markdown: ("md",)}
"""Endings of the files of each format."""


@dataclass(frozen=True)
class ReportOptions:
    """The options of `scripts/report.py`."""

    runs: tuple[str, ...] = ("runs",)
    """Run folders, or folders above them."""
    out: str = "runs/report"
    """Where the report is written."""
    title: str = "Comparison of runs"
    format: Format = Format.all
    """A web page that needs no other file, Markdown with its pictures beside it, both, or W&B."""
    entity: str = ""
    """User or team on W&B; empty takes that of the runs."""
    project: str = ""
    """Project on W&B; empty takes that of the runs."""
    curves: tuple[str, ...] = CURVES
    live: str = ""
    """Run folder to follow on a page of this machine, instead of writing a report."""
    port: Annotated[int, between(0, 65535)] = 0
    """Of the live page; 0 takes a free one."""


def write_report(options: ReportOptions) -> list[Path | str]:
    """One section per environment, as Markdown, as a web page, or on W&B; where they are.

    Raises:
        DataError: a run's files hold values that no run writes.
        DiskError: the report cannot be written.
    """
    runs = find_runs(options.runs)
    tracking = runs[0].config.get("tracking") or {}
    entity = options.entity or str(tracking.get("entity") or "")
    project = options.project or str(tracking.get("project") or "frugal-rl")
    if options.format is Format.wandb:
        check_sending(entity)
    with refused(_incomparable):
        document = comparison_document(runs, options)
    if options.format is not Format.wandb:
        return [*document.write(Path(options.out), forms=FORMS[options.format])]
    return [save_report(document, entity, project)]


def _incomparable(error: Exception) -> DataError:
    return DataError(
        f"The runs cannot be compared ({type(error).__name__}: {printable(str(error))}): one "
        "of their files holds a value that no run writes. Name fewer folders with runs=[...]."
    )


def comparison_document(runs: Sequence[RunResult], options: ReportOptions) -> Document:
    """What the report says, whatever it is written as."""
    folder = Path(options.out)
    document = Document(options.title)
    environments = len({run.env for run in runs})
    document.add(f"{_counted(len(runs), 'run')} of {_counted(environments, 'environment')}.")
    document.add(*_incomplete(runs))
    machine = runs[0].machine
    if machine and all(run.machine == machine for run in runs):
        document.add(f"Machine: {printable(machine)}.")
    for env in dict.fromkeys(run.env for run in runs):
        document.add(*_section(env, [r for r in runs if r.env == env], options, folder / PICTURES))
    document.add(Heading("Runs"), runs_table(runs))
    document.add(Heading("Commands"), CommandBlock(commands_of(runs)))
    return document


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _incomplete(runs: Sequence[RunResult]) -> list[Block]:
    """Which runs are in no mean, and why."""
    why = {
        State.running: "Still running",
        State.killed: "Killed, or ended by an error",
        State.stopped: "Stopped before their last step",
    }
    said: list[Block] = []
    for state, words in why.items():
        names = [r.folder.name for r in runs if r.state is state]
        if names:
            said.append(f"{words}: {', '.join(names)}.")
    if said:
        said.append("They are drawn, and left out of all means.")
    return said


def _section(
    env: str, runs: Sequence[RunResult], options: ReportOptions, pictures: Path
) -> list[Block]:
    names, shared = short_names(runs)
    rows = compare(runs)
    said: list[Block] = [Heading(env)]
    if shared:
        said.append(f"All of them: {' '.join(shared)}. A variant is named by what differs.")
    said.append(comparison_table(rows, names))
    said += _pictures(env, runs, rows, names, options.curves, pictures)
    return said + [block for run in runs for block in _drawn(run, pictures)]


def comparison_table(rows: Sequence[Row], names: Mapping[str, str]) -> TableBlock:
    """Variant | label | bytes per transition | predicted | measured | error | speed | outcome."""
    columns = (
        "variant",
        "label",
        "seeds",
        "incomplete",
        "bytes per transition",
        "peak predicted",
        "peak measured",
        "error",
        "steps/s",
        "success",
        "return",
    )
    return TableBlock(columns, [_cells(r, names) for r in rows])


def _cells(row: Row, names: Mapping[str, str]) -> tuple[str, ...]:
    return (
        names.get(row.variant, row.variant),
        row.label,
        str(row.seeds),
        str(row.incomplete) if row.incomplete else "-",
        show(row.bytes_per_transition, ",.0f"),
        "-" if row.predicted_bytes is None else human(row.predicted_bytes),
        "-" if row.measured_bytes is None else human(row.measured_bytes),
        show(row.error, "+.1%"),
        show(row.steps_per_second, ",.0f"),
        share(row.success, row.success_spread),
        with_spread(row.episode_return, row.return_spread, ".3g"),
    )


def runs_table(runs: Sequence[RunResult]) -> TableBlock:
    """Folder | state | steps | seed of every run, and its machine where they differ."""
    several = len({run.machine for run in runs}) > 1
    columns = ("run", "state", "steps", "seed", *(["machine"] if several else []))
    rows = []
    for run in runs:
        steps = show(run.number("num_steps") or run.last_step, ",.0f")
        machine = [run.machine or "-"] if several else []
        rows.append((run.folder.as_posix(), run.state.value, steps, str(run.seed), *machine))
    return TableBlock(columns, rows)


def commands_of(runs: Sequence[RunResult]) -> list[str]:
    """What repeats each run, below the name of its folder."""
    return [line for run in runs for line in (f"# {printable(run.folder.as_posix())}", run.command)]


def with_spread(value: float | None, spread: float | None, form: str) -> str:
    """A mean with half of its 95 % interval over seeds, where there are several."""
    return show(value, form) + ("" if spread is None else f" ± {format(spread, form)}")


def share(value: float | None, spread: float | None) -> str:
    """A share of episodes with its 95 % interval over seeds, which ends at none and at all."""
    words = show(value, ".1%")
    if value is None or spread is None:
        return words
    return f"{words} ({max(0.0, value - spread):.0%} to {min(1.0, value + spread):.0%})"


def show(value: float | None, form: str) -> str:
    """A number in a form, or a dash."""
    return "-" if value is None else format(value, form)


def _drawn(run: RunResult, folder: Path) -> list[PictureBlock]:
    """What `visualization=true` and `evaluation.film=true` left, copied beside the report."""
    blocks = []
    for path in run.films:
        if path.suffix not in SIGNATURES:
            continue
        raw = read_bytes(path, MOST_PICTURE_BYTES)
        if raw.startswith(SIGNATURES[path.suffix]):
            copy = folder / f"{file_name(run.folder.name)}_{file_name(path.stem)}{path.suffix}"
            with finished_or_absent(copy) as part:
                part.write_bytes(raw)
            film = "film at step " if path.parent.name == FILMS else ""
            caption = printable(f"{film}{path.stem} ({run.folder.name}: {run.variant})")
            blocks.append(PictureBlock(copy, caption))
    return blocks


def _pictures(
    env: str,
    runs: Sequence[RunResult],
    rows: Sequence[Row],
    names: Mapping[str, str],
    metrics: Sequence[str],
    folder: Path,
) -> list[PictureBlock]:
    blocks = []
    bars = plots.memory_bars(rows, folder / f"{file_name(env)}_memory.png", names)
    if bars is not None:
        caption = "Peak memory of the process tree by variant."
        blocks.append(PictureBlock(bars, caption, plots.MEMORY))
    for metric in metrics:
        name = f"{file_name(env)}_{metric.replace('/', '_')}.png"
        drawn = plots.curves(runs, metric, folder / name, names)
        for number, path in enumerate(drawn, 1):
            caption = f"{metric} over environment steps: mean over runs, and their range."
            if len(drawn) > 1:
                caption += f" Picture {number} of {len(drawn)}; grey ones are named in another."
            blocks.append(PictureBlock(path, caption, metric))
    return blocks
