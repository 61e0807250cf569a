"""What a fighter sees of the cartridge's memory: 24 bytes, and the 48 features they stand for.

Every feature is a number looked up by one byte, so that a transition stores the bytes and the
network's device looks the features up. The seat that looks comes first; places are measured from
the wall behind it, so that both sides of the screen look the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit

from fighting.machine.duel import HP_MAX, X

RAM_BYTES = 22 + 2 * 38
"""State ($C020) and both fighters ($C100, $C200), as the vector environment copies them."""
FIRST, SECOND = 22, 22 + 38
SIGNALS = 24
FEATURES = 48
STATES = 14
(
    OWN_HP,
    HIS_HP,
    HP_LEAD,
    DISTANCE,
    OWN_X,
    HIS_X,
    OWN_Y,
    HIS_Y,
    FACING,
    OWN_STATE,
    HIS_STATE,
    OWN_STUN,
    HIS_STUN,
    OWN_STARTUP,
    OWN_ACTIVE,
    OWN_RECOVERY,
    HIS_STARTUP,
    HIS_ACTIVE,
    HIS_RECOVERY,
    OWN_WAVE,
    HIS_WAVE,
    TIMER,
    OWN_WINS,
    HIS_WINS,
) = range(SIGNALS)

# Startup, first frame after the active ones, whole move: as in the cartridge's table.
TIMING = np.array(
    [
        [0, 0, 0],
        [4, 7, 14],
        [9, 13, 29],
        [5, 8, 16],
        [10, 14, 34],
        [5, 36, 39],
        [7, 15, 41],
        [13, 13, 47],
        [5, 15, 61],
        [3, 4, 26],
    ],
    np.int64,
)


@njit(cache=True)
def stands_left(ram, seat):
    """Whether the seat's fighter stands left of his opponent; player 1 does at the same place."""
    return (ram[FIRST + X] <= ram[SECOND + X]) == (seat == 0)


@njit(cache=True)
def left_sides(ram, machine, seats, out):
    """`stands_left` of rows: ram (M, 98), machine, seats (N,) -> out (N,) uint8, 0 or 1."""
    for n in range(out.shape[0]):
        out[n] = stands_left(ram[machine[n]], seats[n])


@njit(cache=True)
def look(ram, seat, out):
    """One seat's view: ram (98,) uint8, seat 0 or 1 -> out (24,) uint8."""
    me = FIRST if seat == 0 else SECOND
    he = SECOND if seat == 0 else FIRST
    own_x, his_x = np.int64(ram[me + 2]), np.int64(ram[he + 2])
    on_the_left = stands_left(ram, seat)
    out[OWN_HP], out[HIS_HP] = ram[me], ram[he]
    out[HP_LEAD] = HP_MAX + np.int64(ram[me]) - np.int64(ram[he])
    out[DISTANCE] = abs(own_x - his_x)
    out[OWN_X] = own_x if on_the_left else 160 - own_x
    out[HIS_X] = his_x if on_the_left else 160 - his_x
    out[OWN_Y], out[HIS_Y] = ram[me + 4], ram[he + 4]
    own_right, his_right = ram[me + 6] == 0, ram[he + 6] == 0
    out[FACING] = (own_right == on_the_left) + 2 * (his_right != on_the_left)
    out[OWN_STATE], out[HIS_STATE] = ram[me + 7], ram[he + 7]
    out[OWN_STUN], out[HIS_STUN] = ram[me + 11], ram[he + 11]
    for who, first in ((me, OWN_STARTUP), (he, HIS_STARTUP)):
        move, time = np.int64(ram[who + 9]), np.int64(ram[who + 8])
        startup, end, total = TIMING[move, 0], TIMING[move, 1], TIMING[move, 2]
        out[first] = out[first + 1] = out[first + 2] = 0
        if move > 0 and time < startup:
            out[first] = startup - time
        elif move > 0 and time < end:
            out[first + 1] = end - time
        elif move > 0:
            out[first + 2] = max(total - time, 1)
    out[OWN_WAVE] = 1 + abs(np.int64(ram[me + 33]) - his_x) if ram[me + 32] else 0
    out[HIS_WAVE] = 1 + abs(np.int64(ram[he + 33]) - own_x) if ram[he + 32] else 0
    out[TIMER] = ram[5]
    out[OWN_WINS], out[HIS_WINS] = (ram[7], ram[8]) if seat == 0 else (ram[8], ram[7])


@njit(cache=True)
def look_all(ram, machine, seats, out):
    """Rows' views: ram (M, 98) uint8, machine, seats (N,) -> out (N, 24) uint8."""
    for n in range(out.shape[0]):
        look(ram[machine[n]], seats[n], out[n])


def _feature_table() -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Which signal each feature reads [48], its value per byte [48, 256], its name."""
    byte = np.arange(256, dtype=np.float64)
    waves = np.where(byte > 0, np.clip(1 - (byte - 1) / 160, 0, 1), 0)
    rows: list[tuple[str, int, np.ndarray]] = [
        ("own hp", OWN_HP, byte / HP_MAX),
        ("his hp", HIS_HP, byte / HP_MAX),
        ("lead", HP_LEAD, (byte - HP_MAX) / HP_MAX),
        ("distance", DISTANCE, byte / 136),
        ("own x", OWN_X, (byte - 80) / 68),
        ("his x", HIS_X, (byte - 80) / 68),
        ("own y", OWN_Y, byte / 40),
        ("his y", HIS_Y, byte / 40),
        ("facing", FACING, (2 * byte - 3) / 3),
        ("own stun", OWN_STUN, byte / 48),
        ("his stun", HIS_STUN, byte / 48),
        ("own startup", OWN_STARTUP, byte / 13),
        ("own active", OWN_ACTIVE, byte / 31),
        ("own recovery", OWN_RECOVERY, byte / 46),
        ("his startup", HIS_STARTUP, byte / 13),
        ("his active", HIS_ACTIVE, byte / 31),
        ("his recovery", HIS_RECOVERY, byte / 46),
        ("own wave", OWN_WAVE, waves),
        ("his wave", HIS_WAVE, waves),
        ("time", TIMER, byte / 99),
        ("own wins", OWN_WINS, byte / 3),
        ("his wins", HIS_WINS, byte / 3),
    ]
    # Winning and losing poses come after the decision and share one feature.
    group = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 11, 12])
    for who, signal in (("own", OWN_STATE), ("his", HIS_STATE)):
        for k in range(13):
            value = np.zeros(256)
            value[:STATES] = group == k
            rows.append((f"{who} state {k}", signal, value))
    source = np.array([signal for _, signal, _ in rows], np.int64)
    table = np.clip(np.stack([values for _, _, values in rows]), -1, 1).astype(np.float32)
    return source, table, tuple(name for name, _, _ in rows)


SOURCE, TABLE, NAMES = _feature_table()
EVERY = np.arange(FEATURES)


def features(sources: Mapping[str, np.ndarray], tables: Any) -> np.ndarray:
    """`signals` [..., 24] uint8 -> [..., 48] float32 in [-1, 1]."""
    return TABLE[EVERY, sources["signals"][..., SOURCE]]
