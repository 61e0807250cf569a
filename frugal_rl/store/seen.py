"""What a replay held, for plans of replays of the same environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.memory.replay_data import RowSeen, Seen, keep_run
from frugal_rl.store.chain import FrameChain
from frugal_rl.store.dense_rows import DenseRows

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig
    from frugal_rl.store.replay import ReplayBuffer
    from frugal_rl.store.stacks import FoundColumn


def remember_replay(run: RunConfig, learner: Any) -> None:
    """Keep what a run's replay held for the plans that come; learners without one have nothing."""
    replay = getattr(learner, "replay", None)
    if replay is not None:
        keep_run(run, seen_in(replay))


def seen_in(replay: ReplayBuffer) -> Seen:
    """Its ends, and how the rows of each entry of the observation are kept."""
    held = min(replay.count, replay.buffer_size)
    ends, limits = (int(np.count_nonzero(x[:held])) for x in (replay._dones, replay._timeouts))
    followed = ends - int(np.count_nonzero(replay._dones[replay.pos - 1])) if held else 0
    rows = {name: _row_seen(column, followed) for name, column in replay.columns.items()}
    return Seen(held, replay.n_envs, ends, limits, rows)


def _row_seen(column: FoundColumn, ends: int) -> RowSeen:
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
