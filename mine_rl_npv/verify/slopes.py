"""Slopes of a scheduled block model judged from its CSV: each mined block and all above it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

import numpy as np

from mine_rl_npv.verify.text import text_of

AXES = ("x", "y", "z")


def judge(
    path: str,
    degrees: float,
    columns: dict[str, str],
    size: list[float],
    levels: int,
    sectors: Sequence[str] = (),
    down: bool | None = None,
) -> tuple[int, list[str], str]:
    """Mined blocks, one sentence per block that undercuts another one, and which way is up.

    Args:
        path: a CSV with coordinates and `period` (empty where a block stays).
        degrees: the slope.
        columns: names of x, y, z and period where they are others.
        size: edge lengths; footprints that overlap rest on one another.
        levels: benches above a block to look at; 0 means all.
        sectors: other slopes by azimuth, FROM-TO:DEGREES; 0 is north (+y), clockwise.
        down: whether z grows downward; None asks its name and its sign (`grows_down`).
    """
    _refuse_rule(degrees, size, levels, sectors)
    table = _rows(path)
    names = [columns.get(axis) or _called(axis, table[0]) for axis in AXES]
    place = np.array([[_number(row[name]) for name in names] for row in table])
    if not np.isfinite(place).all():
        raise ValueError(f"row {np.argmin(np.isfinite(place).all(axis=1)) + 2} lies nowhere")
    down = grows_down(names[2], place[:, 2]) if down is None else down
    place[:, 2] *= -1 if down else 1
    upward = f"'{names[2]}' grows {'downward' if down else 'upward'}; --down and --up say otherwise"
    never = 10**9
    planned = columns.get("period") or _period_column(table[0])
    period = np.array([_period(row[planned], never) for row in table])
    reach = levels * size[2] if levels else np.inf
    faults = []
    for b in np.flatnonzero(period < never):
        step = place - place[b]
        above = (step[:, 2] > 1e-6) & (step[:, 2] <= reach + 1e-6) & (period > period[b])
        flat = np.hypot(step[:, 0], step[:, 1])
        run = _runs(np.degrees(np.arctan2(step[:, 0], step[:, 1])), degrees, sectors)
        cone = flat <= step[:, 2] * run + 1e-6
        over = (np.abs(step[:, 0]) < 0.99 * size[0]) & (np.abs(step[:, 1]) < 0.99 * size[1])
        bad = np.flatnonzero(above & (cone | over))
        if len(bad):
            faults.append(f"row {b + 2} undercuts row {bad[0] + 2} ({len(bad)} blocks)")
    return int((period < never).sum()), faults, upward


def _called(axis: str, names: Iterable[str]) -> str:
    """An axis by its own name, or the height as z_up or z_down."""
    found = [f"{axis}{tail}" for tail in ("", "_up", "_down") if f"{axis}{tail}" in names]
    return found[0] if found else axis


def grows_down(name: str, heights: np.ndarray) -> bool:
    """Whether a column (n,) holds depths: it says so, and they are not all below 0."""
    plain = name.lower()
    return plain.endswith("down") or ("depth" in plain and bool(heights.max() > 0))


def _period_column(names: Iterable[str]) -> str:
    """The one column of periods.

    Raises:
        ValueError: a model's own periods stand beside a schedule's; either may be meant.
    """
    found = [name for name in names if re.fullmatch(r"period(_\d+)?", str(name).lower())]
    if len(found) > 1:
        raise ValueError(f"{', '.join(found)}: state the schedule's by --columns period=NAME")
    return found[0] if found else "period"


def _rows(path: str) -> list[dict[str, str]]:
    """The rows of a table with a header, by column; columns of blanks where no delimiter is."""
    lines = [line for line in io.StringIO(text_of(path, "utf-8-sig"), newline="") if line.strip()]
    if len(lines) < 2:
        raise ValueError(f"{path} has no row below its header")
    divide = max(",;\t|", key=lines[0].count)
    if divide in lines[0]:
        names = next(csv.reader(lines, delimiter=divide, skipinitialspace=True))
        _refuse_twice(names)
        return list(csv.DictReader(lines, delimiter=divide, skipinitialspace=True))
    names = lines[0].split()
    _refuse_twice(names)
    return [dict(zip(names, line.split(), strict=True)) for line in lines[1:]]


def _refuse_twice(names: list[str]) -> None:
    """Raises ValueError where two columns have one name: the last would stand for both."""
    twice = [name for name in set(names) if names.count(name) > 1]
    if twice:
        raise ValueError(f"column {', '.join(sorted(twice))} appears twice")


def _runs(azimuth: np.ndarray, degrees: float, sectors: Sequence[str]) -> np.ndarray:
    """Metres along per metre up (n,) at each azimuth; on the border of two, the steeper counts."""
    steep = []
    for side in (-1e-6, 1e-6):
        angle = np.full(len(azimuth), float(degrees))
        for sector in sectors:
            span, slope = sector.split(":")
            start, end = map(int, span.split("-"))
            angle[(azimuth + side - start) % 360 < ((end - start) % 360 or 360)] = float(slope)
        steep.append(angle)
    return 1.0 / np.tan(np.radians(np.maximum(*steep)))


def _refuse_rule(degrees: float, size: list[float], levels: int, sectors: Sequence[str]) -> None:
    """Raises ValueError for angles and sizes under which nothing would rest on anything."""
    if levels < 0:
        raise ValueError(f"{levels} benches; 0 looks at all")
    angles = [degrees, *(float(sector.split(":")[1]) for sector in sectors)]
    if not all(0 < angle < 90 for angle in angles):
        raise ValueError(f"slopes of {angles} degrees; each lies between 0 and 90")
    if len(size) != 3 or not all(0 < edge < np.inf for edge in size):
        raise ValueError(f"the block size {size} is not three lengths")


def _period(word: str | None, never: int) -> int:
    """A row's period; `never` where the cell is empty, a dash or below 0."""
    if word is None or word.strip() in ("", "-"):
        return never
    period = float(word)
    if period != int(period):
        raise ValueError(f"'{word}' is no period")
    return int(period) if period >= 0 else never


def _number(word: str | None) -> float:
    if word is None:
        raise ValueError("a row ends before its coordinates")
    return float(word.replace(",", "."))
