"""Finding addresses in a cartridge's work memory: health, clocks, and what cheat files name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fighting.cartridge.memory import Address, Kind

WORK_RAM = 0xC000
WORK_RAM_BYTES = 0x2000
FRAMES_PER_SECOND = 60
SMALL = 16
"""Health below this counts as hearts or lives."""
SMALL_STEP = 16
"""What a place moves by in a frame, at most, nearly always."""
MOVES, MOST_MOVING = 8, 0.9
"""Changes of what moves, at least; share of the frames, at most, and of steps that are small."""
MOST_RISES = 100
"""More changes in one direction than a score makes."""
SELDOM = 12
"""Frames between two changes of a score or of lives, at least."""
CHEAT = re.compile(r"\b01([0-9A-Fa-f]{2})([0-9A-Fa-f]{2})([0-9A-Fa-f]{2})\b")


@dataclass(frozen=True)
class Candidate:
    """An address that behaves like what is looked for."""

    name: str
    addr: int
    value: int
    reason: str
    kind: str = "binary"
    when: tuple[int, ...] = ()
    """Frames of its changes, where they are known."""
    size: int = 1
    big: bool = False
    """Of two bytes the highest comes first."""

    @property
    def form(self) -> dict[str, Any]:
        """What a profile says of more than one byte."""
        big = {"big": True} if self.big and self.kind == "binary" else {}
        return {"size": self.size, **big} if self.size > 1 else {}

    def yaml(self) -> str:
        """A line for a profile's `memory:`; a guess until somebody has checked it."""
        form = "".join(f"{key}: {str(value).lower()}, " for key, value in self.form.items())
        return (
            f"  {self.name}: {{addr: 0x{self.addr:04X}, {form}max: {self.value}, "
            f'kind: {self.kind}, status: guess, source: "{self.reason}"}}'
        )

    def over_time(self, memory: np.ndarray) -> np.ndarray:
        """Its number in each frame of memory (F, 8192) uint8 -> [F] float64."""
        column = self.addr - WORK_RAM
        address = Address(self.addr, self.size, Kind(self.kind), big=self.big)
        return address.numbers(memory[:, column : column + self.size])


def health(before_hit: np.ndarray, after_hit: np.ndarray, calm: np.ndarray) -> list[Candidate]:
    """Bytes that keep their value while nothing happens and fall when a hit lands.

    before_hit  (H, 8192) uint8   memory just before each of H hits of one round
    after_hit   (H, 8192) uint8   and just after it
    calm        (F, 8192) uint8   frames of the same round before the first hit
    """
    steady = (calm == calm[0]).all(axis=0)
    fell = (after_hit < before_hit).all(axis=0)
    monotone = (np.diff(before_hit.astype(np.int16), axis=0) <= 0).all(axis=0)
    found = np.flatnonzero(steady & fell & monotone & (calm[0] > 0))
    reason = f"steady, then fell at each of {len(before_hit)} hits"
    return [Candidate("hp", WORK_RAM + int(a), int(calm[0, a]), reason) for a in found]


def fallers(frames: np.ndarray, calm: int) -> list[Candidate]:
    """Bytes that keep their value for `calm` frames and then only fall, or start anew at the top.

    frames  (F, 8192) uint8, one per frame. Values of any size from 1: a bar falls by more than one
    at least once; few hearts fall by one, seldom and out of any beat, unlike clocks.
    """
    values = frames.astype(np.int16)
    first = values[0]
    change = np.diff(values, axis=0)
    steady = (change[: calm - 1] == 0).all(axis=0) & (first >= 1)
    anew = (change > 0) & (values[1:] == first)
    falls = (change < 0).sum(axis=0)
    only = ((change <= 0) | anew).all(axis=0)
    large = (change.min(axis=0) < -1) & (first >= SMALL)
    enough = falls >= np.minimum(2, first)
    found = [
        a
        for a in np.flatnonzero(steady & only & enough)
        if large[a] or (first[a] < SMALL and _seldom(np.flatnonzero(change[:, a] < 0)))
    ]
    return [
        Candidate(
            "hp",
            WORK_RAM + int(a),
            int(first[a]),
            f"fell {falls[a]} times, never rose",
            when=tuple(np.flatnonzero(change[:, a]).tolist()),
        )
        for a in found
    ]


