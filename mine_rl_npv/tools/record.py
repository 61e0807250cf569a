"""`scripts/record.py env=mine_...`: schedules dug step by step, as a Minari data set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.doing import doing
from frugal_rl.errors import ConfigError
from frugal_rl.report.recording import RecordOptions
from frugal_rl.store.episodes import EpisodeWriter, play_out
from mine_rl_npv.data.instance import NEVER
from mine_rl_npv.data.solutions import period_of, read_solution
from mine_rl_npv.env import MineEnv
from mine_rl_npv.rules import steps
from mine_rl_npv.tools.risk import toposort_plan

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig
    from mine_rl_npv.game import MineGame

OFFERED = {"dataset", "source", "episodes"}


def record(run: RunConfig, options: RecordOptions) -> int:
    """Write the schedules of the training mines: TopoSort's, or that of a solution file.

    Raises:
        ConfigError: something else was asked for, or blocks cannot be dug one by one.
    """
    config: Any = run.env
    plain = RecordOptions()
    asked = {name for name in vars(plain) if getattr(options, name) != getattr(plain, name)}
    if not options.dataset or asked - OFFERED or options.episodes < 1:
        raise ConfigError(
            f"env={config.name} records dataset=FOLDER, with or without source=SOLUTION and "
            "episodes=COUNT of 1 or more; nothing else."
        )
    env = config.make(run.seed)
    if not isinstance(env, MineEnv) or env.game.macros is not None:
        raise ConfigError("Schedules are dug block by block: use env.actions=column or block.")
    mines = env.game.drawn[: options.episodes]
    if options.source:
        mines = mines[:1]
    folder = Path(options.dataset)
    writer = EpisodeWriter(
        folder, f"{config.name}/schedules-v0", env.observation_space, env.action_space
    )
    earned = []
    with doing("digging", len(mines), "mines") as work:
        for number, mine in enumerate(map(int, mines)):
            env.game.draw_from(np.array([mine]))
            period = schedule_of(env.game, mine, options.source)
            episode = play_out(env, digger(env.game, mine, period), seed=run.seed)
            writer.add(episode)
            earned.append(sum(episode.rewards))
            work.done = number + 1
    count, mean = int(writer.storage.total_steps), float(np.mean(earned))
    print(f"Data set: {folder} ({writer.episodes} mines, {count:,} steps, mean return {mean:.3g})")
    return 0


def schedule_of(game: MineGame, mine: int, source: str) -> np.ndarray:
    """Period (n,) of each block of a mine, -1 for those that stay: from a file, or TopoSort's."""
    instance = game.mines.layouts[mine].instance
    return period_of(read_solution(source, instance)) if source else toposort_plan(instance)


def digger(game: MineGame, mine: int, period: np.ndarray) -> Callable[[Any], int | None]:
    """Digs the blocks of a schedule in the order of their periods; None once all are dug.

    A block that several destinations would take goes where it is worth most. With the earliest
    clock a block may be dug before the period of the schedule.
    """
    layout, arena, pits = game.mines.layouts[mine], game.arena, game.pits
    first, destinations = int(arena.first[mine]), arena.value.shape[1]
    closing = (arena.column.shape[1] - 1) * destinations

    def dig(seen: Any) -> int | None:
        columns = pits.open[0, : pits.count[0]]
        blocks = arena.column[mine, columns] + pits.depth[0, columns]
        planned = period[layout.block[blocks - first]]
        wanted = np.flatnonzero(planned != NEVER)
        if not wanted.size:
            return None
        chosen = wanted[np.argmin(planned[wanted])]
        if game.clock == steps.PERIOD and planned[chosen] > pits.clock[0]:
            return closing
        best = int(np.argmax(arena.value[blocks[chosen]]))
        return int(columns[chosen]) * destinations + best

    return dig
