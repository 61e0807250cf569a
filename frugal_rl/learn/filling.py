"""What a replay will hold once it is full, judged by what it holds now."""

from __future__ import annotations

from typing import Any

ALLOCATED = ("tables", "codes", "scalars", "priorities", "episodes")
"""Parts that are as large as the replay from the beginning; the system gives them as they fill."""
ON_DEVICE = "on the device"


def filling(replay: Any, total_steps: int) -> dict[str, float]:
    """Bytes of a replay now, and when it holds all that a run of `total_steps` brings into it."""
    held = min(replay.count, replay.buffer_size)
    most = min(replay.buffer_size, max(held, -(-total_steps // replay.n_envs)))
    if not held:
        return {}
    parts = {n: size for n, size in replay.parts().items() if _in_memory(replay, n)}
    size = sum(n for name, n in parts.items() if name.endswith(ALLOCATED))
    grown, each = sum(parts.values()) - size, size / replay.buffer_size
    return {
        "memory/replay_bytes": float(grown + each * held),
        "memory/replay_full_bytes": float(grown * most / held + each * most),
    }


def _in_memory(replay: Any, part: str) -> bool:
    """Whether a part lies in RAM, and not in an accelerator's memory."""
    return replay.device.type == "cpu" or not part.endswith(ON_DEVICE)
