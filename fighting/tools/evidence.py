"""Evidence: how well each address agrees with what a person says has happened.

Memory is seen frame by frame. A mark looks back over two seconds, or for `nothing` to the mark
before: what moved as the mark says agrees with it, the rest is contradicted. Nothing is struck out,
since people err: addresses are ordered by how many marks agree less how many do not, and by how
much else they change.

What is weighed, A = 24,574 numbers: each byte of work memory (8,192), and every two neighbours
(8,191) as one number, the low byte first, then the high byte first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fighting.cartridge.memory import Kind
from fighting.tools.candidates import WORK_RAM, WORK_RAM_BYTES, Candidate
from fighting.tools.marks import Mark

WINDOW_FRAMES = 120
"""A mark tells of the two seconds before it."""
PAIRS = WORK_RAM_BYTES - 1
NUMBERS = WORK_RAM_BYTES + 2 * PAIRS
LITTLE, BIG = slice(WORK_RAM_BYTES, -PAIRS), slice(-PAIRS, None)
NAMED = 10
"""Fewer candidates than that are named one by one; of more of them"""
FIRST = 3
"""the likeliest."""
ONE_WRONG = 2
"""A mark that should have agreed, and did not, is worth so much."""


@dataclass(frozen=True)
class Wanted:
    """What is looked for: numbers that move one way before a mark."""

    words: str
    mark: Mark
    rises: bool


HEALTH = Wanted("health or lives", Mark.lost, rises=False)
SCORE = Wanted("score", Mark.gained, rises=True)
RIVAL = Wanted("the rival's health", Mark.gained, rises=False)
CONCEDED = Wanted("the rival's score", Mark.lost, rises=True)
WANTED = (HEALTH, SCORE, RIVAL, CONCEDED)


@dataclass(frozen=True)
class Place:
    """A number in work memory, and the marks for and against it."""

    addr: int
    size: int
    big: bool
    agreed: int
    against: int
    told: int
    """Changes that marks tell of."""
    unmarked: int
    """Changes that no mark tells of."""

    @property
    def weight(self) -> float:
        """By what places are ordered."""
        return float(self.agreed - self.against - self.unmarked**0.5)

    def __str__(self) -> str:
        """`$C003 4:1`, or `$C001-$C002 4:1` of two bytes."""
        last = f"-${self.addr + 1:04X}" if self.size == 2 else ""
        return f"${self.addr:04X}{last} {self.agreed}:{self.against}"

    def candidate(self, name: str, memory: np.ndarray) -> Candidate:
        """A line for a profile; memory (F, 8192) uint8 says how large the number gets."""
        column = self.addr - WORK_RAM
        decimal = is_decimal(memory[:, column : column + self.size])
        kind = Kind.bcd if decimal and (self.big or self.size == 1) else Kind.binary
        changes = f"{self.told} of {self.told + self.unmarked} changes marked"
        reason = f"{self.agreed} marks agree, {self.against} do not, {changes}"
        found = Candidate(name, self.addr, 0, reason, kind.value, size=self.size, big=self.big)
        return replace(found, value=int(found.over_time(memory).max()))


class Evidence:
    """Sees frames of work memory, hears marks, says what is left."""

    def __init__(self) -> None:
        self.last: np.ndarray | None = None
        """The numbers of the last frame, [A] uint16."""
        self.frames = 0
        self.recent = np.zeros((2, WINDOW_FRAMES, NUMBERS), bool)
        """What fell [0] and rose [1] in each of the last frames, in a ring."""
        self.counted = {wanted: np.ones(WINDOW_FRAMES, bool) for wanted in WANTED}
        """Frames of the ring whose movements a mark has told of already."""
        self.changes = np.zeros(NUMBERS, np.int32)
        self.told = {wanted: np.zeros(NUMBERS, np.int32) for wanted in WANTED}
        """Changes that a mark tells of."""
        self.stirred = np.zeros(NUMBERS, bool)
        """Whether it changed since the last mark."""
        self.marks = dict.fromkeys(Mark, 0)
        self.met = {wanted: np.zeros(NUMBERS, np.int32) for wanted in WANTED}
        """Marks of a loss or a gain that agree."""
        self.calm = np.zeros(NUMBERS, np.int32)
        """Marks of nothing that agree."""
        self.carries = np.zeros((2, PAIRS), np.int32)
        """How often a pair's high byte moved as the low one turned over: low first, high first."""
        self.torn = np.zeros((2, PAIRS), bool)
        """Pairs whose high byte moves by itself: two numbers, not one."""

    def see(self, ram: np.ndarray) -> None:
        """The next frame's work memory, [8192] uint8."""
        now = numbers(ram)
        if self.last is not None:
            fell, rose = now < self.last, now > self.last
            changed = fell | rose
            slot = self.frames % WINDOW_FRAMES
            self.recent[0, slot], self.recent[1, slot] = fell, rose
            for counted in self.counted.values():
                counted[slot] = False
            self.changes += changed
            self.stirred |= changed
            self._join(fell[:WORK_RAM_BYTES], rose[:WORK_RAM_BYTES], now)
        self.last = now
        self.frames += 1

    def _join(self, fell: np.ndarray, rose: np.ndarray, now: np.ndarray) -> None:
        """Whether neighbours count as one number; fell and rose [8192] bool of single bytes."""
        first, second = slice(None, -1), slice(1, None)
        for order, (low, high, pairs) in enumerate(((first, second, LITTLE), (second, first, BIG))):
            carry = (rose[high] & fell[low]) | (fell[high] & rose[low])
            # A number that begins anew at 0 changes both bytes alike.
            self.torn[order] |= (rose[high] | fell[high]) & ~carry & (now[pairs] != 0)
            self.carries[order] += carry

    def hear(self, mark: Mark) -> None:
        """A mark at the frame that was seen last."""
        self.marks[mark] += 1
        if mark is Mark.nothing:
            self.calm += ~self.stirred
        for wanted in (w for w in WANTED if w.mark is mark):
            moved, counted = self.recent[int(wanted.rises)], self.counted[wanted]
            self.met[wanted] += moved.any(axis=0)
            self.told[wanted] += moved[~counted].sum(axis=0, dtype=np.int32)
            counted[:] = True
        self.stirred[:] = False

    def ranked(self, wanted: Wanted, most: int) -> list[Place]:
        """The likeliest places of all."""
        return self._places(wanted, self._order(wanted)[0][:most].tolist())

    def left(self, wanted: Wanted) -> int:
        """How many places there are that one wrong mark may have kept from the first one's."""
        _, weight = self._order(wanted)
        return int((weight >= weight[0] - ONE_WRONG).sum()) if len(weight) else 0

    def _agreed(self, wanted: Wanted) -> np.ndarray:
        """Marks that agree, those of nothing with them, [A] int32."""
        return self.met[wanted] + self.calm

    def _balance(self, wanted: Wanted) -> np.ndarray:
        """Marks that agree less those that do not, [A] int32."""
        return 2 * self._agreed(wanted) - self._heard(wanted)

    def _heard(self, wanted: Wanted) -> int:
        return self.marks[wanted.mark] + self.marks[Mark.nothing]

    def _order(self, wanted: Wanted) -> tuple[np.ndarray, np.ndarray]:
        """Numbers for which more marks speak than against, the likeliest first, and their weights.

        A change that no mark tells of speaks against a number, too: what always moves moves before
        every mark. As few mark all that happens, only the root of their number counts.
        """
        balance = self._balance(wanted)
        joined = (self.carries > 0) & ~self.torn
        one = np.concatenate([np.ones(WORK_RAM_BYTES, bool), joined.ravel()])
        likely = np.flatnonzero(one & (self.met[wanted] > 0) & (balance > 0))
        unmarked = (self.changes - self.told[wanted])[likely]
        weight = balance[likely] - np.sqrt(unmarked)
        order = np.lexsort((likely, self.changes[likely], -weight))
        return likely[order], weight[order]

    def _places(self, wanted: Wanted, found: list[int]) -> list[Place]:
        agreed, told = self._agreed(wanted), self.told[wanted]
        heard = self._heard(wanted)
        return [
            Place(
                *where(n),
                agreed=int(agreed[n]),
                against=heard - int(agreed[n]),
                told=int(told[n]),
                unmarked=int(self.changes[n] - told[n]),
            )
            for n in found
        ]

    def summary(self) -> str:
        """How many are left of each kind, for a window's caption."""
        return ", ".join(f"{w.words} {self.left(w)}" for w in WANTED if self.marks[w.mark])

    def lines(self) -> Iterator[str]:
        """The same in words, with the candidates where they are few."""
        for wanted in WANTED:
            if not self.marks[wanted.mark]:
                continue
            left = self.left(wanted)
            named = self.ranked(wanted, left if left < NAMED else FIRST)
            first = "" if left < NAMED else " first"
            words = f",{first} {', '.join(map(str, named))}" if named else ""
            yield f"  {wanted.words}: {left} left{words}"


