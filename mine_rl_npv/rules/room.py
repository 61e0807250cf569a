"""What mines take at least, told before they are grown: a count in a file asks for any number."""

from __future__ import annotations

import psutil

from frugal_rl.errors import MemoryBudgetError
from frugal_rl.memory.part import human

CELL_BYTES = 150
"""Of an open mine, per cell of its deposit: grades and money. Fewer than any deposit holds of its
own, places and slopes shared with the others."""
GROWING_BYTES = 250
"""Per cell while a deposit is grown and its pit is found, beyond what stays."""


def least_bytes(cells: int, count: int, periods: int) -> int:
    """What `count` mines of so many cells hold at least, the last of them still growing."""
    return count * (cells * CELL_BYTES + periods * 16) + cells * GROWING_BYTES


def refuse_crowd(cells: int, count: int, periods: int, words: str) -> None:
    """Refuse mines that cannot be held, before the first of them is grown.

    Args:
        cells: of one deposit.
        count: of mines.
        periods: of each.
        words: the options that ask for them.

    Raises:
        MemoryBudgetError: naming them.
    """
    least, free = least_bytes(cells, count, periods), psutil.virtual_memory().available
    if least > free:
        raise MemoryBudgetError(
            f"{words} would take {human(least)} at least, and {human(free)} are free. Ask for "
            "fewer, or for smaller ones."
        )
