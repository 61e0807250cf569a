"""A stranger's words for a terminal or a report: escaped and bounded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LONGEST_WORDS = 300
"""Characters of a stranger's text that an error repeats."""


def printable(text: str, longest: int = LONGEST_WORDS) -> str:
    """A stranger's text for a terminal: control characters escaped, at most `longest` of them."""
    cut = text if len(text) <= longest else text[: longest - 3] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def shown(path: Path | str) -> str:
    """A path for a terminal, whole."""
    return printable(str(path), 4096)


def file_name(text: str) -> str:
    """A stranger's text as part of a file's name, which leads nowhere else."""
    return re.sub(r"[^\w.-]|^\.+", "_", text)[:80]


def markdown_cell(text: object) -> str:
    """A stranger's text as the content of one cell of a Markdown table."""
    plain = printable(str(text))
    return re.sub(r"([\\`*_\[\]<>|!])", r"\\\1", plain)


def printable_values(values: Any) -> Any:
    """Nested values of a stranger with all their texts printable."""
    if isinstance(values, str):
        return printable(values)
    if isinstance(values, Mapping):
        return {printable(str(k)): printable_values(v) for k, v in values.items()}
    return [printable_values(v) for v in values] if isinstance(values, list) else values
