"""Looking ahead while playing: futures that the policy plays in copies of the world.

The policy's likeliest future comes first. Where it dies or gets nowhere, it samples others, and the
best one is played for a few decisions before it looks again. What is seen is what will happen: the
copies are simulated by the same kernels, and nothing else is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from frugal_rl.errors import ConfigError
from frugal_rl.observation.encoder import Encoder
from frugal_rl.run.evaluate import PolicyPlayer, Rows
from nclone.game import NppGame
from nclone.geometry import COLUMNS, ROWS, TILE_PX
from nclone.graph.goals import EXIT_DOOR
from nclone.sim import state as st

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from nclone.vec_env import NppVecEnv
    from npp_rl.choices import Lookahead

MOST_COPIES = 1024
"""Copies of worlds that are simulated side by side (about 35 kB each with foresight)."""
WON, LOST, REACHED = 1e6, -1e6, 1e4
"""What an end and a switch that is reached are worth, in px of path."""
SHUT_PX = 240.0
"""What a trap door that falls shut takes: it may shut in what the path leads to, and ways without
it are tried first. A future gains up to 320 px of path: nobody stays before it for ever."""
NO_PATH_PX = 5e3
MOVED_PX = 48.0
"""A likeliest future that gains less, and reaches nothing, is not taken for granted."""
MOST_VISITS = 3
"""Looks from one tile after which a likeliest future that ends there is not enough."""
VISIT_PX = 12.0
"""What each earlier look from the tile where a future ends takes from its worth."""
LIKELIEST, SAMPLED = -1, -2
"""In place of an action: the policy decides."""
MANNERS = ((1, 1.0), (1, 2.0), (2, 2.0), (4, 4.0))
"""How sampled futures differ, in turn: for how many decisions an action is held, and how evenly
it is drawn (the temperature)."""
TILES = ROWS * COLUMNS


@dataclass(frozen=True)
class Futures:
    """What came of C futures: actions [C, steps] uint8, worth [C] px, fine [C] bool."""

    actions: np.ndarray
    worth: np.ndarray
    fine: np.ndarray


class LookaheadPlayer:
    """Plays the best future of a few; the same seed plays the same.

    Attributes:
        frames: simulated so far in copies of the world, those of `env.obs=foresight` left out.
        decisions: that were asked of the policy in copies.
        looks, tries: how often it looked ahead, and how often the likeliest future was not enough.
    """

    name = "the policy, looking ahead"

    def __init__(
        self, policy: FrugalPolicy, env: NppVecEnv, lookahead: Lookahead, seed: int = 0
    ) -> None:
        if env.encoding.windowed:
            raise ConfigError(
                "agent.lookahead plays copies of the world, which have no past rows; use "
                "env.stack=1, or play without it: agent.lookahead.samples=0."
            )
        self.env, self.lookahead = env, lookahead
        self.dice = torch.Generator().manual_seed(seed)
        each, count = lookahead.samples + 1, env.num_envs
        self.copies = max(each, min(MOST_COPIES, each * count))
        config = env.game.config
        guide = type(config.reward).guide  # one that needs no best times; rewards are not read
        config = replace(config, reward=guide, curriculum=False, evolved=0)
        levels = env.game.level_table.level
        self.scratch = NppGame(config, levels, self.copies, order="in turn")
        self.encoder = Encoder(env.encoding, self.scratch.tables, self.copies, reuse=False)
        self.inner = PolicyPlayer(policy, True, self.scratch.tables)
        self.plan = np.zeros((count, lookahead.steps), np.uint8)
        self.place = np.full(count, lookahead.commit, np.int64)
        self.visits = np.zeros((count, TILES), np.int32)
        self.wanted = np.ones(count, np.bool_)
        self.frames = self.decisions = self.looks = self.tries = 0

    def only(self, wanted: np.ndarray) -> None:
        """Look ahead in the worlds marked in wanted [N] bool alone; the others do nothing."""
        self.wanted = wanted

    def __call__(self, rows: Rows) -> np.ndarray:
        """Actions [N]; the rows are those of the environments that it was made for."""
        fresh = self.env.game.steps == 0
        self.place[fresh] = self.lookahead.commit
        self.visits[fresh] = 0
        due = np.flatnonzero((self.place >= self.lookahead.commit) & self.wanted)
        for first in range(0, len(due), self.copies):
            self._look(due[first : first + self.copies], fresh)
        actions = np.zeros(len(self.plan), np.int64)
        actions[self.wanted] = self.plan[self.wanted, self.place[self.wanted]]
        self.place[self.wanted] += 1
        return actions

    def _look(self, which: np.ndarray, fresh: np.ndarray) -> None:
        """New plans for the worlds listed."""
        self.looks += len(which)
        self.visits[which, self._tile(self.env.game, which)] += 1
        likeliest = np.full((len(which), self.lookahead.steps), LIKELIEST)
        own = self._futures(which, likeliest)
        poor = np.flatnonzero(~own.fine)
        self.tries += len(poor)
        each = self.copies // (self.lookahead.samples + 1)
        for first in range(0, len(poor), each):
            at = poor[first : first + each]
            self._try(which[at], fresh, own, at)
        self.plan[which], self.place[which] = own.actions, 0

    def _try(self, which: np.ndarray, fresh: np.ndarray, own: Futures, at: np.ndarray) -> None:
        """Sample futures and go on with the plan so far; what is better replaces `own[at]`."""
        each = self.lookahead.samples + 1
        asked = np.full((len(which), each, self.lookahead.steps), SAMPLED)
        rest = self.lookahead.steps - self.lookahead.commit
        asked[~fresh[which], 0, :rest] = self.plan[which, self.lookahead.commit :][~fresh[which]]
        found = self._futures(np.repeat(which, each), asked.reshape(-1, self.lookahead.steps))
        worth = found.worth.reshape(-1, each)
        best = worth.argmax(axis=1)
        better = worth.max(axis=1) > own.worth[at]
        chosen = best + each * np.arange(len(at))
        own.actions[at[better]] = found.actions[chosen[better]]

    def _futures(self, of: np.ndarray, asked: np.ndarray) -> Futures:
        """Play copies of the worlds `of` [C] by actions, or by the policy where asked is below 0.

        asked: [C, steps] actions, `LIKELIEST` or `SAMPLED`.
        """
        game, count, steps = self.scratch, len(of), asked.shape[1]
        game.follow(self.env.game, of)
        hold, warmth = manners_of(count, self.lookahead.samples + 1)
        every = np.arange(count)
        before, alive = game.path_left(every), every
        taken, held = np.zeros((count, steps), np.uint8), np.zeros(game.num_worlds, np.int64)
        reached, shut, lived = np.zeros(count), np.zeros(count), np.full(count, steps)
        for t in range(steps):
            wanted = asked[alive, t]
            kept = (wanted == SAMPLED) & (t % hold[alive] > 0)
            wanted[kept] = taken[alive[kept], t - 1]
            held[alive] = taken[alive, t] = self._choose(alive, wanted, warmth)
            told = game.advance(held)
            self.frames += int(game.world.executed.sum())
            goal = told.events["milestone"][alive]
            reached[alive] += (goal >= 0) & (goal != EXIT_DOOR)
            shut[alive] += (game.world.events[alive] & st.DOOR_CLOSED) != 0
            lived[alive[told.terminated[alive]]] = t
            alive = alive[~told.terminated[alive]]
            if not len(alive):
                break
        left = game.path_left(every)
        known = np.isfinite(before) & np.isfinite(left)
        moved = np.subtract(before, left, out=np.zeros(count), where=known)
        seen = self.visits[of, self._tile(game, every)]
        worth = REACHED * reached - np.where(np.isfinite(left), left, NO_PATH_PX)
        worth -= VISIT_PX * seen + SHUT_PX * shut
        won, dead = game.world.won[:count], game.world.dead[:count]
        worth = np.where(won, WON - lived, np.where(dead, LOST + lived, worth))
        onward = (reached > 0) | ((moved >= MOVED_PX) & (seen <= MOST_VISITS))
        return Futures(taken, worth, won | (~dead & onward & (shut == 0)))

    @staticmethod
    def _tile(game: NppGame, which: np.ndarray) -> np.ndarray:
        """[M] the tiles in which the ninjas of the worlds listed are."""
        place = game.world.position[which] // TILE_PX
        at = np.clip(place, 0, (COLUMNS - 1, ROWS - 1)).astype(np.int64)
        tile: np.ndarray = at[:, 1] * COLUMNS + at[:, 0]
        return tile

    def _choose(self, alive: np.ndarray, asked: np.ndarray, warmth: np.ndarray) -> np.ndarray:
        """Actions [alive]: those that are asked for, or the policy's."""
        free = np.flatnonzero(asked < 0)
        actions = asked.copy()
        if len(free):
            self.decisions += len(free)
            rows = self.encoder.encode(self.scratch.observe(alive[free]))
            logits = self.inner.output(rows).cpu()
            even = logits / torch.from_numpy(warmth[alive[free], None])
            drawn = torch.multinomial(even.softmax(-1), 1, generator=self.dice)[:, 0].numpy()
            likeliest = logits.argmax(-1).numpy()
            actions[free] = np.where(asked[free] == LIKELIEST, likeliest, drawn)
        return actions


def manners_of(count: int, each: int) -> tuple[np.ndarray, np.ndarray]:
    """Decisions held [C] and temperature [C] float32 of C futures, `each` of them per world."""
    of = np.arange(count) % each % len(MANNERS)
    hold, warmth = np.array(MANNERS).T
    return hold.astype(np.int64)[of], warmth.astype(np.float32)[of]
