"""What the emulators' states take while a checkpoint is written."""

from __future__ import annotations

from frugal_rl.memory.part import Confidence, Part, Phase

PYBOY_BYTES = 153_524
"""Of one cartridge's state as PyBoy saves it."""
TEXTS = 4
"""As text (four thirds of it) each state is held in the description, in its pieces, in the whole
and once more as bytes."""


def states_part(machines: int, state_bytes: int = PYBOY_BYTES) -> Part:
    """The plan's line; those of an evaluation are saved by nobody, so it counts once."""
    each = state_bytes + TEXTS * 4 * state_bytes // 3
    return Part(
        "checkpoint: emulators",
        f"{machines} states x {each:,} B",
        machines * each,
        shared=True,
        confidence=Confidence.calibrated,
        phases=frozenset({Phase.checkpoint}),
    )
