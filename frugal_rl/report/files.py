"""Files of a run folder, whole or not at all."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from frugal_rl.errors import DataError
from frugal_rl.run.disk import write_whole
from frugal_rl.untrusted.files import read_text
from frugal_rl.untrusted.limits import lack_of_room
from frugal_rl.untrusted.nested import parse_json
from frugal_rl.untrusted.printing import shown

METRICS = "metrics.jsonl"
PLAN = "plan.json"
RUN = "run.json"
RESOLVED = "cfg.resolved.yaml"
SUMMARY = "report.json"
JOB = "job.sh"
"""What a run that Slurm starts was handed to it as."""
PICTURES = "pictures"
"""Folder of a run's pictures (`visualization=true`), and of a report's."""
FILMS = "films"
TENSORBOARD = "tensorboard"
LONGEST_LINE_BYTES = 1 << 20
"""More than any line of metrics has."""


HELD_PER_BYTE = 4
"""What a line's numbers take by name, for each byte of its text."""


def write_text(path: Path, text: str) -> None:
    """Write a file beside, then give it its name."""
    write_whole(path, [text.encode()])


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Plain values as JSON; NaN and infinities become null."""
    write_text(path, json.dumps(plain(values), indent=2, allow_nan=False, default=str) + "\n")


def plain(values: Any) -> Any:
    """The same values in types that JSON knows."""
    if isinstance(values, Mapping):
        return {str(k): plain(v) for k, v in values.items()}
    if isinstance(values, list | tuple):
        return [plain(v) for v in values]
    if isinstance(values, float) and not math.isfinite(values):
        return None
    return values.item() if hasattr(values, "item") and not isinstance(values, str) else values


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; refused in words where the file is damaged or larger than any should be."""
    try:
        values = parse_json(read_text(path))
    except DataError as error:
        raise DataError(f"{shown(path)} cannot be read: {error}") from error
    if not isinstance(values, dict):
        raise DataError(f"{shown(path)} holds no JSON object.")
    return values


def read_metrics(folder: Path) -> Iterator[dict[str, Any]]:
    """The sound lines of a run's metrics; a warning says how many others were skipped."""
    path, skipped = folder / METRICS, 0
    if not path.is_file():
        raise DataError(f"{shown(folder)} has no {METRICS}: is it a run folder?")
    if lack := lack_of_room(HELD_PER_BYTE * path.stat().st_size):  # a file's holes take no disk
        raise DataError(f"{shown(path)} is not read: {lack}")
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE_BYTES):
            values = metrics_of(line)
            skipped += values is None
            if values is not None:
                yield values
    if skipped:
        warnings.warn(f"{shown(path)}: {skipped} damaged lines were skipped.", stacklevel=2)


def metrics_of(line: bytes) -> dict[str, Any] | None:
    """A line's numbers by name, its step among them; None where it is damaged."""
    try:
        values = parse_json(line)
    except DataError:
        return None
    whole = isinstance(values, dict) and isinstance(values.get("step"), int | float)
    return values if whole else None
