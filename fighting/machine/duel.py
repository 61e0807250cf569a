"""The Duel cartridge as its host sees it: addresses, fields and the mailbox (version 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fighting.machine.emulator import Emulator

MAGIC = b"DUEL"
VERSION = 1
HP_MAX = 112

COMMAND, MODE, LEVEL, SEED = 0xC005, 0xC006, 0xC007, 0xC008
P1_IN, P2_IN, LEVEL1 = 0xC010, 0xC011, 0xC012
STATE, STATE_BYTES = 0xC020, 22
FIGHTERS = (0xC100, 0xC200)
FIGHTER_BYTES = 0x26
NEW_MATCH, NEW_ROUND, FREEZE, RESUME = 1, 2, 3, 4
JOYPAD_CPU, JOYPAD_HOST, HOST_HOST, HOST_CPU, CPU_CPU = range(5)
BOOT, INTRO, FIGHT, ROUND_OVER, MATCH_OVER, FROZEN = range(6)
NO_INTRO, SHORT_END, NO_TIMER, NO_HITSTOP, RESTART = 1, 2, 4, 8, 16
A, B, SELECT, START, RIGHT, LEFT, UP, DOWN = (1 << bit for bit in range(8))

# Offsets from STATE.
FRAME, PHASE, PHASE_T, ROUND, TIMER, TIMER_SUB, WINS1, WINS2, RESULT, REASON = (
    0,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
)
KOS1, KOS2, RNG, MATCHES, LAG, HITSTOP = 11, 13, 16, 18, 20, 21
# Offsets from a fighter's address.
HP, HP_SHOWN, X, X_SUB, Y, VY, FACE, F_STATE, STATE_T, MOVE, HIT_DONE, STUN = range(12)
BLOCK, COMBO, INVUL, IN, IN_PREV = range(12, 17)
DEALT, LANDED, BLOCKED, THROWS, PROJECTILE, Y_SUB = 0x1A, 0x1C, 0x1D, 0x1E, 0x20, 0x25
STATES = (
    "idle",
    "forward",
    "back",
    "crouch",
    "jump",
    "attack",
    "hit",
    "block",
    "down",
    "rising",
    "win",
    "lose",
    "throwing",
    "thrown",
)
MOVES = (
    "none",
    "light",
    "heavy",
    "crouch light",
    "sweep",
    "air light",
    "air heavy",
    "wave",
    "rising strike",
    "throw",
)


@dataclass(frozen=True)
class MatchSettings:
    """What the mailbox says when a match begins."""

    mode: int = HOST_CPU
    level: int = 0
    level1: int = 0
    seed: int = 1
    round_seconds: int = 60
    wins_needed: int = 2
    hp: tuple[int, int] = (HP_MAX, HP_MAX)
    flags: int = NO_INTRO | SHORT_END
    gap: int = 64


def order(settings: MatchSettings) -> dict[int, int]:
    """The bytes of the mailbox, by address, with which the cartridge begins a match."""
    return {
        MODE: settings.mode,
        LEVEL: settings.level,
        SEED: settings.seed & 0xFF,
        SEED + 1: settings.seed >> 8 & 0xFF,
        0xC00A: settings.round_seconds,
        0xC00B: settings.wins_needed,
        0xC00C: settings.hp[0],
        0xC00D: settings.hp[1],
        0xC00E: settings.flags,
        0xC00F: settings.gap,
        P1_IN: 0,
        P2_IN: 0,
        LEVEL1: settings.level1,
        COMMAND: NEW_MATCH,
    }


def start_match(emulator: Emulator, settings: MatchSettings) -> None:
    """Begins a match; the cartridge obeys within the one frame that this emulates."""
    for address, value in order(settings).items():
        emulator.memory[address] = value
    emulator.tick()
