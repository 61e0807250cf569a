"""Search for inputs that win a level: go back to a place that is reached rarely, then explore.

The archive keeps one snapshot per place (half a tile, kind of contact, entity states); each round
restores many of them at once and lets random actions run on (Ecoffet et al., "First return, then
explore", 2021, without the learning).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nclone.levels.level import Level
from nclone.sim.world import Arrays, World

FRAMES_PER_ACTION = 4
KEEP_ACTION = 0.8
ACTIONS_PER_ROUND = 16
NEWEST = 512


@dataclass(frozen=True)
class _Way:
    """How a place was reached: the place before it and the actions from there."""

    parent: int
    actions: bytes
    length: int


def find_win(
    level: Level, max_rounds: int = 2000, num_worlds: int = 256, seed: int = 0
) -> NDArray[np.uint8] | None:
    """Actions 0..5, one per frame, that complete a level; None if none were found.

    Args:
        level: the level to win.
        max_rounds: rounds of `num_worlds` x 64 frames before giving up.
        num_worlds: places explored at once.
        seed: of the random actions.
    """
    random = np.random.default_rng(seed)
    world = World([level], np.zeros(num_worlds, np.int32))
    archive = _Archive(world)
    for _ in range(max_rounds):
        starts = archive.choose(num_worlds, random)
        archive.restore(world, starts)
        actions = np.zeros((0, num_worlds), np.uint8)
        for _ in range(ACTIONS_PER_ROUND):
            actions = np.vstack([actions, _next_actions(actions, num_worlds, random)])
            executed = world.step(actions[-1], FRAMES_PER_ACTION)
            winners = np.nonzero(world.won)[0]
            if len(winners):
                best = int(winners[np.argmin(archive.lengths(starts[winners]))])
                way = archive.actions(int(starts[best])) + actions[:, best].tobytes()
                frames = np.repeat(np.frombuffer(way, np.uint8), FRAMES_PER_ACTION)
                return frames[: len(frames) - FRAMES_PER_ACTION + int(executed[best])]
            archive.record(world, starts, actions, ~world.ended & (executed > 0))
    return None


def _next_actions(
    actions: NDArray[np.uint8], num_worlds: int, random: np.random.Generator
) -> NDArray[np.uint8]:
    fresh = random.integers(0, 6, num_worlds).astype(np.uint8)
    if len(actions) == 0:
        return fresh
    return np.where(random.random(num_worlds) < KEEP_ACTION, actions[-1], fresh)


class _Archive:
    """Places that were reached, the snapshot of each, and how to get there."""

    def __init__(self, world: World) -> None:
        first = world.snapshot([0])
        self.rows = [Arrays(*(np.repeat(part, 1024, axis=0) for part in first))]
        self.ways: list[_Way] = []
        self.tries = np.zeros(1024)
        self.index: dict[bytes, int] = {}
        self._add(self._keys(world)[0].tobytes(), _Way(-1, b"", 0), first, 0)

    def choose(self, count: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Places, the more likely the fewer times they were tried; half are among the newest."""
        weight = 1.0 / np.sqrt(1.0 + self.tries[: len(self.ways)])
        newest = weight[-NEWEST:]
        newest *= 1.0 + weight.sum() / newest.sum()
        chosen = random.choice(len(self.ways), count, p=weight / weight.sum())
        np.add.at(self.tries, chosen, 1.0)
        return chosen

    def lengths(self, places: NDArray[np.int64]) -> list[int]:
        """Actions that lead to each place."""
        return [self.ways[place].length for place in places]

    def actions(self, place: int) -> bytes:
        """All actions that lead to a place."""
        parts = []
        while place >= 0:
            parts.append(self.ways[place].actions)
            place = self.ways[place].parent
        return b"".join(reversed(parts))

    def restore(self, world: World, places: NDArray[np.int64]) -> None:
        """Put the snapshots of places into all worlds."""
        world.restore(Arrays(*(part[places] for part in self.rows[0])))

    def record(
        self,
        world: World,
        starts: NDArray[np.int64],
        actions: NDArray[np.uint8],
        alive: NDArray[np.bool_],
    ) -> None:
        """Keep the worlds that stand at a new place, or came to a known one faster."""
        keys = self._keys(world)
        for w in np.nonzero(alive)[0]:
            key = keys[w].tobytes()
            length = self.ways[starts[w]].length + len(actions)
            known = self.index.get(key)
            if known is None or self.ways[known].length > length + 8:
                way = _Way(int(starts[w]), actions[:, w].tobytes(), length)
                self._add(key, way, world.arrays, w)

    def _add(self, key: bytes, way: _Way, source: Arrays, w: int) -> None:
        place = len(self.ways)
        if place == len(self.rows[0].worlds):
            self.rows[0] = Arrays(*(np.concatenate([part, part]) for part in self.rows[0]))
            self.tries = np.concatenate([self.tries, np.zeros(len(self.tries))])
        for part, values in zip(self.rows[0], source, strict=True):
            part[place] = values[w]
        self.ways.append(way)
        self.index[key] = place

    @staticmethod
    def _keys(world: World) -> NDArray[np.uint8]:
        """[N, K] bytes that stand for the place of each world."""
        place = np.floor(world.position / 12.0).astype(np.int16)
        speed = np.floor(world.velocity / np.array([1.5, 1.5])).astype(np.int16)
        contact = np.stack([world.worlds["airborn"], world.worlds["walled"]], axis=1)
        parts = [place, speed, contact, world.entity_active, world.door_closed]
        return np.hstack(
            [np.ascontiguousarray(p).view(np.uint8).reshape(world.num_worlds, -1) for p in parts]
        )
