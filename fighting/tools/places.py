"""Places: bytes that say where the player is, for games in which random play moves no score.

A coordinate follows the arrows: nearly all its changes are small steps one way under one key and
the other way under the opposite key, the rest jumps. What a timer or an animation moves changes
whatever is held, so most of its changes are neither. A room's number changes at those jumps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fighting.machine.emulator import BUTTONS
from fighting.tools.candidates import SMALL_STEP, WORK_RAM, Candidate, changing

AXES = {"place_x": ("right", "left"), "place_y": ("down", "up")}
"""Coordinates, and the keys that move them forth and back (or back and forth)."""
ROOM = "place_room"
LAGS = range(0, 25, 4)
"""Frames between a key and the step that it causes, which a game may note as the step ends."""
FOLLOWS, JUMPY = 0.9, 0.25
"""Share of a coordinate's steps that go its way, at least (some are pushes); of jumps, at most."""
BOTH_WAYS = 4
"""Steps in either direction, at least."""
MANY = 8
"""Values of a coordinate, at least; fewer are a menu's lines or a well's columns."""
PIXELS, TILE = 0.4, 3
"""What moves in more of the frames in which its keys are held counts pixels; 1 << 3 are a tile."""
NEAR_FRAMES = 16
"""Between a jump of the coordinates and the change of a room, at most."""
JUMPS, COVERED = 2, 0.75
"""Of coordinates, at least, for a room to show; share of them at which its number changes."""
RISES, ALL_OVER = 3, 0.25
"""Of a score, at least; share of the part of the world that was met that they spread over."""
FAR = 4
"""Spreads from its mean at which a feature is cut off: play goes where random play never was."""
SPREAD = 40503
"""Odd, near 65,536 / 1.618: numbers of rooms times it lie far apart among 65,536 places."""


@dataclass(frozen=True)
class World:
    """Where the player is: one or two coordinates by name, and the room where one was found."""

    bytes: Mapping[str, Candidate]
    shifts: Mapping[str, int]
    """Bits by which a coordinate is coarser than its byte."""

    @property
    def axes(self) -> list[Candidate]:
        """The coordinates alone."""
        return [c for name, c in self.bytes.items() if name in AXES]

    @property
    def place(self) -> str:
        """An expression that differs from place to place, among 65,536 values.

        Three bytes do not fit; of those rooms are strewn among the places, which seldom meet.
        """
        fine = [f"{n} >> {s}" if (s := self.shifts.get(n, 0)) else n for n in self.bytes]
        if len(fine) < 3:
            return f"{fine[1]} << 8 | {fine[0]}" if len(fine) == 2 else fine[0]
        x, y, room = fine
        return f"{room} * {SPREAD} ^ ({y} << 8 | {x})"

    def goal(self) -> dict[str, Any]:
        """A profile's reward, a tenth for a place, and its score, all of them."""
        seen = f"seen({self.place})"
        return {"reward": {"places": f"rise({seen}) / 10"}, "score": seen}

    def features(self, around: Mapping[str, Candidate], memory: np.ndarray) -> dict[str, str]:
        """What a policy sees of the place and of what lies around, by names, as expressions.

        It has no memory: whether the last step led to a new place, and which way it went, tell it
        to go on or to turn. What lies around are tiles' numbers, which differ by little of their
        highest, so each is taken by its mean and spread in memory (F, 8192).
        """
        seen = {name: f"{name} / 255" for name in self.bytes}
        for name, candidate in around.items():
            met = candidate.over_time(memory)
            seen[name] = f"clip(({name} - {met.mean():.3f}) / {met.std():.3f}, -{FAR}, {FAR})"
        went = {f"went_{n}": f"clip(change({n}), -1, 1)" for n in self.bytes if n in AXES}
        return seen | {"fresh": f"rise(seen({self.place}))"} | went

    def told(self) -> Iterator[str]:
        """Lines of what was found, and of what it is paid for."""
        yield "# Where the player is: bytes that the arrows move, and a room that comes with jumps."
        yield from (c.yaml() for c in self.bytes.values())
        yield "# Random play moves no score all over them, so each place is paid once an episode:"
        yield f"#   places: {self.goal()['reward']['places']}"

    def pays(self, memory: np.ndarray, score: Candidate) -> bool:
        """Whether something rises all over the world (F, 8192), as a score does.

        What notes that one place was met, a bit of a map or a count of visits, rises in a corner.
        """
        rises = np.flatnonzero(np.diff(score.over_time(memory)) > 0) + 1
        if len(rises) < RISES:
            return False
        met = memory[:, [c.addr - WORK_RAM for c in self.axes]].astype(np.int16)
        box = np.ptp(met[rises], axis=0) + 1
        return bool(np.prod(box / (np.ptp(met, axis=0) + 1)) >= ALL_OVER)


def unpaid(
    memory: np.ndarray,
    held: np.ndarray,
    rounds: Sequence[int],
    scores: Sequence[Candidate],
    lives: Sequence[Candidate],
) -> World | None:
    """The world of a game (F, 8192) that shows nothing better to be paid for, or nothing.

    One coordinate alone is little of a world, and is asked for only where nothing rises or falls.
    """
    found = world(memory, held, rounds)
    if found is None or (len(found.axes) < 2 and (scores or lives)):
        return None
    return None if any(found.pays(memory, c) for c in scores) else found


