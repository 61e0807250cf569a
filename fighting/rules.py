"""What a step is worth and when an episode ends, for N rows at once."""

from __future__ import annotations

from numba import njit

from fighting.machine.duel import FIGHT, HP_MAX, MATCH_OVER, PHASE, REASON, RESULT
from fighting.signals import FIRST, SECOND

DEALT, TAKEN, KO, REWARD, ENDED, SCORE = range(6)
"""Columns of an outcome."""


@njit(cache=True)
def judge(before, after, machine, seats, by_round, weights, outcome):
    """One step of N rows.

    before, after  (M, 98) uint8   cartridges' memory before and after the step
    machine        (N,)            which cartridge
    seats          (N,)            whose view: 0 or 1
    by_round       bool            the episode ends with the round, else with the match
    weights        (5,) float64    see `fighting.choices.Weights`
    outcome        (N, 6) float64  damage dealt and taken in points, knocked out (+1, -1), reward,
                                   ended (0/1), score (1 won, 0.5 drawn, 0 lost, where ended)

    Health counts only if the step began in phase FIGHT and no new round began in it.
    """
    for n in range(outcome.shape[0]):
        was, now = before[machine[n]], after[machine[n]]
        me, he = (FIRST, SECOND) if seats[n] == 0 else (SECOND, FIRST)
        dealt = taken = knocked = won = 0.0
        phase = now[PHASE]
        fought = was[PHASE] == FIGHT
        if fought and was[4] == now[4]:
            dealt = float(was[he]) - float(now[he])
            taken = float(was[me]) - float(now[me])
        decided = fought and phase != FIGHT
        mine = 1 if seats[n] == 0 else 2
        if decided and now[REASON] == 1:
            knocked = 1.0 if now[RESULT] == mine else -1.0
        ended = decided if by_round else phase == MATCH_OVER
        if ended and now[RESULT] != 3:
            won = 1.0 if now[RESULT] == mine else -1.0
        outcome[n, DEALT], outcome[n, TAKEN] = dealt, taken
        outcome[n, REWARD] = (
            weights[0] * dealt / HP_MAX
            - weights[1] * taken / HP_MAX
            + weights[2] * knocked
            + weights[3] * won
            - weights[4]
        )
        outcome[n, ENDED], outcome[n, SCORE], outcome[n, KO] = ended, 0.5 + 0.5 * won, knocked
