"""Expert data: winning inputs, replayed through the observation the agent learns from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.doing import doing
from frugal_rl.errors import DataError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.history import History
from frugal_rl.observation.tables import Tables

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from nclone.config import NppConfig
    from nclone.vec_env import NppVecEnv


@dataclass(frozen=True)
class Demonstrations:
    """Rows in policy form with the expert's action, in order of levels.

    rows     name -> [M, *row shape]
    actions  [M] uint8
    returns  [M] float32, discounted sum of rewards from this step on
    level    [M] int64, place of the level in the list that was recorded
    lost     levels whose inputs did not win; they are left out
    forbidden  steps left out because the action mask forbids the expert's action
    """

    rows: dict[str, np.ndarray]
    actions: np.ndarray
    returns: np.ndarray
    level: np.ndarray
    lost: tuple[int, ...]
    forbidden: int
    tables: Tables

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def nbytes(self) -> int:
        """Bytes of rows, actions, returns and tables."""
        arrays = (*self.rows.values(), self.actions, self.returns, self.level)
        return sum(int(a.nbytes) for a in arrays) + self.tables.nbytes


def record(
    config: NppConfig,
    encoding: Encoding,
    inputs: Sequence[np.ndarray],
    gamma: float,
    memory: MemoryProfile | None = None,
    chosen: np.ndarray | None = None,
    skip: Sequence[int] | None = None,
) -> Demonstrations:
    """Play each level's inputs from its start, all levels side by side, and keep what is seen.

    Args:
        config: whose training levels are played.
        encoding: of the rows that are kept.
        inputs: actions per level, one per step.
        gamma: discount of the returns.
        memory: switches of the environment.
        chosen: [N] which of the training levels `inputs` are for; None means all, in order.
        skip: first steps of each level that are played, but not kept.
    """
    env = in_order(config, encoding, len(inputs), memory or MemoryProfile(), chosen)
    history = History(encoding, len(inputs), config.episode_steps)
    rows = history.reset(env.reset(0))
    longest = max(len(actions) for actions in inputs)
    plan = np.zeros((longest, len(inputs)), np.uint8)
    for n, actions in enumerate(inputs):
        plan[: len(actions), n] = actions
    seen: list[dict[str, np.ndarray]] = []
    playing, won = np.ones(len(inputs), np.bool_), np.zeros(len(inputs), np.bool_)
    kept, rewards, allowed = [], [], []
    with doing(f"playing {len(inputs):,} solutions", longest, "steps") as work:
        for actions in plan:
            index = np.flatnonzero(playing)
            seen.append({name: row[index].copy() for name, row in rows.items()})
            kept.append(index)
            allowed.append(env.game.raw["action_mask"][index, actions[index]] > 0)
            step = env.step(actions)
            rewards.append(np.where(playing, step.reward, 0.0))
            if step.ended is not None:
                ours = playing[step.ended.index]
                won[step.ended.index[ours]] = step.ended.stats["success"][ours] > 0
                playing[step.ended.index] = False
            rows, _ = history.push(step.rows, step.done)
            work.done += 1
            if not playing.any():
                break
    able = np.concatenate(allowed)
    if skip is not None:
        time = np.repeat(np.arange(len(kept)), [len(k) for k in kept])
        able &= time >= np.asarray(skip)[np.concatenate(kept)]
    return _assembled(seen, kept, np.array(rewards), plan, won, able, gamma, env.tables)


def in_order(
    config: NppConfig,
    encoding: Encoding,
    count: int,
    memory: MemoryProfile,
    chosen: np.ndarray | None = None,
) -> NppVecEnv:
    """Environments of which number n plays training level n, or `chosen[n]`, from its start."""
    quiet = replace(config, start_frames=0, eval_levels=(), curriculum=False, evolved=0)
    env = quiet.batch(count, encoding, memory)
    env.game.order = "in turn"
    if chosen is not None:
        env.game.levels.playlist = env.game.levels.playlist[chosen]
    if len(env.game.levels.playlist) != count:
        found = len(env.game.levels.playlist)
        raise DataError(f"There are {found} levels, but inputs for {count}.")
    return env


def _assembled(
    seen: list[dict[str, np.ndarray]],
    kept: list[np.ndarray],
    rewards: np.ndarray,
    plan: np.ndarray,
    won: np.ndarray,
    able: np.ndarray,
    gamma: float,
    tables: Tables,
) -> Demonstrations:
    returns = np.zeros_like(rewards, np.float32)
    ahead = np.zeros(rewards.shape[1])
    for t in range(len(rewards) - 1, -1, -1):
        ahead = rewards[t] + gamma * ahead
        returns[t] = ahead
    level = np.concatenate(kept)
    time = np.repeat(np.arange(len(kept)), [len(k) for k in kept])
    use = np.flatnonzero(won[level] & able)
    use = use[np.lexsort((time[use], level[use]))]
    rows = {name: np.concatenate([s[name] for s in seen])[use] for name in seen[0]}
    at = (time[use], level[use])
    lost = tuple(int(n) for n in np.flatnonzero(~won))
    forbidden = int((won[level] & ~able).sum())
    return Demonstrations(rows, plan[at], returns[at], level[use], lost, forbidden, tables)
