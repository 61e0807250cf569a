"""Duel's fights: the computer's levels, scripts, policies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fighting.cartridge.buttons import sided_combos
from fighting.choices import Weights
from fighting.config import DuelConfig
from fighting.machine import duel
from fighting.machine.console import boot
from fighting.machine.emulators import Emulators
from fighting.opponents.ratings import level_rating
from fighting.opponents.saved_player import saved_player
from fighting.opponents.scripts import SCRIPTS
from fighting.rules import ENDED, SCORE, judge
from fighting.signals import SIGNALS, left_sides, look_all
from fighting.tools.contest import Contest, Contestant

SIDE_BY_SIDE = 16


def known_contestants(lowest: int = 1) -> list[Contestant]:
    """The computer's levels from `lowest` on, and the scripts."""
    levels = [Contestant(f"cpu_{n}", level=n) for n in range(lowest, 8)]
    return levels + [Contestant(rival.value, script=script) for rival, script in SCRIPTS.items()]


def anchors(contestants: Sequence[Contestant]) -> dict[str, float]:
    """The computer's levels have fixed ratings."""
    return {c.name: level_rating(c.level) for c in contestants if c.level is not None}


def contest(checkpoints: Sequence[str]) -> Contest:
    """The computer's levels, the scripts, and policies that play from Duel's memory."""
    players = known_contestants()
    saved = [saved_player(path) for path in checkpoints]
    for number, player in enumerate(saved):
        players.append(Contestant(f"policy_{number}", script=player, learned=True))
    return Contest(players, fight_out, anchors(players), [player.digest for player in saved])


def matches_won(level: int, other: int, matches: int) -> int:
    """Whole matches that `level` of the computer wins against another, sides swapped each time."""
    emulator, won = boot(), 0
    for number in range(matches):
        swapped = number % 2 == 1
        first, second = (level, other) if swapped else (other, level)
        seed = number * 7919 % 65535 + 1
        settings = duel.MatchSettings(duel.CPU_CPU, level=second, level1=first, seed=seed)
        duel.start_match(emulator, settings)
        while emulator.memory[duel.STATE + duel.PHASE] != duel.MATCH_OVER:
            emulator.tick(30)
        won += emulator.memory[duel.STATE + duel.RESULT] == (1 if swapped else 2)
    emulator.close()
    return won


def fight_out(one: Contestant, two: Contestant, fights: int, seed: int = 0) -> float:
    """Points of `one` in `fights` single rounds: 1 for a win, 0.5 for a draw."""
    if one.level is not None and two.level is None:
        return fights - fight_out(two, one, fights, seed)
    if two.level is None:
        half = fights // 2
        first = _series(one, two, half, seed)
        return first + (fights - half) - _series(two, one, fights - half, seed + 1)
    return _series(one, two, fights, seed)


def _series(one: Contestant, two: Contestant, fights: int, seed: int) -> float:
    """Points of player 1; the cartridge's player, if there is one, is player 2."""
    if fights == 0:
        return 0.0
    if one.level is not None:
        mode = duel.CPU_CPU
    else:
        mode = duel.HOST_CPU if two.level is not None else duel.HOST_HOST
    config = DuelConfig(threads=1)
    count = min(SIDE_BY_SIDE, fights)
    emulators = Emulators(config, count)
    try:
        return _play(emulators, mode, one, two, fights, seed)
    finally:
        emulators.close()


def _play(
    emulators: Emulators, mode: int, one: Contestant, two: Contestant, fights: int, seed: int
) -> float:
    count = emulators.count
    rngs = [np.random.default_rng([seed, i]) for i in range(count)]
    clock, left = np.zeros(count, np.int64), np.full(count, fights // count)
    left[: fights % count] += 1
    outcome, seats, machine = np.zeros((count, 6)), np.zeros(count, np.int64), np.arange(count)
    weights, points = Weights().array(), 0.0

    def begin(i: int) -> None:
        draw = int(rngs[i].integers(1, 1 << 16))
        gap = int(rngs[i].integers(40, 101))
        level, level1 = two.level or 0, one.level or 0
        emulators.begin(i, emulators.config.match(mode, draw, level, gap, level1=level1))
        clock[i] = 0

    for i in range(count):
        begin(i)
    while left.any():
        first = _buttons(emulators, one, 0, clock, rngs)
        second = _buttons(emulators, two, 1, clock, rngs) if two.script else None
        emulators.step(first, second, lambda machine: None)
        judge(emulators.before, emulators.ram, machine, seats, True, weights, outcome)
        clock += 1
        for i in np.flatnonzero(outcome[:, ENDED] > 0):
            if left[i] > 0:
                points += outcome[i, SCORE]
                left[i] -= 1
            begin(int(i))
    return points


def _buttons(
    emulators: Emulators,
    who: Contestant,
    seat: int,
    clock: np.ndarray,
    rngs: list[np.random.Generator],
) -> np.ndarray:
    """The button bytes of one player on all cartridges."""
    if who.script is None:
        return np.zeros(emulators.count, np.uint8)
    every, seats = np.arange(emulators.count), np.full(emulators.count, seat)
    signals, left_side = (
        np.zeros((emulators.count, SIGNALS), np.uint8),
        np.zeros(emulators.count, np.uint8),
    )
    look_all(emulators.ram, every, seats, signals)
    left_sides(emulators.ram, every, seats, left_side)
    combos = sided_combos(emulators.config.profile.combos)
    return combos[left_side, who.script(signals, clock, rngs)]
