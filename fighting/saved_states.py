"""What the emulators' states take while a checkpoint is written."""

from __future__ import annotations

from frugal_rl.memory.part import Confidence, Part, Phase

PYBOY_BYTES = 153_524
"""Of one cartridge's state as PyBoy saves it."""


def states_part(machines: int, state_bytes: int = PYBOY_BYTES) -> Part:
    """The plan's line; those of an evaluation are saved by nobody, so it counts once."""
    return Part(
        "checkpoint: emulators",
        f"{machines} states x {state_bytes:,} B",
        machines * state_bytes,
        shared=True,
        confidence=Confidence.calibrated,
        phases=frozenset({Phase.checkpoint}),
    )
