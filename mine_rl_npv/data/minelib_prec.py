"""Reads the .prec file of a MineLib instance: which blocks each block needs."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from frugal_rl.errors import DataError
from mine_rl_npv.data.instance import Graph
from mine_rl_npv.data.sections import read_lines


def read_precedence(path: Path, blocks: int) -> Graph:
    """The graph of a .prec file; blocks without a line have no predecessors, which is told.

    Raises:
        DataError: wrong counts, unknown or repeated blocks, a cycle, or no line for some blocks
            where others have one that says that they need nothing.
    """
    lines = read_lines(path)
    needed: list[list[str] | None] = [None] * blocks
    for at, text in enumerate(lines.text):
        words = text.split()
        if not all(word.isdigit() and len(word) < 10 for word in words) or len(words) < 2:
            raise lines.error(at, "expected `block count predecessor...`, whole numbers.")
        block, count = int(words[0]), int(words[1])
        if block >= blocks:
            raise lines.error(at, f"block {block} is unknown; known are 0 to {blocks - 1}.")
        if count != len(words) - 2:
            raise lines.error(
                at, f"block {block} announces {count} predecessors and names {len(words) - 2}."
            )
        if needed[block] is not None:
            raise lines.error(at, f"block {block} has a second line.")
        needed[block] = words[2:]
    rows = [row or [] for row in needed]
    pointer = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    index = np.array([word for row in rows for word in row], dtype=np.int64)
    if len(index) and index.max() >= blocks:
        block = int(np.searchsorted(pointer, np.argmax(index >= blocks), side="right")) - 1
        raise DataError(f"{path}: block {block} needs the unknown block {index.max()}.")
    graph = Graph(pointer, index.astype(np.int32))
    try:
        _ = graph.order
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    _tell_absent(path, needed)
    return graph


def _tell_absent(path: Path, needed: list[list[str] | None]) -> None:
    """A file cut off in the middle must not pass for one whose last blocks need nothing."""
    absent = [block for block, row in enumerate(needed) if row is None]
    if not absent:
        return
    words = f"{path}: {len(absent)} of {len(needed)} blocks have no line (the first: {absent[0]})"
    if any(row == [] for row in needed):
        raise DataError(
            f"{words}, where others have one that says that they need nothing; is the file "
            f"complete? State `{absent[0]} 0` for a block that needs nothing."
        )
    warnings.warn(f"{words}; they are taken to need nothing.", stacklevel=4)
