"""What a step is worth and when an episode ends, for N rows at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from fighting.duel import FIGHT, HP_MAX, MATCH_OVER, PHASE, REASON, RESULT
from fighting.signals import FIRST, SECOND
from frugal_rl.errors import ConfigError

DEALT, TAKEN, REWARD, ENDED, SCORE, KO = range(6)
"""Columns of an outcome."""


@dataclass(frozen=True)
class Weights:
    """How much each event counts; health is counted in shares of a full bar."""

    dealt: float = 1.0
    taken: float = 1.0
    ko: float = 0.5
    """Knocking out, or being knocked out."""
    win: float = 1.0
    """Winning or losing the match."""
    time: float = 0.0
    """Price of one step."""

    def __post_init__(self) -> None:
        if min(self.dealt, self.taken, self.ko, self.win, self.time) < 0:
            raise ConfigError("env.reward has a negative weight; all weights are 0 or more.")

    def array(self) -> np.ndarray:
        """[5] float64."""
        return np.array([self.dealt, self.taken, self.ko, self.win, self.time])


@njit(cache=True)
def judge(before, after, seats, by_round, weights, outcome):
    """One step of N rows.

    before, after  (N, 98) uint8   memory before and after the step
    seats          (N,)            whose view: 0 or 1
    by_round       bool            the episode ends with the round, else with the match
    weights        (5,) float64    see `Weights`
    outcome        (N, 6) float64  damage dealt and taken in points, reward, ended (0/1), score
                                   (1 won, 0.5 drawn, 0 lost, where ended), knocked out (+1, -1)

    Health counts only if the step began in phase FIGHT and no new round began in it.
    """
    for n in range(after.shape[0]):
        me, he = (FIRST, SECOND) if seats[n] == 0 else (SECOND, FIRST)
        dealt = taken = knocked = won = 0.0
        phase = after[n, PHASE]
        fought = before[n, PHASE] == FIGHT
        if fought and before[n, 4] == after[n, 4]:
            dealt = float(before[n, he]) - float(after[n, he])
            taken = float(before[n, me]) - float(after[n, me])
        decided = fought and phase != FIGHT
        mine = 1 if seats[n] == 0 else 2
        if decided and after[n, REASON] == 1:
            knocked = 1.0 if after[n, RESULT] == mine else -1.0
        ended = decided if by_round else phase == MATCH_OVER
        if ended and after[n, RESULT] != 3:
            won = 1.0 if after[n, RESULT] == mine else -1.0
        outcome[n, DEALT], outcome[n, TAKEN] = dealt, taken
        outcome[n, REWARD] = (
            weights[0] * dealt / HP_MAX
            - weights[1] * taken / HP_MAX
            + weights[2] * knocked
            + weights[3] * won
            - weights[4]
        )
        outcome[n, ENDED], outcome[n, SCORE], outcome[n, KO] = ended, 0.5 + 0.5 * won, knocked