def world(memory: np.ndarray, held: np.ndarray, rounds: Sequence[int]) -> World | None:
    """What a recording shows of places, or nothing.

    memory  (F, 8192) uint8  one row per frame
    held    (F,)      uint8  buttons held in that frame
    rounds  frames that begin anew from the saved state: no steps
    """
    found, shifts = {}, {}
    columns = changing(memory)
    step = _steps(memory, columns, rounds)
    for name, keys in AXES.items():
        pair = [_holding(held, key) for key in keys]
        if best := _coordinate(name, memory[:, columns], step, pair, rounds):
            place, candidate = best
            found[name] = replace(candidate, addr=WORK_RAM + int(columns[place]))
            pressed = (pair[0] | pair[1]).sum()
            shifts[name] = TILE * bool((step[:, place] != 0).sum() > PIXELS * pressed)
    if not found:
        return None
    jumps = _jumps(memory[:, [c.addr - WORK_RAM for c in found.values()]], rounds)
    if room := _room(memory[:, columns], step, np.flatnonzero(jumps.any(axis=1))):
        place, candidate = room
        found[ROOM] = replace(candidate, addr=WORK_RAM + int(columns[place]))
    return World(found, shifts)


def _steps(memory: np.ndarray, columns: np.ndarray, rounds: Sequence[int]) -> np.ndarray:
    """Changes [F - 1, C] int8, 255 and 0 being neighbours; none where a round begins."""
    step = np.diff(memory[:, columns].view(np.int8), axis=0)
    step[[frame - 1 for frame in rounds]] = 0
    return step


def _holding(held: np.ndarray, key: str) -> np.ndarray:
    """Frames [F - 1] in which a key is held, the first left out."""
    return (held[1:] >> BUTTONS.index(key) & 1).astype(bool)


def _coordinate(
    name: str,
    values: np.ndarray,
    step: np.ndarray,
    keys: Sequence[np.ndarray],
    rounds: Sequence[int],
) -> tuple[int, Candidate] | None:
    """The column of values (F, C) that follows two keys [F - 1] best, if one does.

    Of several that do, the one with the most values says most; of those the first.
    """
    changes = (step != 0).sum(axis=0)
    moving = np.flatnonzero(changes >= 2 * BOTH_WAYS)  # hundreds, of thousands
    values, step, changes = values[:, moving], step[:, moving], changes[moving]
    follows, both = _followed(step, keys)
    likely = np.flatnonzero((both >= BOTH_WAYS) & (follows >= (FOLLOWS - JUMPY) * changes))
    jumps = _jumps(values[:, likely], rounds).sum(axis=0)
    steady = jumps <= JUMPY * changes[likely]
    places = likely[steady & (follows[likely] >= FOLLOWS * (changes[likely] - jumps))].tolist()
    met = {p: len(np.unique(values[:, p])) for p in places}
    best = max(places, key=lambda p: (met[p], -p), default=None)
    if best is None or met[best] < MANY:
        return None
    reason = f"{follows[best]:.0f} of {changes[best]} changes follow {' and '.join(AXES[name])}"
    return int(moving[best]), Candidate(name, 0, 255, reason)


def _followed(step: np.ndarray, keys: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Of changes [F - 1, C], those that go the way of two keys, and the fewer of the two, [C]."""
    small = np.abs(step.astype(np.int16)) <= SMALL_STEP
    rose, fell = np.float32(small & (step > 0)), np.float32(small & (step < 0))
    follows, fewer = np.zeros(step.shape[1]), np.zeros(step.shape[1])
    for lag in LAGS:
        forth, back = (np.concatenate([np.zeros(lag), k])[: len(k)] for k in keys)
        for up, down in ((rose, fell), (fell, rose)):
            one, other = forth @ up, back @ down
            better = one + other > follows
            follows = np.where(better, one + other, follows)
            fewer = np.where(better, np.minimum(one, other), fewer)
    return follows, fewer


def _jumps(values: np.ndarray, rounds: Sequence[int]) -> np.ndarray:
    """Where values (F, K) uint8 move by more than twice their usual step, [F - 1, K] bool."""
    change = np.abs(np.diff(values.astype(np.int16), axis=0))
    change[[frame - 1 for frame in rounds]] = 0
    usual = np.array([np.median(c[c > 0]) for c in change.T])
    return change > 2 * usual


def _room(values: np.ndarray, step: np.ndarray, jumps: np.ndarray) -> tuple[int, Candidate] | None:
    """The column (F, C) that changes as the coordinates jump, and comes back, if one does.

    A count of doors passed never comes back. Of several the one that changes at most jumps, then
    the one with the most values: a picture's tiles differ from room to room, too, but are few.
    """
    if len(jumps) < JUMPS:
        return None
    changed = step != 0
    near = [slice(max(0, j - NEAR_FRAMES), j + NEAR_FRAMES + 1) for j in jumps.tolist()]
    close = np.zeros(len(step), bool)
    for frames in near:
        close[frames] = True
    covered = np.sum([changed[frames].any(axis=0) for frames in near], axis=0)
    inside = changed[close].sum(axis=0) >= FOLLOWS * changed.sum(axis=0)
    returns = (step > 0).any(axis=0) & (step < 0).any(axis=0)
    places = np.flatnonzero(inside & returns & (covered >= COVERED * len(jumps))).tolist()
    if not places:
        return None
    best = max(places, key=lambda p: (covered[p], len(np.unique(values[:, p])), -p))
    return best, Candidate(ROOM, 0, 255, f"changes at {covered[best]} of {len(jumps)} jumps")
