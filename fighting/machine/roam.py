"""The Roam cartridge as its host sees it: its addresses, and its world as an array."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fighting.rom import ROAM

if TYPE_CHECKING:
    from fighting.machine.emulator import Emulator

KEYS, PLACE_X, PLACE_Y, REGION, REGIONS, PLACES = 0xC003, 0xC010, 0xC011, 0xC013, 0xC014, 0xC015
DOORS, SIDES, BEYOND, HERE, TIMES, AROUND = 0xC017, 0xC020, 0xC024, 0xC028, 0xC02C, 0xC030
ROOMS, COUNTS, ENTERED, TRODDEN = 0xC100, 0xC180, 0xC200, 0xC800
WORLD = (128, 256)
"""Rows and columns of tiles."""
ROOM, NOOK = 16, 4
TREE, BRICK, DOOR, GRASS, FRESH, KEY = range(2, 8)
"""Tiles; the walker stands on those from GRASS (trodden) on."""
WAY = slice(7, 9)
"""Where ways and doors stand in a room's side."""
PLANS = 0x1000
"""Where the image has its eight plans of rooms."""


def plans() -> np.ndarray:
    """(8, 16, 16) bool, true where a tree stands."""
    image = np.frombuffer(ROAM.image.read_bytes(), np.uint8)[PLANS : PLANS + 256]
    return np.unpackbits(image).reshape(8, ROOM, ROOM).astype(bool)


def room_tiles(room: int, plan: np.ndarray) -> np.ndarray:
    """One room's byte and its plan (16, 16) bool -> (16, 16) uint8 tiles, nothing trodden."""
    tiles = np.where(plan, TREE, FRESH).astype(np.uint8)
    tiles[0] = tiles[:, 0] = BRICK
    side = (BRICK, FRESH, DOOR)
    tiles[WAY, 0], tiles[0, WAY] = side[room & 3], side[room >> 2 & 3]
    if room & 16:
        tiles[NOOK, NOOK] = KEY
    return tiles


def world(emulator: Emulator) -> np.ndarray:
    """(128, 256) uint8: the tiles of a running cartridge."""
    rooms, kinds = emulator.read(ROOMS, 128), plans()
    rows = [[room_tiles(b, kinds[b >> 5]) for b in rooms[r : r + 16]] for r in range(0, 128, 16)]
    tiles = np.block(rows)
    tiles[(tiles == FRESH) & trodden(emulator)] = GRASS
    return tiles


def trodden(emulator: Emulator) -> np.ndarray:
    """(128, 256) bool: where the walker has been."""
    bits = np.array(emulator.read(TRODDEN, WORLD[0] * WORLD[1] // 8), np.uint8)
    return np.unpackbits(bits).reshape(WORLD).astype(bool)
