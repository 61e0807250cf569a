"""Many fights of short scripts against Duel's computer, and of its levels, without an emulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from fighting.cartridge.buttons import sided_combos
from fighting.cartridge.reading import load_profile
from fighting.machine import duel
from fighting.machine.native_emulators import ready_ram
from fighting.opponents.lines import Lines, chosen, steps
from fighting.rom import DUEL
from fighting.rom.logic import library
from fighting.signals import RAM_BYTES, SIGNALS, look, stands_left

RING = 32
"""Frames that a late script may look back."""
QUEUED = 0x42
"""Tiles that wait for the picture (wHudCount), which would take them in every frame."""
STATE, ONE, TWO = duel.STATE & 0x1FFF, duel.FIGHTERS[0] & 0x1FFF, duel.FIGHTERS[1] & 0x1FFF
IN1, ATTACKS = duel.P1_IN & 0x1FFF, duel.A | duel.B
MOST_FRAMES = 6400
PHASE, RESULT, FIGHT, MATCH_OVER = duel.PHASE, duel.RESULT, duel.FIGHT, duel.MATCH_OVER


@dataclass(frozen=True)
class Reflexes:
    """How a script plays: frames per action, and by how many frames it sees late."""

    frame_skip: int = 4
    late: int = 0
    press: int = 2


def drawn_starts(rng: np.random.Generator, rounds: int) -> np.ndarray:
    """As in training: a random number and a distance of 40 to 100 pixels (R, 2) int64."""
    return np.stack([rng.integers(1, 1 << 16, rounds), rng.integers(40, 101, rounds)], axis=1)


class Arena:
    """Fights by the cartridge's logic as machine code; a round takes about a millisecond."""

    def __init__(self) -> None:
        self.ready = ready_ram()
        self.rom = np.frombuffer(DUEL.image.read_bytes(), np.uint8).copy()
        self._rounds, self._match = _kernels(library().frame)
        self.combos = sided_combos(load_profile("duel").combos)

    def mailbox(self, settings: duel.MatchSettings) -> np.ndarray:
        """The work RAM with an order for a new match in its mailbox."""
        ram = self.ready.copy()
        for address, value in duel.order(settings).items():
            ram[address & 0x1FFF] = value
        return ram

    def points(
        self,
        scripts: Sequence[Lines],
        level: int,
        rounds: int,
        reflexes: Reflexes,
        seed: int | Sequence[int],
    ) -> np.ndarray:
        """Points (S,) float64 of each script in `rounds` rounds: 1 won, 0.5 drawn."""
        starts = drawn_starts(np.random.default_rng(seed), rounds)
        table, counts = steps(reflexes.frame_skip)
        lines = np.zeros((len(scripts), max(map(len, scripts), default=0), 4), np.int64)
        for row, script in zip(lines, scripts, strict=True):
            row[: len(script)] = np.reshape(script, (-1, 4))  # lines of zeros never hold
        out = np.zeros(len(scripts))
        ram = self.mailbox(duel.MatchSettings(duel.HOST_CPU, level=level, wins_needed=1))
        how = np.array(
            [reflexes.frame_skip, min(reflexes.press, reflexes.frame_skip), reflexes.late]
        )
        self._rounds(self.rom, ram, lines, starts, how, table, counts, self.combos, out)
        return out

    def matches_won(self, level: int, other: int, matches: int, seed: int = 0) -> int:
        """Whole matches that a level wins against another one, sides swapped each time."""
        won = 0
        for number in range(matches):
            swapped = number % 2 == 1
            first, second = (level, other) if swapped else (other, level)
            drawn = (seed + number) * 7919 % 65535 + 1
            order = duel.MatchSettings(duel.CPU_CPU, level=second, level1=first, seed=drawn)
            won += self._match(self.rom, self.mailbox(order)) == (1 if swapped else 2)
        return won


def played_round(frame: Callable[[int, int], None]) -> Callable[..., float]:
    """One round of a script, around a routine that runs one frame."""

    @njit(nogil=True)
    def run(rom, ram, frames, seen, at):
        """Some frames, in place; what they leave goes to seen (RING, 98), the last at `at`."""
        for _ in range(frames):
            frame(ram.ctypes.data, rom.ctypes.data)
            ram[QUEUED] = 0
            at = (at + 1) % RING
            seen[at, :22] = ram[STATE : STATE + 22]
            seen[at, 22:60] = ram[ONE : ONE + 38]
            seen[at, 60:] = ram[TWO : TWO + 38]
        return at

    @njit(nogil=True)
    def one_round(rom, ram, script, how, table, counts, combos, seen, signals):
        skip, press, late = how
        at = run(rom, ram, 1, seen, 0)
        for n in range(RING):
            seen[n] = seen[at]
        action, step = 0, 0
        for _ in range(MOST_FRAMES // skip):
            if ram[STATE + PHASE] != FIGHT:
                break
            view = seen[(at - late) % RING]
            if step == 0:
                look(view, 0, signals)
                action = chosen(script, signals)
            buttons = combos[1 if stands_left(view, 0) else 0, table[action, step]]
            step = (step + 1) % counts[action]
            ram[IN1] = buttons
            if 0 < press < skip and buttons & ATTACKS:
                at = run(rom, ram, press, seen, at)
                ram[IN1] = buttons & ~ATTACKS
                at = run(rom, ram, skip - press, seen, at)
            else:
                at = run(rom, ram, skip, seen, at)
        result = ram[STATE + RESULT]
        return 1.0 if result == 1 else 0.5 if result == 3 else 0.0

    return one_round


def _kernels(frame: Callable[[int, int], None]) -> tuple[Callable[..., None], Callable[..., int]]:
    """Rounds of scripts, and one match of two levels, around a routine that runs one frame."""
    one_round = played_round(frame)

    @njit(nogil=True)
    def rounds(rom, order, lines, starts, how, table, counts, combos, out):
        ram, seen = np.empty_like(order), np.zeros((RING, RAM_BYTES), np.uint8)
        signals = np.zeros(SIGNALS, np.uint8)
        for s in range(lines.shape[0]):
            for n in range(starts.shape[0]):
                ram[:] = order
                ram[8], ram[9], ram[15] = starts[n, 0] & 0xFF, starts[n, 0] >> 8, starts[n, 1]
                out[s] += one_round(rom, ram, lines[s], how, table, counts, combos, seen, signals)

    @njit(nogil=True)
    def match(rom, ram):
        for _ in range(5 * MOST_FRAMES):
            frame(ram.ctypes.data, rom.ctypes.data)
            ram[QUEUED] = 0
            if ram[STATE + PHASE] == MATCH_OVER:
                break
        return ram[STATE + RESULT]

    return rounds, match