def risers(frames: np.ndarray, calm: int, anew: Sequence[int] = ()) -> list[Candidate]:
    """Bytes that keep their value for `calm` frames and then only rise, now and then: scores.

    `anew` are the frames with which another round began: what fell there has not fallen, and what
    rises once per round is no score. Those that rise by the same amount each time come first, of
    them those that rise most often.
    """
    change = np.diff(frames.astype(np.int16), axis=0)
    change[[frame - 1 for frame in anew]] = 0
    rises = (change > 0).sum(axis=0)
    in_a_round = np.add.reduceat(change > 0, [0, *anew], axis=0, dtype=np.int64).max(axis=0)
    steady = (change[: calm - 1] == 0).all(axis=0)
    only = (change >= 0).all(axis=0)
    found = np.flatnonzero(steady & only & (in_a_round >= 2) & (rises <= len(frames) // SELDOM))
    uneven = [len(set(change[change[:, a] > 0, a].tolist())) > 1 for a in found]
    order = sorted(zip(uneven, -rises[found], found.tolist(), strict=True))
    return [
        Candidate("score", WORK_RAM + a, int(frames[:, a].max()), f"rose {-count} times")
        for _, count, a in order
        if _seldom(np.flatnonzero(change[:, a] > 0))
    ]


def movers(frames: np.ndarray, near: Sequence[int]) -> list[Candidate]:
    """Bytes that come and go in small steps, now and then: places, speeds, heights, distances.

    What changes in every frame is a clock or a copy of one, what jumps about is chance. Of bytes
    that move alike one is kept. Those nearest to the addresses `near` come first: a game's values
    lie together, away from the tables that are made of them.
    """
    columns = changing(frames)
    change = np.diff(frames[:, columns].view(np.int8), axis=0)  # 255 and 0 are neighbours
    changes = (change != 0).sum(axis=0)
    small = ((change != 0) & (np.abs(change.astype(np.int16)) <= SMALL_STEP)).sum(axis=0)
    alive = (changes >= MOVES) & (changes <= MOST_MOVING * len(change))
    steady = alive & (small >= MOST_MOVING * changes)
    ways = ((change > 0).any(axis=0) & (change < 0).any(axis=0)) | (changes > MOST_RISES)
    places = np.flatnonzero(steady & ways).tolist()
    addresses = (WORK_RAM + columns).tolist()
    places.sort(key=lambda p: (min((abs(addresses[p] - n) for n in near), default=0), p))
    found: dict[bytes, Candidate] = {}
    for p in places:
        reason = f"moved in {changes[p]} of {len(change)} frames"
        most = int(frames[:, columns[p]].max())
        found.setdefault(change[:, p].tobytes(), Candidate("moving", addresses[p], most, reason))
    return list(found.values())


def changing(frames: np.ndarray) -> np.ndarray:
    """Columns that change at all, a few hundred of 8,192: the rest takes no differences."""
    return np.flatnonzero(frames.min(axis=0) != frames.max(axis=0))


def _seldom(when: np.ndarray) -> bool:
    """Whether changes come at least SELDOM frames apart, neither each second nor in a beat."""
    gaps = np.diff(when)
    if len(gaps) == 0:
        return True
    clock = bool(((gaps >= 50) & (gaps <= 70)).all())
    beat = len(gaps) >= 4 and gaps.max() - gaps.min() <= 2
    return bool(gaps.min() >= SELDOM and not clock and not beat)


def clocks(frames: np.ndarray) -> list[Candidate]:
    """Bytes that fall by one every 50 to 70 frames; frames (F, 8192) uint8, one per frame."""
    found = []
    columns = changing(frames)
    changed = np.diff(frames[:, columns].astype(np.int16), axis=0)
    for place in np.flatnonzero((changed != 0).sum(axis=0) >= 2):
        address = columns[place]
        when = np.flatnonzero(changed[:, place])
        steps = changed[when, place]
        gaps = np.diff(when)
        if not ((gaps >= 50) & (gaps <= 70)).all():
            continue
        # In BCD, $50 - 1 is $49: a fall of 7 where the low digit was 0.
        digits = np.where(frames[when, address] & 15 == 0, -7, -1)
        if (steps == -1).all():
            kind = "binary"
        elif (steps == digits).all():
            kind = "bcd"
        else:
            continue
        first = int(frames[0, address])
        reason = f"falls by one every {gaps.mean():.0f} frames"
        found.append(Candidate("timer", WORK_RAM + int(address), first, reason, kind))
    return found


def fighter_blocks(one: Iterable[Candidate], two: Iterable[Candidate]) -> list[tuple[int, int]]:
    """Pairs of addresses whose distance is the most frequent one: two fighters' blocks.

    What always changes with another one is no second fighter's, but part of the same thing, such as
    the rows of a table of sprites. Fighters begin alike, so pairs of equal values come first.
    """
    couples = [
        (a, b) for a in one for b in two if a.addr != b.addr and not (a.when and a.when == b.when)
    ]
    alike = [(a, b) for a, b in couples if a.value == b.value]
    pairs = [(a.addr, b.addr) for a, b in alike or couples]
    if not pairs:
        return []
    strides = np.array([b - a for a, b in pairs])
    values, counts = np.unique(strides, return_counts=True)
    # Of equally frequent distances the shortest is the likeliest.
    best = min(zip(-counts, np.abs(values), values, strict=True))[2]
    return [pair for pair in pairs if pair[1] - pair[0] == best]


def from_cheats(text: str) -> list[Candidate]:
    """Candidates from GameShark codes `01vvllhh` ("write vv to $hhll each frame")."""
    found: list[Candidate] = []
    for line in text.splitlines():
        for value, low, high in CHEAT.findall(line):
            address = int(high + low, 16)
            if WORK_RAM <= address < WORK_RAM + WORK_RAM_BYTES:
                reason = f"cheat code 01{value}{low}{high}".upper().replace(
                    "CHEAT CODE", "cheat code"
                )
                found.append(Candidate(f"cheat_{len(found)}", address, int(value, 16), reason))
    return found