def numbers(ram: np.ndarray) -> np.ndarray:
    """Work memory [8192] uint8 -> [A] uint16: bytes, pairs low first, pairs high first."""
    wide = ram.astype(np.uint16)
    return np.concatenate([wide, wide[:-1] | wide[1:] << 8, wide[:-1] << 8 | wide[1:]])


def where(place: int) -> tuple[int, int, bool]:
    """Address, bytes, and whether the highest comes first, of one of the A numbers."""
    pair, order = (place - WORK_RAM_BYTES) % PAIRS, (place - WORK_RAM_BYTES) // PAIRS
    if place < WORK_RAM_BYTES:
        return WORK_RAM + place, 1, False
    return WORK_RAM + pair, 2, bool(order)


def is_decimal(data: np.ndarray) -> bool:
    """Whether bytes (F, size) uint8, the highest first, hold decimal digits and one turned over.

    Numbers below ten look alike in both forms, and are taken for plain ones.
    """
    digits = np.stack([data >> 4, data & 15], axis=-1).reshape(len(data), -1).astype(np.int16)
    if (digits > 9).any():
        return False
    step = np.diff(digits, axis=0)
    turned = ((step[:, :-1] > 0) & (step[:, 1:] < 0)) | ((step[:, :-1] < 0) & (step[:, 1:] > 0))
    return bool(turned.any())
