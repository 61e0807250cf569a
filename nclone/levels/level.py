"""A level as the rest of the package sees it, read from its bytes (specification, section 2)."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from frugal_rl.errors import DataError
from frugal_rl.untrusted.files import read_bytes
from nclone.errors import LevelError, LevelWarning
from nclone.geometry import COLUMNS, ROWS
from nclone.levels import format as fmt
from nclone.levels.entity_types import SWITCH_OF, EntityType

CREATED = frozenset(EntityType) - {
    EntityType.NINJA,
    EntityType.EXIT_SWITCH,
    EntityType.LOCKED_DOOR_SWITCH,
    EntityType.TRAP_DOOR_SWITCH,
}
"""Record types that create an entity of their own; all others create nothing."""
ORIENTED = frozenset(
    {
        EntityType.REGULAR_DOOR,
        EntityType.LOCKED_DOOR,
        EntityType.TRAP_DOOR,
        EntityType.LAUNCH_PAD,
        EntityType.ONE_WAY,
        EntityType.ZAP_DRONE,
        EntityType.MINI_DRONE,
    }
)
"""Types whose orientation byte must be 0..7."""
DRONES = frozenset({EntityType.ZAP_DRONE, EntityType.MINI_DRONE})
DOORS = frozenset({EntityType.REGULAR_DOOR, EntityType.LOCKED_DOOR, EntityType.TRAP_DOOR})

MOST_BYTES = 1 << 20
"""Far more than the records of a level may take; what is longer is not read at all."""
Source = bytes | bytearray | memoryview | NDArray[np.uint8] | str | Path


@dataclass(frozen=True, eq=False)
class Level:
    """Everything that is fixed about a level. All arrays are read-only."""

    map_data: bytes
    """The level bytes; each locked or trap door record is followed by its switch record."""
    tiles: NDArray[np.uint8]
    """[25, 44] tile ids by row and column; the border is 1."""
    entities: NDArray[np.float64]
    """[E, 5] type, x px, y px, orientation, mode in processing order (type ascending, then record
    order; an exit directly followed by its switch as type 4; doors stand at their switch)."""
    doors: NDArray[np.float64]
    """[D, 5] row in `entities`, centre x px, centre y px, 1 if its segment is horizontal,
    1 if closed at the start. A door's segment is 24 px long."""
    records: NDArray[np.int32]
    """[E] byte offset of the record that created each entity."""
    spawn: tuple[float, float]
    """Initial position of the ninja in px."""
    key: str
    """16 hexadecimal digits (BLAKE2b) that stand for the content."""
    name: str
    """The title, or the file's name, or the key."""

    @property
    def death_balls_declared(self) -> int:
        """The count byte that limits which death balls repel each other."""
        return self.map_data[fmt.COUNTS_AT + 2 * EntityType.DEATH_BALL]


