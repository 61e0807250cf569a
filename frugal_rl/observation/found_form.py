"""The forms that a found column keeps rows in, by the words that a study writes of them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from frugal_rl.errors import DataError

ROWS = (
    "differences",
    "differences in known words",
    "distinct rows",
    "compressed",
    "as they are",
)
"""What keeps rows, or the newest parts of stacks; `as they are` is for parts alone."""
AS_IT_IS = "as it is"
WIDTHS = (1, 2, 4, 8, 16)
"""Bits of a number; each divides a byte or is whole bytes."""
NARROW = re.compile(r"whole numbers from (-?\d{1,18}) in (\d{1,2}) bits")
STACK = re.compile(
    r"stack of (\d{1,9}) along (\d{1,9}) x (\d{1,9}) B( newest first)?, ([a-z ]{1,40})"
)
TILES = re.compile(r"tiles of (\d{1,2}) x (\d{1,2}) pixels")
PACKED = "pixels in few bits"
LEAST_SIDE, MOST_CHANNELS = 16, 4


@dataclass(frozen=True)
class FoundForm:
    """A form by its values.

    rows names what keeps them, empty for `AS_IT_IS` and for whole numbers; outer x parts x inner
    bytes is the stack that they are, parts 1 where they are none; bits is 0 but for numbers; tile
    is height and width of tiles in pixels.
    """

    rows: str = ""
    outer: int = 1
    parts: int = 1
    inner: int = 0
    newest_last: bool = True
    low: int = 0
    bits: int = 0
    tile: tuple[int, int] | None = None

    def fits(self, shape: tuple[int, ...], itemsize: int) -> bool:
        """Whether rows of this shape can be kept so."""
        row_bytes = math.prod(shape) * itemsize
        if self.tile is not None:
            return is_picture(shape) and min(self.tile) > 0
        if self.rows == PACKED:
            return can_be_packed(shape, itemsize)
        if self.bits:
            return self.bits in WIDTHS and self.bits < 8 * itemsize
        return self.parts == 1 or self.outer * self.parts * self.inner == row_bytes

    def stacked(self, window: int, row_bytes: int) -> FoundForm | None:
        """The form of windows of rows that have this one; None where that is to be found out."""
        if self.bits or self.parts > 1 or self.tile is not None or self.rows == PACKED:
            return None
        return FoundForm(self.rows or "as they are", 1, window, row_bytes)


def is_picture(shape: tuple[int, ...]) -> bool:
    """Whether rows may be pictures [H, W], [H, W, C] or [C, H, W]."""
    if len(shape) == 3:
        few = shape[2] if shape[2] <= shape[0] else shape[0]
        sides = shape[:2] if shape[2] <= shape[0] else shape[1:]
        return few <= MOST_CHANNELS and min(sides) >= LEAST_SIDE
    return len(shape) == 2 and min(shape) >= LEAST_SIDE


def can_be_packed(shape: tuple[int, ...], itemsize: int) -> bool:
    """Whether rows are pictures of bytes, grey or of three colours."""
    if not is_picture(shape) or itemsize != 1:
        return False
    return len(shape) == 2 or min(shape[0], shape[2]) in (1, 3)


def read_form(text: str) -> FoundForm:
    """A form from its words.

    Raises:
        DataError: they are none.

    Example:
        >>> read_form("stack of 4 along 1 x 7056 B, differences").parts
        4
    """
    if text == AS_IT_IS:
        return FoundForm()
    numbers, stack = NARROW.fullmatch(text), STACK.fullmatch(text)
    if numbers and int(numbers[2]) in WIDTHS:
        return FoundForm(low=int(numbers[1]), bits=int(numbers[2]))
    if stack and stack[5] in ROWS and int(stack[2]) * int(stack[3]) and int(stack[1]) > 1:
        outer, parts, inner = int(stack[2]), int(stack[1]), int(stack[3])
        return FoundForm(stack[5], outer, parts, inner, not stack[4])
    tiles = TILES.fullmatch(text)
    if tiles and int(tiles[1]) * int(tiles[2]):
        return FoundForm("tiles", tile=(int(tiles[1]), int(tiles[2])))
    if text in (*ROWS[:-1], PACKED):
        return FoundForm(text)
    raise DataError(
        f"'{text:.60}' is no form; write '{AS_IT_IS}', {', '.join(map(repr, ROWS[:-1]))}, "
        "'whole numbers from 0 in 8 bits', 'pixels in few bits', 'tiles of 7 x 7 pixels' or "
        "'stack of 4 along 1 x 7056 B, differences'"
    )
