"""A schedule as CSV: the model's own columns, and period, destination and value of each block."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mine_rl_npv.data.instance import NEVER, Instance
from mine_rl_npv.data.whole_files import write_whole

if TYPE_CHECKING:
    from mine_rl_npv.data.block_model import BlockModel
    from mine_rl_npv.data.csv_table import CsvTable
    from mine_rl_npv.tools.solution import Solution

ADDED = ("period", "destination", "discounted_value")


def write_schedule_csv(solution: Solution, model: BlockModel | None, path: str | Path) -> None:
    """One row per block in the model's order; period 1 is the first, empty where it stays.

    A block that several destinations share names the one that takes most. Where the model has
    columns of these names, the schedule's are told apart by a number; see `added_names`. What the
    schedule holds only under is said in every row, as files travel without what was printed.
    """
    period, sent, worth = whole_blocks(solution)
    mined = period != NEVER
    rows = [
        (str(t + 1), str(d), f"{w:.2f}") if m else ("", "", "")
        for m, t, d, w in zip(mined, period, sent, worth, strict=True)
    ]
    only_if = solution.condition
    table = model.table if model is not None else None
    if table is None:
        write_whole(Path(path), _plain(solution.instance, rows))
        return
    write_whole(Path(path), _beside(table, rows, only_if), encoding="utf-8")


def added_names(taken: Iterable[str]) -> tuple[str, ...]:
    """Names of the schedule's columns: all with the first number at which none is taken already.

    A reader that finds `period` twice may take the model's for the schedule's.
    """
    held = {name.lower() for name in taken}
    tails = ("", *(f"_{k}" for k in range(2, len(held) + 3)))
    numbered = (tuple(name + tail for name in ADDED) for tail in tails)
    return next(names for names in numbered if held.isdisjoint(names))


def whole_blocks(solution: Solution) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Period (n,), destination (n,) and discounted value (n,) of each block."""
    instance = solution.instance
    if solution.shares is None:
        taken = solution.pit if solution.pit is not None else np.zeros(instance.blocks, bool)
        period = np.where(taken, 0, NEVER)
        return period, np.zeros(instance.blocks, np.int64), instance.value * taken
    shares = solution.shares
    single = shares.shape[1] == 1
    money = instance.value[:, None] if single else instance.destination_value
    by_period = shares.sum(axis=1)
    period = np.where(by_period.max(axis=1) > 0.5, by_period.argmax(axis=1), NEVER)
    sent = shares.sum(axis=2).argmax(axis=1)
    if single:  # the block's one value is that of its best destination
        sent = instance.destination_value.argmax(axis=1)
    worth = np.einsum("nd,ndt,t->n", money, shares, instance.discount)
    return period, sent, worth


def _beside(table: CsvTable, rows: list[tuple[str, str, str]], only_if: str) -> Iterable[str]:
    """The file's own rows, each with what was decided about it and under which condition."""
    divide = table.delimiter
    quoted = ['"' + n.replace('"', '""') + '"' if divide in n else n for n in table.names]
    tail = (only_if.replace(" ", "_"),) * bool(only_if)
    yield divide.join((*quoted, *added_names(table.names), *("only_if" for _ in tail)))
    comma = table.decimal_comma
    for line, row in zip(table.lines, rows, strict=True):
        words = [word.replace(".", ",") if comma else word for word in row]
        own = line.rstrip() if divide == " " else line  # an empty last cell is a cell
        yield divide.join((own, *(w or ("-" if divide == " " else "") for w in words), *tail))


def _plain(instance: Instance, rows: list[tuple[str, str, str]]) -> Iterable[str]:
    yield ",".join(("block", "x", "y", "z", *ADDED))
    for b, (cell, row) in enumerate(zip(instance.position.tolist(), rows, strict=True)):
        yield ",".join((str(b), *map(str, cell), *row))
