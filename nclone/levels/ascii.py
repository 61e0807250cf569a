"""Levels as drawings: one character per tile, then one line per entity that is not drawn.

A drawing looks like this; lines that start with `;` are comments::

    title: A walk
    ##########
    #@...S..X#
    ##########
    locked_door 30 10 facing 2 switch 22 14

`.` is empty, `#` full, `2`..`9` and `a`..`z` are the tile types 2..35, `&` 36 and `%` 37. In an
empty tile, at its centre: `@` ninja, `G` gold, `M` mine, `T` toggle mine, `S` exit switch, `X`
exit. The drawing starts in the upper left corner inside the border; what it leaves out is full.
Entity lines give quarter tiles of the full level; `facing`, `mode` and `switch x y` follow where
needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from frugal_rl.untrusted.printing import printable
from nclone.errors import LevelError
from nclone.levels import format as fmt
from nclone.levels.entity_types import SWITCH_OF, EntityType
from nclone.levels.format import pack_level

if TYPE_CHECKING:
    from nclone.levels.level import Level

GLYPHS = ".#23456789abcdefghijklmnopqrstuvwxyz&%"
"""Character of each tile type 0..37."""
MARKS = {
    "@": EntityType.NINJA,
    "G": EntityType.GOLD,
    "M": EntityType.MINE,
    "T": EntityType.TOGGLE_MINE,
    "X": EntityType.EXIT,
    "S": EntityType.EXIT_SWITCH,
}
_PAIRED = {EntityType.EXIT: EntityType.EXIT_SWITCH, **SWITCH_OF}
_NAMES = {kind.name.lower(): int(kind) for kind in EntityType}

Record = tuple[int, int, int, int, int]


def draw_level(level: Level) -> str:
    """The drawing of a level; `parse_drawing` gives back the same tiles and records."""
    if level.tiles.max() >= len(GLYPHS):
        raise LevelError(f"Tile type {level.tiles.max()} has no character; use 0..37.")
    grid = np.array(list(GLYPHS))[level.tiles[1:-1, 1:-1]]
    raw = np.frombuffer(level.map_data, np.uint8, offset=fmt.RECORDS_AT)
    records = [tuple(map(int, row)) for row in raw.reshape(-1, fmt.RECORD_BYTES)]
    drawn = _drawable(level.tiles, records)
    for kind, x, y, _, _ in (r for r in records if r[0] in drawn):
        grid[(y - 2) // 4 - 1, (x - 2) // 4 - 1] = drawn[kind]
    head = [f"title: {_text(level, fmt.TITLE_AT, fmt.AUTHOR_AT)}"]
    author = _text(level, fmt.AUTHOR_AT, fmt.TILES_AT)
    head += [f"author: {author}"] if author else []
    rows = ["".join(row) for row in grid]
    return "\n".join([*head, *rows, *_entity_lines(records, set(drawn))]) + "\n"


def parse_drawing(text: str) -> bytes:
    """The level bytes of a drawing.

    Raises:
        LevelError: names the line and what is expected there.
    """
    fields = {"title": "", "author": ""}
    grid = np.ones((fmt.PLAYABLE_ROWS, fmt.PLAYABLE_COLUMNS), np.uint8)
    records: list[Record] = []
    row = 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.rstrip()
        key, colon, value = line.partition(":")
        if not line or line.startswith(";"):
            continue
        if colon and key in fields:
            fields[key] = value.strip()
        elif line.split()[0] in _NAMES or line.startswith("type_"):
            records += _parse_entity(line, number)
        else:
            records += _parse_row(line, number, row, grid)
            row += 1
    return pack_level(grid, _pair_exits(records), fields["title"], fields["author"])


def _text(level: Level, start: int, end: int) -> str:
    return level.map_data[start:end].split(b"\0")[0].decode("latin-1")


def _drawable(tiles: NDArray[np.uint8], records: list[Record]) -> dict[int, str]:
    """Types whose every record can be a mark, so that reading order gives the same records."""
    marks: dict[int, str] = {int(kind): mark for mark, kind in MARKS.items()}
    places = [(x, y) for kind, x, y, _, _ in records if kind in marks]
    for kind in list(marks):
        own = [r for r in records if r[0] == kind]
        order = [(y, x) for _, x, y, _, _ in own]
        centred = all(
            x % 4 == 2
            and y % 4 == 2
            and 1 <= x // 4 <= fmt.PLAYABLE_COLUMNS
            and 1 <= y // 4 <= fmt.PLAYABLE_ROWS
            and (o, m) == (0, 0)
            and tiles[y // 4, x // 4] == 0
            and places.count((x, y)) == 1
            for _, x, y, o, m in own
        )
        if not centred or order != sorted(order):
            del marks[kind]
    exits = sum(r[0] == EntityType.EXIT for r in records)
    switches = sum(r[0] == EntityType.EXIT_SWITCH for r in records)
    if not (exits == switches == 1 and {3, 4} <= marks.keys()):
        marks.pop(EntityType.EXIT, None)
        marks.pop(EntityType.EXIT_SWITCH, None)
    return marks


def _entity_lines(records: list[Record], drawn: set[int]) -> list[str]:
    lines = []
    switches = [r for r in records if r[0] == EntityType.EXIT_SWITCH]
    skip = False
    for record, following in zip(records, [*records[1:], None], strict=True):
        kind = record[0]
        if skip or kind in drawn:
            skip = False
            continue
        line = _words(record, "")
        if kind == EntityType.EXIT and switches:
            line += _words(switches.pop(0), " switch")
        elif kind == EntityType.EXIT_SWITCH:
            if record not in switches:
                continue
            switches.remove(record)
        elif kind in SWITCH_OF and following and following[0] == _PAIRED[EntityType(kind)]:
            line += _words(following, " switch")
            skip = True
        lines.append(line)
    return lines


def _words(record: Record, name: str) -> str:
    kind, x, y, orientation, mode = record
    if not name:
        known = kind in list(EntityType)
        name = EntityType(kind).name.lower() if known else f"type_{kind}"
    facing = f" facing {orientation}" if orientation else ""
    return f"{name} {x} {y}{facing}{f' mode {mode}' if mode else ''}"


def _parse_row(line: str, number: int, row: int, grid: NDArray[np.uint8]) -> list[Record]:
    if row >= fmt.PLAYABLE_ROWS or len(line) > fmt.PLAYABLE_COLUMNS:
        raise LevelError(
            f"Line {number} does not fit: a drawing has at most {fmt.PLAYABLE_ROWS} rows of "
            f"{fmt.PLAYABLE_COLUMNS} characters. Is it an entity of unknown name?"
        )
    found: list[Record] = []
    for column, glyph in enumerate(line):
        if glyph in MARKS:
            grid[row, column] = 0
            found.append((int(MARKS[glyph]), 4 * (column + 1) + 2, 4 * (row + 1) + 2, 0, 0))
        elif glyph in GLYPHS:
            grid[row, column] = GLYPHS.index(glyph)
        else:
            raise LevelError(
                f"Line {number}, column {column + 1}: {glyph!r} is no tile ({GLYPHS}) and no mark "
                f"({''.join(MARKS)})."
            )
    return found


def _parse_entity(line: str, number: int) -> list[Record]:
    words = line.split()
    found: list[list[int]] = []
    try:
        kind = int(words[0][5:]) if words[0].startswith("type_") else _NAMES[words[0]]
        found.append([kind, int(words[1]), int(words[2]), 0, 0])
        at = 3
        while at < len(words):
            if words[at] == "switch":
                found.append(
                    [int(_PAIRED[EntityType(kind)]), int(words[at + 1]), int(words[at + 2]), 0, 0]
                )
                at += 3
            else:
                found[-1][{"facing": 3, "mode": 4}[words[at]]] = int(words[at + 1])
                at += 2
        if any(not 0 <= value <= 255 for record in found for value in record):
            raise ValueError
    except (ValueError, KeyError, IndexError):
        raise LevelError(
            f"Line {number}: {printable(line)!r} is no entity of bytes 0..255; write for example "
            "'locked_door 30 10 facing 2 switch 22 14'."
        ) from None
    return [(k, x, y, o, m) for k, x, y, o, m in found]


def _pair_exits(records: list[Record]) -> list[Record]:
    """Refuse a drawing whose exits and exit switches do not match in number."""
    exits = sum(r[0] == EntityType.EXIT for r in records)
    switches = sum(r[0] == EntityType.EXIT_SWITCH for r in records)
    if exits > switches:
        raise LevelError(f"The drawing has {exits} exits, but {switches} switches.")
    return records
