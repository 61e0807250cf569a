"""Rounds in which Duel's computer draws its scripts by given shares, and what each draw brought.

The cartridge looks a script up in a table of eight for each situation of each plan (plans.inc).
Here that one look is a draw of ours, which is noted: so a table can be judged place by place, and
improved, without an assembly in between.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numba import njit

from fighting.machine import duel
from fighting.opponents.lines import ACTIONS, Lines, steps
from fighting.rom.logic import address, compiled, in_c
from fighting.rom.native import READ
from fighting.signals import RAM_BYTES, SIGNALS
from fighting.tools.arena import ONE, RING, TWO, Arena, Reflexes, drawn_starts, played_round

PLANS, SITUATIONS, CHOICES, SCRIPTS = 4, 32, 8, 20
"""Plans without the one of mistakes, situations, places for each, scripts to name there."""
ROWS = PLANS * SITUATIONS
MOST_DRAWS = 4096
LONGEST = 3
"""Lines of a script."""
FADES = 0.996
"""What a change of the lead counts one frame later."""
BLOW = 30.0
"""Health that counts as much as the round's result."""
SKIPS = (2, 4, 6)
NOTED = f"""
static float bound[{ROWS * SCRIPTS}];
static uint64_t seed = 1;
static int32_t note[{4 * MOST_DRAWS}], notes, frames_gone;
static uint8_t drawn(unsigned place, uint8_t *ram) {{
  unsigned row = place >> 3;
  int script = 0;
  seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
  float at = (seed >> 40) / 16777216.0f;
  while (script < {SCRIPTS - 1} && at >= bound[row * {SCRIPTS} + script]) script++;
  if (notes < {MOST_DRAWS}) {{
    int32_t *to = note + 4 * notes++;
    to[0] = row, to[1] = script, to[2] = ram[0x200] - ram[0x100], to[3] = frames_gone;
  }}
  return script;
}}
"""
"""Row, script, lead and frame of each draw."""
ROUTINES = f"""
void noted_frame(uint8_t *ram, const uint8_t *rom) {{ frames_gone++, frame(ram, rom); }}
void begin(void) {{ notes = frames_gone = 0; }}
int32_t taken(int32_t *out) {{
  for (int i = 0; i < 4 * notes; i++) out[i] = note[i];
  return notes;
}}
void mix(const float *bounds, uint64_t sown) {{
  for (int i = 0; i < {ROWS * SCRIPTS}; i++) bound[i] = bounds[i];
  seed = sown;
}}
"""


def first_plan() -> int:
    """Where the cartridge's plans begin, after that of mistakes."""
    return address("Plans") + SITUATIONS * CHOICES


@cache
def noted() -> ctypes.CDLL:
    """The logic with draws in the place of the four plans; one mixture for each process.

    noted_frame(ram, rom)  one frame
    begin(), taken(out)    forget the notes; copy them to (4096, 4) int32, and how many there are
    mix(bounds, seed)      cumulative shares (128, 20) float32 to draw by, a seed that is not 0
    """
    first = first_plan()
    within = f"(unsigned)((x) - {first}) < {PLANS * 256}"
    look = f"({within} ? drawn((x) - {first}, ram) : rom[x])"
    read = f"#define RD(x) ((x) < 0x8000 ? {look} : ram[(x) & 0x1FFF])"
    found = compiled(in_c().replace(READ, NOTED + read) + ROUTINES)
    number = ctypes.c_void_p
    found.noted_frame.argtypes, found.noted_frame.restype = (number, number), None
    found.begin.argtypes, found.begin.restype = (), None
    found.taken.argtypes, found.taken.restype = (number,), ctypes.c_int32
    found.mix.argtypes, found.mix.restype = (number, ctypes.c_uint64), None
    return found


@dataclass(frozen=True)
class Brought:
    """What rounds brought.

    points  (R,) float64, the scripts': 1 won, 0.5 drawn
    gain    (128, 20) float64, what followed each draw beyond what was expected, summed up
    drawn   (128, 20) float64, how often
    """

    points: np.ndarray
    gain: np.ndarray
    drawn: np.ndarray


