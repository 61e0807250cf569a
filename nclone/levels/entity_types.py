"""The entity types of the level format, by the number that a record begins with."""

from __future__ import annotations

from enum import IntEnum


class EntityType(IntEnum):
    """Entity types of the format that the simulator knows."""

    NINJA = 0
    MINE = 1
    GOLD = 2
    EXIT = 3
    EXIT_SWITCH = 4
    REGULAR_DOOR = 5
    LOCKED_DOOR = 6
    LOCKED_DOOR_SWITCH = 7
    TRAP_DOOR = 8
    TRAP_DOOR_SWITCH = 9
    LAUNCH_PAD = 10
    ONE_WAY = 11
    ZAP_DRONE = 14
    BOUNCE_BLOCK = 17
    THWUMP = 20
    TOGGLE_MINE = 21
    BOOST_PAD = 24
    DEATH_BALL = 25
    MINI_DRONE = 26
    SHOVE_THWUMP = 28


SWITCH_OF = {
    EntityType.LOCKED_DOOR: EntityType.LOCKED_DOOR_SWITCH,
    EntityType.TRAP_DOOR: EntityType.TRAP_DOOR_SWITCH,
}
"""Doors whose record is followed by the record of their switch."""
