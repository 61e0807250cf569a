"""Everybody against everybody, in any game: who meets whom, and what was scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from fighting.opponents.ratings import Payoff
from fighting.opponents.scripts import Script

FIGHTS = 64
KNOWN_FIGHTS = 16
"""Fights of two players of which neither learned, at most: their strengths are known."""


@dataclass(frozen=True)
class Contestant:
    """A level of the cartridge's player, or anything that plays from what one seat sees."""

    name: str
    level: int | None = None
    script: Script | None = None
    learned: bool = False


Fight = Callable[[Contestant, Contestant, int, int], float]
"""Two contestants, how many rounds, a seed -> points of the first: 1 for a win, 0.5 for a draw."""


@dataclass(frozen=True)
class Contest:
    """Who takes part, and how two of them play each other."""

    players: Sequence[Contestant]
    fight: Fight
    anchors: Mapping[str, float]
    """Ratings that are fixed, by name."""
    digests: Sequence[str]
    """Hashes of the policies' weights."""


@dataclass(frozen=True)
class Pairing:
    """Two contestants, by their places, and how many rounds they fight."""

    one: int
    two: int
    rounds: int


def pairings(
    contestants: Sequence[Contestant], fights: int = FIGHTS, levels_meet: bool = True
) -> list[Pairing]:
    """Every pair fights `fights` rounds; two known ones at most KNOWN_FIGHTS.

    Two levels of the computer, whose ratings are fixed, need not meet.
    """
    found = []
    for i, j in combinations(range(len(contestants)), 2):
        one, two = contestants[i], contestants[j]
        if levels_meet or None in (one.level, two.level):
            learned = one.learned or two.learned
            found.append(Pairing(i, j, fights if learned else min(fights, KNOWN_FIGHTS)))
    return found


def round_robin(
    contestants: Sequence[Contestant],
    fights: int = FIGHTS,
    seed: int = 0,
    levels_meet: bool = True,
    payoff: Payoff | None = None,
    *,
    fight: Fight,
) -> Iterator[tuple[Pairing, Payoff]]:
    """Everybody against everybody, sides swapped half way; what was fought so far after each pair.

    Pairs that `payoff` knows already are not fought again; it is filled in place.
    """
    payoff = payoff or Payoff.empty(tuple(c.name for c in contestants))
    for pair in pairings(contestants, fights, levels_meet):
        i, j = pair.one, pair.two
        if payoff.fights[i, j] == 0:
            # A pair's seed is its own, so that what is resumed equals what was never stopped.
            played = seed + 1000 * i + j
            points = fight(contestants[i], contestants[j], pair.rounds, played)
            payoff.score[i, j], payoff.score[j, i] = points, pair.rounds - points
            payoff.fights[i, j] = payoff.fights[j, i] = pair.rounds
        yield pair, payoff
