"""Finding addresses: plays a game with random buttons and reports bytes that behave like health.

`scripts/play.py env=fighting_game_boy env.profile=... env.rom=my.gb probe=true` prints the
candidates as lines for the profile.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fighting.cartridge.profile import Profile
from fighting.machine.emulator import Emulator
from fighting.tools.candidates import (
    WORK_RAM,
    WORK_RAM_BYTES,
    Candidate,
    clocks,
    fallers,
    fighter_blocks,
)

FRAMES = 1800
CALM_FRAMES = 30
HOLD_FRAMES = 8


def recorded(emulator: Emulator, combos: tuple[int, ...], frames: int, seed: int) -> np.ndarray:
    """Work memory [frames, 8192] uint8 of play with random buttons, after a calm begin."""
    rng = np.random.default_rng(seed)
    memory = np.zeros((frames, WORK_RAM_BYTES), np.uint8)
    for frame in range(frames):
        if frame >= CALM_FRAMES and frame % HOLD_FRAMES == 0:
            emulator.hold(int(rng.choice(combos)))
        if frame % HOLD_FRAMES == HOLD_FRAMES // 2:
            emulator.hold(0)
        emulator.tick(1)
        memory[frame] = emulator.read(WORK_RAM, WORK_RAM_BYTES)
    return memory


def _first_rise(memory: np.ndarray, found: list[Candidate]) -> int:
    """The first frame in which one of the candidates rises: a new round; else all frames."""
    values = memory[:, [c.addr - WORK_RAM for c in found]].astype(np.int16)
    rises = np.flatnonzero((np.diff(values, axis=0) > 0).any(axis=1))
    return int(rises[0]) if len(rises) else len(memory)


def search(emulator: Emulator, game: Profile, frames: int = 0, seed: int = 0) -> Iterator[str]:
    """Lines for the profile's `memory:`, and what to do with them; closes the emulator."""
    combos = game.combos or (0, 1, 2, 16, 32, 17, 18)
    try:
        memory = recorded(emulator, combos, frames or FRAMES, seed)
    finally:
        emulator.close()
    found = fallers(memory, CALM_FRAMES)
    first_round = memory[: _first_rise(memory, found)]
    yield f"# {len(memory)} frames of random play on '{game.id}'. Health: bytes that only fall."
    starts = [c.value for c in found]
    twins = [c for c in found if starts.count(c.value) > 1]  # both begin with the same bar
    pairs = sorted({(min(p), max(p)) for p in fighter_blocks(twins, twins)})
    for number, (one, two) in enumerate(pairs):
        values = {c.addr: c for c in found}
        for name, address in (("p1_hp", one), ("p2_hp", two)):
            c = values[address]
            line = Candidate(name, c.addr, c.value, c.reason).yaml()
            yield line if number == 0 else f"# or {line.strip()}"
    paired = {address for pair in pairs for address in pair}
    for c in found:
        if c.addr not in paired:
            yield f"# alone {c.yaml().strip()}"
    yield "# Clocks: bytes that fall by one every 50 to 70 frames."
    for c in clocks(first_round):
        yield c.yaml()
    yield "# Check them (status: verified), e.g. by playing on with probe=true and another seed."
