"""Plans that short scripts cannot exploit: both sides learn, in turns (a double oracle).

The computer shifts the shares of its scripts towards what brought more than usual, as
multiplicative weights do (Freund and Schapire 1999), against rivals who are met the more often the
more they win; meanwhile changed rivals are tried, and what wins joins (McMahan et al. 2003).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fighting.opponents.lines import ACTIONS, FAR, WHEN, Line, Lines, line
from fighting.tools.arena import Reflexes
from fighting.tools.exploits import FALLBACKS, PLACES
from fighting.tools.mixed import (
    CHOICES,
    LONGEST,
    PLANS,
    ROWS,
    SCRIPTS,
    SITUATIONS,
    Brought,
    MixedArena,
)

REFLEXES = tuple(Reflexes(skip, late) for late in (0, 16) for skip in (2, 4, 6))
SHARPNESS = 16.0
"""How much more often who wins more is met, of those with the same reflexes."""
BETWEEN = 6.0
"""The same between the best of different reflexes."""
MEMORY = 0.9
"""What earlier rounds count of how often a rival wins, after one more."""
LEAST_DRAWS = 25.0
"""Draws that count as much as the belief that a script brings what all do."""
FLOOR = 0.001
TRIED = 0.04
"""Shares for scripts that are nearly given up, at the end and while learning."""
KEPT_RIVALS = 65
"""Rivals with the same reflexes."""


@dataclass(frozen=True)
class Rival:
    """A script, and how its player sees and acts."""

    script: Lines
    reflexes: Reflexes


def random_line(rng: np.random.Generator) -> Line:
    """Any place, condition and action but to do nothing."""
    near, far = PLACES[rng.integers(len(PLACES))]
    return near, far, int(rng.integers(len(WHEN))), int(rng.integers(1, len(ACTIONS)))


def _changed_line(old: Line, rng: np.random.Generator) -> Line:
    """One of place, condition and action is another one."""
    new = random_line(rng)
    part = rng.integers(3)
    near, far = (new if part == 0 else old)[:2]
    return near, far, (new if part == 1 else old)[2], (new if part == 2 else old)[3]


def changed(script: Lines, others: Sequence[Lines], rng: np.random.Generator) -> Lines:
    """One line more, less, elsewhere, of another script, or a part of one replaced."""
    lines, kind = list(script), rng.integers(6)
    at = int(rng.integers(len(lines))) if lines else 0
    if not lines or (kind == 0 and len(lines) < LONGEST):
        lines.insert(int(rng.integers(len(lines) + 1)), random_line(rng))
    elif kind == 1 and len(lines) > 1:
        del lines[at]
    elif kind == 2:
        lines.append(lines.pop(at))
    elif kind == 3 and (other := others[rng.integers(len(others))]):
        lines[at] = other[rng.integers(len(other))]
    else:
        lines[at] = _changed_line(lines[at], rng)
    return tuple(lines)


def combined(others: Sequence[Lines], rng: np.random.Generator) -> Lines:
    """A random line, often one of another script beside it, then one that always holds."""
    lines = [random_line(rng)]
    if rng.random() < 0.7 and (other := others[rng.integers(len(others))]):
        lines.insert(int(rng.integers(2)), other[rng.integers(len(other))])
    last = FALLBACKS[rng.integers(len(FALLBACKS))]
    return (*lines, line(0, FAR, "always", last))


@dataclass
class Rivals:
    """Who is met, and how often each has won lately."""

    all: list[Rival]
    won: np.ndarray

    @classmethod
    def of(cls, rivals: Sequence[Rival]) -> Rivals:
        """Nothing is known of them."""
        return cls(list(rivals), np.full(len(rivals), 0.6))

    def alike(self, reflexes: Reflexes) -> np.ndarray:
        """Places of those with the same reflexes, who wins most first."""
        places = [n for n, rival in enumerate(self.all) if rival.reflexes == reflexes]
        return np.array(sorted(places, key=lambda n: -self.won[n]), int)

    def chances(self) -> np.ndarray:
        """How often each is met (N,); one round in ten with anybody."""
        weights = np.zeros(len(self.all))
        for reflexes in REFLEXES:
            if len(some := self.alike(reflexes)):
                most = self.won[some[0]]
                each = np.exp(SHARPNESS * (self.won[some] - most))
                weights[some] = each / each.sum() * np.exp(BETWEEN * most)
        chances: np.ndarray = 0.9 * weights / weights.sum() + 0.1 / len(weights)
        return chances

    def met(self, places: np.ndarray, points: np.ndarray) -> None:
        """What rounds told: places (R,) of rivals, points (R,) that they won."""
        for n in np.unique(places):
            got = points[places == n]
            self.won[n] += (1 - MEMORY ** len(got)) * (got.mean() - self.won[n])

    def joined(self, rivals: Sequence[Rival], won: np.ndarray) -> None:
        """Some more; of each kind the best stay."""
        self.all += rivals
        self.won = np.append(self.won, won)
        stay = [n for reflexes in REFLEXES for n in self.alike(reflexes)[:KEPT_RIVALS]]
        self.all, self.won = [self.all[n] for n in stay], self.won[stay]


@dataclass
class Learner:
    """Shares of scripts (128, 20), and who they are learned against."""

    shares: np.ndarray
    rivals: Rivals
    rng: np.random.Generator
    usual: np.ndarray = field(default_factory=lambda: np.zeros(ROWS))
    mean: np.ndarray = field(init=False)
    """Of all shares so far, later ones more: what is kept."""

    def __post_init__(self) -> None:
        self.mean = self.shares

    def meet(self, arena: MixedArena, rounds: int, pace: float) -> None:
        """Rounds against rivals; shares move by `pace` times what a script brought more."""
        places = self.rng.choice(len(self.rivals.all), rounds, p=self.rivals.chances())
        some = [self.rivals.all[n] for n in places]
        tried = (1 - TRIED) * self.shares + TRIED / SCRIPTS
        found = self._rounds(arena, tried, some, self.rivals.won[places])
        self.rivals.met(places, found.points)
        drawn = found.drawn.sum(axis=1)
        level = found.gain.sum(axis=1) / np.maximum(drawn, 1)
        better = found.gain / np.maximum(found.drawn, 1) - level[:, None]
        better *= found.drawn / (found.drawn + LEAST_DRAWS)
        self.usual += 0.3 * level * drawn / (drawn + 50)
        better -= (self.shares * better).sum(axis=1, keepdims=True)
        moved = self.shares * np.exp(pace * np.clip(better, -1, 1))
        moved /= moved.sum(axis=1, keepdims=True)
        self.shares = (1 - FLOOR) * moved + FLOOR / SCRIPTS
        self.mean = 0.98 * self.mean + 0.02 * self.shares

    def try_others(self, arena: MixedArena, count: int) -> None:
        """New rivals of each kind, 2 x `count`: few rounds for all, more for the best, who join."""
        for reflexes in REFLEXES:
            everyone = [rival.script for rival in self.rivals.all]
            best = [everyone[n] for n in self.rivals.alike(reflexes)[:20]]
            scripts = {combined(best, self.rng) for _ in range(count)}
            for _ in range(count):
                scripts.add(changed(best[self.rng.integers(len(best))], everyone, self.rng))
            new = [Rival(script, reflexes) for script in sorted(scripts)]
            new = [rival for rival in new if rival not in self.rivals.all]
            for rounds, keep in ((4, 10), (16, 4)):
                points = self.points(arena, new, rounds)
                order = np.argsort(-points, kind="stable")[:keep]
                new, points = [new[n] for n in order], points[order]
            self.rivals.joined(new, points)

    def points(self, arena: MixedArena, rivals: Sequence[Rival], rounds: int) -> np.ndarray:
        """What each wins of some rounds against the present shares (N,)."""
        some = [rival for rival in rivals for _ in range(rounds)]
        found = self._rounds(arena, self.shares, some, np.zeros(len(some)))
        means: np.ndarray = found.points.reshape(-1, rounds).mean(axis=1)
        return means

    def _rounds(
        self,
        arena: MixedArena,
        shares: np.ndarray,
        rivals: Sequence[Rival],
        expected: np.ndarray,
    ) -> Brought:
        scripts, reflexes = [r.script for r in rivals], [r.reflexes for r in rivals]
        seed = int(self.rng.integers(1 << 62))
        return arena.brought(shares, scripts, reflexes, expected, self.usual, seed)


def eighths(shares: np.ndarray) -> np.ndarray:
    """Eight scripts for each row (128, 8) uint8 that come nearest to its shares (128, 20)."""
    wanted = shares * CHOICES
    counts = np.floor(wanted).astype(int)
    for row, count in zip(wanted, counts, strict=True):
        rest = np.argsort(count - row, kind="stable")[: CHOICES - count.sum()]
        count[rest] += 1
    rows = [np.repeat(np.arange(SCRIPTS), count) for count in counts]
    return np.array(rows, np.uint8)


def shares_of(table: np.ndarray) -> np.ndarray:
    """Shares (128, 20) of a table (4, 32, 8) or (128, 8) of scripts."""
    rows = np.reshape(table, (ROWS, CHOICES))
    shares: np.ndarray = (rows[:, :, None] == np.arange(SCRIPTS)).mean(axis=1)
    return shares


def written(table: np.ndarray, names: Sequence[str], titles: Sequence[str]) -> str:
    """The rows of `plans.inc`: table (128, 8), the scripts' names, what each situation is."""
    lines = []
    for plan, rows in enumerate(table.reshape(PLANS, SITUATIONS, CHOICES), 1):
        lines.append(f"; Plan {plan}.")
        for number, (row, title) in enumerate(zip(rows, titles, strict=True)):
            lines.append(f" db {', '.join(names[n] for n in row)} ; {number} {title}")
    return "\n".join(lines) + "\n"


def random_shares(rng: np.random.Generator) -> np.ndarray:
    """Shares (128, 20) that differ from plan to plan, so that each learns something else."""
    weights = np.exp(rng.normal(size=(ROWS, SCRIPTS)))
    shares: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    return shares
