"""MineLib's `.blocks`: where each block lies, and what else is known of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from frugal_rl.errors import DataError
from mine_rl_npv.data.sections import Lines, read_lines, table


def read_blocks(path: Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Cells (n, 3) int32 and the remaining columns; a header line names them, else `field_4`...

    Text columns (rock types) become object-free integer codes in order of first appearance, with
    their names in `NAME_levels`.
    """
    lines = read_lines(path)
    header = None
    if len(lines) and not lines.text[0].split()[0].lstrip("+-").isdigit():
        header = lines.text[0].replace(",", " ").split()
        lines = Lines(path, lines.number[1:], lines.text[1:])
    if len(lines) == 0:
        raise DataError(f"{path} holds no blocks.")
    rows = [text.split() for text in lines.text]
    width = len(rows[0])
    for at, row in enumerate(rows):
        if len(row) != width or width < 4:
            raise lines.error(at, f"a block needs {max(width, 4)} columns, found {len(row)}.")
    columns = list(zip(*rows, strict=True))
    cells = table(Lines(path, lines.number, [" ".join(row[:4]) for row in rows]), 4, "a block")
    wrong = cells[:, 0] != np.arange(len(rows))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise lines.error(at, f"block id {cells[at, 0]:g} where {at} is due; ids run from 0.")
    position = _places(lines, cells[:, 1:])
    _, first = np.unique(position, axis=0, return_index=True)
    if len(first) < len(position):
        at = int(np.setdiff1d(np.arange(len(position)), first)[0])
        raise lines.error(at, f"cell {tuple(position[at].tolist())} already has a block.")
    names = header if header and len(header) == width else [f"field_{i}" for i in range(width)]
    return position, {names[i]: _column(columns[i]) for i in range(4, width)}


def _places(lines: Lines, stated: np.ndarray) -> np.ndarray:
    """Cells (n, 3) int32: whole numbers as they stand, metres (n, 3) by their rank on each axis."""
    if not np.isfinite(stated).all():
        raise lines.error(int(np.argmin(np.isfinite(stated).all(axis=1))), "the block is nowhere.")
    if (stated == np.floor(stated)).all() and np.abs(stated).max() < 2**31:
        return stated.astype(np.int32)
    ranks = [np.unique(axis, return_inverse=True)[1].reshape(-1) for axis in stated.T]
    return np.column_stack(ranks).astype(np.int32)


def _column(words: tuple[str, ...]) -> np.ndarray:
    try:
        return np.array(words, dtype=np.float64)
    except ValueError:
        return np.array(words)