class MixedArena(Arena):
    """Rounds against shares of scripts (128, 20) instead of the cartridge's table."""

    def __init__(self) -> None:
        super().__init__()
        self._library = noted()
        self._noted = _kernel(self._library)
        tables = [steps(skip) for skip in SKIPS]
        width = max(table.shape[1] for table, _ in tables)
        self._tables = np.zeros((len(SKIPS), len(ACTIONS), width), np.int64)
        for to, (table, _) in zip(self._tables, tables, strict=True):
            to[:, : table.shape[1]] = table
        self._counts = np.stack([counts for _, counts in tables])

    def brought(
        self,
        shares: np.ndarray,
        scripts: Sequence[Lines],
        reflexes: Sequence[Reflexes],
        expected: np.ndarray,
        usual: np.ndarray,
        seed: int,
    ) -> Brought:
        """One round of each script at level 7.

        Args:
            shares: (128, 20) float64, each row adds up to 1.
            scripts: one for each of R rounds.
            reflexes: of who plays each.
            expected: (R,) float64, the points that each script wins on average.
            usual: (128,) float64, what follows a draw in each row on average.
            seed: of starts, then of draws; the same starts as of `Arena.points`.
        """
        rng = np.random.default_rng(seed)
        rounds = len(scripts)
        bounds = np.ascontiguousarray(np.cumsum(shares, axis=1), np.float32)
        starts = drawn_starts(rng, rounds)
        self._library.mix(bounds.ctypes.data, int(rng.integers(1, 1 << 62)))
        lines = np.zeros((rounds, LONGEST, 4), np.int64)
        for row, script in zip(lines, scripts, strict=True):
            row[: len(script)] = np.reshape(script, (-1, 4))
        hows = [(r.frame_skip, min(r.press, r.frame_skip), r.late) for r in reflexes]
        how = np.array(hows, np.int64).reshape(-1, 3)
        found = Brought(np.zeros(rounds), np.zeros((ROWS, SCRIPTS)), np.zeros((ROWS, SCRIPTS)))
        order = self.mailbox(duel.MatchSettings(duel.HOST_CPU, level=7, wins_needed=1))
        given = (lines, starts, how, self._tables, self._counts, self.combos, expected, usual)
        self._noted(self.rom, order, *given, found.points, found.gain, found.drawn)
        return found


@njit(nogil=True)
def credit(note, count, lead, end, usual, gain, drawn):
    """To each draw (N, 4) the result, and how the lead went on changing until `lead`."""
    changes, after, faded = 0.0, lead, 1.0
    for n in range(count - 1, -1, -1):
        row, script, now, frame = note[n]
        changes = (after - now) / BLOW + faded * changes
        gain[row, script] += changes + end - usual[row]
        drawn[row, script] += 1
        after = now
        if n:
            faded = FADES ** (frame - note[n - 1, 3])


def _kernel(library: ctypes.CDLL) -> Callable[..., None]:
    """Rounds around the noted frame."""
    begin, taken = library.begin, library.taken
    one_round = played_round(library.noted_frame)

    @njit(nogil=True)
    def rounds(
        rom,
        order,
        lines,
        starts,
        hows,
        tables,
        counts,
        combos,
        expected,
        usual,
        points,
        gain,
        drawn,
    ):
        ram, seen = np.empty_like(order), np.zeros((RING, RAM_BYTES), np.uint8)
        signals, note = np.zeros(SIGNALS, np.uint8), np.empty((MOST_DRAWS, 4), np.int32)
        for n in range(lines.shape[0]):
            ram[:] = order
            ram[8], ram[9], ram[15] = starts[n, 0] & 0xFF, starts[n, 0] >> 8, starts[n, 1]
            begin()
            way = hows[n, 0] // 2 - 1
            table, count = tables[way], counts[way]
            points[n] = one_round(rom, ram, lines[n], hows[n], table, count, combos, seen, signals)
            lead = float(ram[TWO]) - float(ram[ONE])
            end = 2 * (expected[n] - points[n])
            credit(note, taken(note.ctypes.data), lead, end, usual, gain, drawn)

    return rounds
