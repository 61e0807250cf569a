"""Slopes of a scheduled block model judged from its CSV: each mined block and all above it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

AXES = ("x", "y", "z")


def judge(
    path: str,
    degrees: float,
    columns: dict[str, str],
    size: list[float],
    levels: int,
    sectors: Sequence[str] = (),
) -> tuple[int, list[str]]:
    """Mined blocks, and one sentence per block that undercuts another one.

    Args:
        path: a CSV with coordinates and `period` (empty where a block stays).
        degrees: the slope.
        columns: names of x, y and z where they are others.
        size: edge lengths; footprints that overlap rest on one another.
        levels: benches above a block to look at; 0 means all.
        sectors: other slopes by azimuth, FROM-TO:DEGREES; 0 is north (+y), clockwise.
    """
    with Path(path).open(encoding="utf-8", newline="") as file:
        head = file.readline()
        divide = max(",;\t|", key=head.count)
        file.seek(0)
        table = list(csv.DictReader(file, delimiter=divide))
    names = [columns.get(axis, axis) for axis in AXES]
    place = np.array([[_number(row[name]) for name in names] for row in table])
    never = 10**9
    period = np.array([int(float(row["period"])) if row["period"] else never for row in table])
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
    return int((period < never).sum()), faults


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


def _number(word: str) -> float:
    return float(word.replace(",", "."))
