"""Pictures of one episode: the schedule that a player digs, drawn as any other schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.observation.history import History
from mine_rl_npv.data.instance import NEVER, Instance
from mine_rl_npv.data.solutions import write_schedule
from mine_rl_npv.rules import steps
from mine_rl_npv.tools.risk import npv_matrix, toposort_plan
from mine_rl_npv.tools.views import draw_schedule, risk, save
from mine_rl_npv.vec_env import MineBatch

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from mine_rl_npv.game import MineGame

SPANS = 10
"""Pieces into which the days of a daily episode are cut for the pictures."""
Player = Callable[[Mapping[str, np.ndarray]], np.ndarray]


def play_schedule(
    game: MineGame, encoding: Encoding, mine: int, player: Player
) -> tuple[np.ndarray, np.ndarray]:
    """One episode on one mine: day or period (n,) of each block, -1 unmined, and destination (n,).

    Args:
        game: of one pit.
        encoding: of the rows that the player reads.
        mine: number of the mine.
        player: rows -> actions.
    """
    batch = MineBatch(game, encoding, np.array([mine]))
    history = History(encoding, 1, game.max_steps)
    rows = history.reset(batch.reset(0))
    layout = game.mines.layouts[mine]
    day = np.full(layout.instance.blocks, NEVER, np.int64)
    sent = np.zeros(layout.instance.blocks, np.int64)
    over = np.zeros(1, np.bool_)
    while not over[0]:
        action = np.asarray(player(rows)).reshape(-1)
        game.advance(action)
        if game.macros is None and game.entry[0] > 0 and game.day[0] != steps.NOWHERE:
            block = layout.block[game.entry[0] - 1]
            day[block] = game.day[0]
            sent[block] = action[0] % layout.value.shape[1]
        over = game.terminated | game.truncated
        rows, _ = history.push(batch.rows(), np.zeros(1, np.bool_))
    if game.macros is not None:
        day[layout.block] = game.stamp[0, : len(layout.block)] - 1
    return day, sent


def in_spans(
    instance: Instance, day: np.ndarray, yearly_rate: float
) -> tuple[Instance, np.ndarray]:
    """A daily plan as one of `SPANS` periods: the instance with such periods, and periods (n,)."""
    length = int(day.max()) // SPANS + 1
    periods = np.where(day == NEVER, NEVER, day // length)
    unlimited = np.full((instance.resources, SPANS), np.inf)
    rate = (1.0 + yearly_rate) ** (length / 365.0) - 1.0
    timed = replace(
        instance, periods=SPANS, rate=rate, low=np.zeros_like(unlimited), high=unlimited
    )
    return timed, periods


def shares_of(period: np.ndarray, sent: np.ndarray, destinations: int, periods: int) -> np.ndarray:
    """Whole blocks as shares (n, D, T)."""
    shares = np.zeros((len(period), destinations, periods))
    mined = np.flatnonzero(period != NEVER)
    shares[mined, sent[mined], period[mined]] = 1.0
    return shares


def draw_episode(
    game: MineGame, encoding: Encoding, mine: int, player: Player, folder: Path, yearly_rate: float
) -> list[Path]:
    """Every picture of the schedule that a player digs; with realisations, its risk as well.

    A schedule by periods is written beside them, as `schedule.sol` for `python -m
    mine_rl_npv.verify`; days are none of MineLib's periods.
    """
    period, sent = play_schedule(game, encoding, mine, player)
    layout = game.mines.layouts[mine]
    instance = layout.instance
    if game.clock == steps.TONNAGE:
        instance, period = in_spans(instance, period, yearly_rate)
    else:
        write_schedule(period, folder / "schedule.sol", sent)
    width = layout.value.shape[1]
    drawn = draw_schedule(instance, shares_of(period, sent, width, instance.periods), folder)
    models = [lay.instance for lay in game.mines.layouts]
    alike = all(m.name.startswith("realisation") for m in models)
    if len(models) > 1 and alike and game.clock != steps.TONNAGE:
        npv = npv_matrix(models, [period, toposort_plan(models[mine])])
        drawn.append(save(risk(npv, ["policy", "TopoSort"]), folder / "risk.png"))
    return drawn
