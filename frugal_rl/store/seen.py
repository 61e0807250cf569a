"""What a replay or a rollout held, for plans of the same environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.memory.found_rows import is_found
from frugal_rl.memory.replay_data import RowSeen, Seen, keep_run
from frugal_rl.memory.weight import keep_rollout
from frugal_rl.store.chain import FrameChain
from frugal_rl.store.dense_rows import DenseRows

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig
    from frugal_rl.store.replay import ReplayBuffer
    from frugal_rl.store.rollout import RolloutBuffer
    from frugal_rl.store.stacks import FoundStack


def remember_rows(run: RunConfig, learner: Any) -> None:
    """Keep what a run's replay held, or its rollout, for the plans that come."""
    replay, rollout = getattr(learner, "replay", None), getattr(learner, "rollout", None)
    if replay is not None:
        keep_run(run, seen_in(replay))
    if rollout is not None and hasattr(rollout, "columns"):  # whole trajectories have none
        keep_rollout(run, shares_in(rollout))


def shares_in(rollout: RolloutBuffer) -> dict[str, float]:
    """Of the size of its rows, what each column that found out how took of the largest rollout."""
    sizes = rollout.buffer_size, rollout.n_envs
    found = {name: c for name, c in rollout.columns.items() if is_found(c.spec)}
    return {name: c.most_bytes / c.spec.dense_bytes(*sizes) for name, c in found.items()}


def seen_in(replay: ReplayBuffer) -> Seen:
    """Its ends, and how the rows of each entry of the observation are kept."""
    held = min(replay.count, replay.buffer_size)
    ends, limits = (int(np.count_nonzero(x[:held])) for x in (replay._dones, replay._timeouts))
    followed = ends - int(np.count_nonzero(replay._dones[replay.pos - 1])) if held else 0
    rows = {name: _row_seen(column, followed) for name, column in replay.columns.items()}
    return Seen(held, replay.n_envs, ends, limits, rows)


def _row_seen(column: FoundStack, ends: int) -> RowSeen:
    """Of one entry, where so many ends were followed by a step: only then is a row beside known."""
    rows = column.decided().rows
    if isinstance(rows, DenseRows):
        return RowSeen(0.0, 0.0, _share(len(rows.sides), ends))
    assert isinstance(rows, FrameChain)
    held = rows.count - rows.freed_blocks * rows.key_every  # blocks are freed as a whole
    chains = -(-held // rows.key_every) * rows.num_envs
    anchors = rows.anchors_held - rows.num_envs
    return RowSeen(
        rows.record_bytes / max(1, held * rows.num_envs),
        max(0.0, anchors / max(1, chains - rows.num_envs)),
        _share(len(rows.beside), ends),
    )


def _share(part: int, whole: int) -> float:
    return min(1.0, part / whole) if whole else 1.0