def load_level(source: Source, named: str | Path = "") -> Level:
    """Read a level from a file, or from bytes, which messages call `named`.

    Raises:
        LevelError: the bytes are not a level; the message names the offset and the remedy.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        try:
            data = read_bytes(path, MOST_BYTES)
        except DataError as error:
            raise LevelError(f"The level file {error}") from error
        return _read(data, f"{path}: ", path.stem)
    return _read(bytes(source), f"{named}: " if named else "", "")


def _read(data: bytes, where: str, stem: str) -> Level:
    try:
        _check_frame(data)
        data, odd = _as_the_game_reads(data)
        entities, doors, offsets = _read_entities(data)
    except LevelError as error:
        raise LevelError(f"{where}{error}") from None
    for words in odd:
        warnings.warn(f"{where}{words}", LevelWarning, stacklevel=3)
    key = hashlib.blake2b(data, digest_size=8).hexdigest()
    title = data[fmt.TITLE_AT : fmt.AUTHOR_AT].split(b"\0")[0].decode("latin-1").strip()
    tiles = np.ones((ROWS, COLUMNS), np.uint8)
    inner = np.frombuffer(data, np.uint8, fmt.COUNTS_AT - fmt.TILES_AT, fmt.TILES_AT)
    tiles[1:-1, 1:-1] = inner.reshape(fmt.PLAYABLE_ROWS, fmt.PLAYABLE_COLUMNS)
    for array in (tiles, entities, doors, offsets):
        array.flags.writeable = False
    spawn = (float(fmt.UNIT_PX * data[1231]), float(fmt.UNIT_PX * data[1232]))
    return Level(data, tiles, entities, doors, offsets, spawn, key, title or stem or key)


def _check_frame(data: bytes) -> None:
    """The size of the file and its first record."""
    size = len(data)
    if size < fmt.RECORDS_AT + fmt.RECORD_BYTES:
        raise LevelError(
            f"The level ends at byte {size}, before the ninja's record at {fmt.RECORDS_AT} is "
            f"complete; a level has at least {fmt.RECORDS_AT + fmt.RECORD_BYTES} bytes. "
            "Is the file truncated?"
        )
    if (size - fmt.RECORDS_AT) // fmt.RECORD_BYTES > fmt.MAX_RECORDS:
        raise LevelError(
            f"The level has {size} bytes, more than {fmt.MAX_RECORDS} entity records allow "
            f"(end at byte {fmt.RECORDS_AT + fmt.MAX_RECORDS * fmt.RECORD_BYTES}). Is it a level?"
        )
    _check_position(data, fmt.RECORDS_AT)


def _as_the_game_reads(data: bytes) -> tuple[bytes, list[str]]:
    """The bytes that the game looks at, and what is odd about the level."""
    odd = []
    first = data[fmt.RECORDS_AT]
    if first != EntityType.NINJA:
        odd.append(
            f"The first entity record at byte {fmt.RECORDS_AT} has type {first}, not 0; the ninja "
            "starts at its place, as in the game."
        )
    left_over = (len(data) - fmt.RECORDS_AT) % fmt.RECORD_BYTES
    if left_over:
        at = len(data) - left_over
        odd.append(
            f"The last entity record at byte {at} has {left_over} of 5 bytes and is left out, as "
            "in the game."
        )
        data = data[:at]
    return data, odd


def _read_entities(
    data: bytes,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int32]]:
    """Entities and doors in processing order, and the record offset of each entity."""
    found: list[tuple[int, int]] = []
    for at in range(fmt.RECORDS_AT, len(data), fmt.RECORD_BYTES):
        if data[at] in CREATED:
            found.append((data[at], at))
    found.sort()  # by type, then by place
    rows: list[tuple[float, ...]] = []
    doors: list[tuple[float, ...]] = []
    offsets: list[int] = []
    for kind, at in found:
        _check_record(data, at)
        x, y = _check_position(data, at)
        orientation, mode = data[at + 3], data[at + 4]
        if kind in DOORS:
            horizontal = orientation not in (0, 4)
            doors.append((len(rows), x, y, horizontal, kind != EntityType.TRAP_DOOR))
            if kind != EntityType.REGULAR_DOOR:
                x, y = _switch_position(data, at, at + fmt.RECORD_BYTES)
        rows.append((kind, x, y, orientation, mode))
        offsets.append(at)
        if kind == EntityType.EXIT:
            exits = data[fmt.COUNTS_AT + 2 * EntityType.EXIT]
            x, y = _switch_position(data, at, at + exits * fmt.RECORD_BYTES)
            rows.append((EntityType.EXIT_SWITCH, x, y, orientation, mode))
            offsets.append(at)
    return (
        np.array(rows, np.float64).reshape(-1, 5),
        np.array(doors, np.float64).reshape(-1, 5),
        np.array(offsets, np.int32),
    )


def _check_record(data: bytes, at: int) -> None:
    """Orientation and mode bytes that the physics would not understand."""
    kind = EntityType(data[at])
    if kind in ORIENTED and data[at + 3] > 7:
        raise LevelError(
            f"The orientation of the {_words(kind)} at byte {at + 3} is {data[at + 3]}; use 0..7."
        )
    if kind in DRONES and data[at + 4] > 3:
        raise LevelError(
            f"The mode of the {_words(kind)} at byte {at + 4} is {data[at + 4]}; use 0..3."
        )


def _check_position(data: bytes, at: int) -> tuple[float, float]:
    x, y = data[at + 1], data[at + 2]
    if x > fmt.MAX_X_UNITS or y > fmt.MAX_Y_UNITS:
        raise LevelError(
            f"The {_words(data[at])} record at byte {at} stands at ({x}, {y}), outside the map; "
            f"x may be 0..{fmt.MAX_X_UNITS} and y 0..{fmt.MAX_Y_UNITS} (quarter tiles)."
        )
    return float(fmt.UNIT_PX * x), float(fmt.UNIT_PX * y)


def _switch_position(data: bytes, at: int, switch_at: int) -> tuple[float, float]:
    """Position in the record at `switch_at`, which must be the switch of the record at `at`."""
    kind = data[at]
    wanted = EntityType.EXIT_SWITCH if kind == EntityType.EXIT else SWITCH_OF[EntityType(kind)]
    if switch_at >= len(data) or data[switch_at] != wanted:
        found = f"type {data[switch_at]}" if switch_at < len(data) else "the end of the data"
        remedy = (
            f"All exits come first, then as many switches; byte {fmt.COUNTS_AT + 2 * kind} "
            f"counts the exits and is {data[fmt.COUNTS_AT + 2 * kind]}."
            if kind == EntityType.EXIT
            else "Write the switch record directly behind the door."
        )
        raise LevelError(
            f"The {_words(kind)} at byte {at} expects its switch (type {int(wanted)}) at byte "
            f"{switch_at}, where {found} stands. {remedy}"
        )
    return _check_position(data, switch_at)


def _words(kind: int) -> str:
    try:
        return EntityType(kind).name.lower().replace("_", " ")
    except ValueError:
        return f"type {kind}"
