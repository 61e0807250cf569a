"""Files of a run folder, whole or not at all."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from frugal_rl.errors import DataError

METRICS = "metrics.jsonl"
PLAN = "plan.json"
RUN = "run.json"
RESOLVED = "cfg.resolved.yaml"
SUMMARY = "report.json"
PICTURES = "pictures"
"""Folder of a run's pictures (`visualization=true`), and of a report's."""


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name, then give it its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8"
    ) as file:
        file.write(text)
    os.replace(file.name, path)


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
    """A JSON object; refused in words where the file is damaged."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    if not isinstance(values, dict):
        raise DataError(f"{path} holds no JSON object.")
    return values


def read_metrics(folder: Path) -> Iterator[dict[str, Any]]:
    """The lines of a run's metrics; a torn last line, of a run that was killed, is left out."""
    try:
        lines = (folder / METRICS).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"{folder} has no {METRICS}: is it a run folder? ({error})") from error
    for number, line in enumerate(lines, 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            if number == len(lines):
                return
            raise DataError(f"{folder / METRICS}, line {number}: {error}.") from error
