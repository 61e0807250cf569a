"""What a replay will hold once it is full, judged by what it holds now."""

from __future__ import annotations

from typing import Any

ALLOCATED = ("tables", "codes", "scalars", "priorities", "episodes")
"""Parts that are as large as the replay from the beginning; the system gives them as they fill."""


def filling(replay: Any, total_steps: int) -> dict[str, float]:
    """Bytes of a replay now, and when it holds all that a run of `total_steps` brings into it."""
    held = min(replay.count, replay.buffer_size)
    most = min(replay.buffer_size, max(held, -(-total_steps // replay.n_envs)))
    if not held:
        return {}
    parts = replay.parts()
    size = sum(n for name, n in parts.items() if name.endswith(ALLOCATED))
    grown, each = sum(parts.values()) - size, size / replay.buffer_size
    return {
        "memory/replay_bytes": float(grown + each * held),
        "memory/replay_full_bytes": float(grown * most / held + each * most),
    }
