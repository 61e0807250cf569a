"""Who sits in the other seat: a fixed script, a frozen policy, or a pool of past selves."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fighting.choices import PoolChoice, Rival
from fighting.opponents.ratings import expected, updated
from fighting.opponents.scripts import Rngs, Script

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fighting.cartridge.config import GameBoyConfig
    from fighting.config import DuelConfig


SAVED_PLAYERS = {
    "fighting": "fighting.opponents.saved_player",
    "fighting_game_boy": "fighting.cartridge.saved_player",
}
"""Found by name like a codec's torch half: workers that need no frozen policy load no torch."""


class RivalSeat(Protocol):
    """Whoever sits in the other seat of `count` cartridges."""

    def begin(self, place: int, rng: np.random.Generator) -> None:
        """A new fight begins at one place."""

    def act(self, seen: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
        """As a `Script`, for all places."""

    def tell(self, place: int, score: float) -> None:
        """The learner scored 1, 0.5 or 0 at one place."""

    def state(self) -> Any:
        """For an exact resume."""

    def load(self, state: Any) -> None:
        """Continue from `state`."""


@dataclass
class Scripted:
    """A fixed script at every place."""

    script: Script

    def begin(self, place: int, rng: np.random.Generator) -> None:
        """Scripts remember nothing."""

    def act(self, seen: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
        """What the script does."""
        return self.script(seen, clock, rngs)

    def tell(self, place: int, score: float) -> None:
        """Scripts do not learn."""

    def state(self) -> Any:
        """Nothing."""
        return None

    def load(self, state: Any) -> None:
        """Nothing."""


class Pool:
    """A pool of players and their Elo ratings, one of them at each place.

    The pool begins with players that stay: the scripts, so that the first fights have an opponent
    and later ones do not forget the simple ones, and frozen policies. The learner's own rating
    rises and falls with its fights here.
    """

    def __init__(self, choice: PoolChoice, count: int, staying: Mapping[str, Script]) -> None:
        self.choice, self.staying = choice, len(staying)
        self.names = list(staying)
        self.players: list[Script] = list(staying.values())
        self.ratings = [1000.0] * len(self.players)
        self.own = 1000.0
        self.chosen = np.zeros(count, np.int64)

    def add(self, name: str, player: Script) -> None:
        """A past self joins, rated as the present one is."""
        self.names.append(name)
        self.players.append(player)
        self.ratings.append(self.own)

    def begin(self, place: int, rng: np.random.Generator) -> None:
        """Draws the opponent of a new fight."""
        count = len(self.players)
        if self.choice is PoolChoice.latest and rng.random() < 0.5:
            self.chosen[place] = rng.integers(max(count - 3, 0), count)
        elif self.choice is PoolChoice.closest:
            away = np.abs(np.array(self.ratings) - self.own)
            weights = np.exp(-away / 100)
            self.chosen[place] = rng.choice(count, p=weights / weights.sum())
        elif self.choice is PoolChoice.hardest:
            weights = np.array([expected(his, self.own) ** 2 for his in self.ratings])
            self.chosen[place] = rng.choice(count, p=weights / weights.sum())
        else:
            self.chosen[place] = rng.integers(count)

    def act(self, seen: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
        """Each place asks its own player, those of one player together."""
        out = np.zeros(len(seen), np.int64)
        for member in np.unique(self.chosen):
            at = np.flatnonzero(self.chosen == member)
            out[at] = self.players[member](seen[at], clock[at], [rngs[i] for i in at])
        return out

    def tell(self, place: int, score: float) -> None:
        """Both ratings move."""
        member = int(self.chosen[place])
        self.own, self.ratings[member] = updated(self.own, self.ratings[member], score)

    def state(self) -> Any:
        """Ratings and choices; the players' weights belong to the learner."""
        return {"ratings": list(self.ratings), "own": self.own, "chosen": self.chosen.copy()}

    def load(self, state: Any) -> None:
        """Continue from `state`."""
        self.ratings, self.own = list(state["ratings"]), float(state["own"])
        self.chosen[:] = state["chosen"]


def rival_of(
    config: DuelConfig | GameBoyConfig, count: int, scripts: Mapping[Rival, Script]
) -> RivalSeat:
    """Who sits in the other seat of the cartridges that have one row."""
    if config.opponent in scripts:
        return Scripted(scripts[config.opponent])
    frozen = {f"pool_{n}": saved(path, config) for n, path in enumerate(config.pool)}
    if config.plays_itself:
        staying = {rival.value: script for rival, script in scripts.items()} | frozen
        return Pool(config.pool_choice, count, staying)
    first = saved(config.rival, config)
    return Pool(PoolChoice.uniform, count, {"rival": first} | frozen) if frozen else Scripted(first)


def saved(path: str, config: DuelConfig | GameBoyConfig) -> Script:
    """The policy in a checkpoint or run folder, as a player of that game."""
    player: Script = import_module(SAVED_PLAYERS[config.name]).saved_player(path, config)
    return player
