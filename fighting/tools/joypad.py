"""A cartridge by hand: the keyboard is its joypad; what was played can be kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fighting.cartridge.reading import load_profile
from fighting.cartridge.start_states import StartStates, write_state
from fighting.machine.emulator import FRAMES_PER_SECOND, Emulator
from fighting.tools.by_hand import FIRST_KEYS, WINDOW_SCALE
from fighting.tools.pictures import Shot, packed_screen, pages, save_film
from fighting.tools.replay import CartridgeReplay, next_path
from frugal_rl.run.play import Keys, PlayOptions, Window

if TYPE_CHECKING:
    from fighting.cartridge.config import GameBoyConfig
    from fighting.cartridge.profile import Profile

SAVE_KEY = "p"


def opened(config: GameBoyConfig) -> tuple[Profile, bytes, Emulator]:
    """The profile, the cartridge and a machine in its first start state."""
    game = load_profile(config.profile)
    rom = game.open_rom(config.rom, config.allow_unknown_rom)
    emulator = Emulator(rom)
    StartStates(config.cache, emulator, rom, game).load(0)
    return game, rom, emulator


def by_joypad(config: GameBoyConfig, options: PlayOptions) -> Iterator[str]:
    """A window until it is closed; with record=FOLDER a replay, and a state for each P."""
    game, rom, emulator = opened(config)
    replay = CartridgeReplay(rom, emulator.save())
    emulator.load(replay.state)  # a replay begins with loading too
    window = Window(game.title, emulator.screen[..., :3].shape, WINDOW_SCALE * options.scale)
    keys, count, shots = Keys(), 0, []
    try:
        while not keys.closed and (count < options.frames or not options.frames):
            replay.add(sum(bit for key, bit in FIRST_KEYS.items() if key in keys.held))
            emulator.hold(replay.frames[-1])
            emulator.tick(1, True)
            if options.video and count % options.every == 0:
                shots.append(Shot(packed_screen(emulator.screen)))
            keys = window.show(emulator.screen[..., :3], FRAMES_PER_SECOND)
            if options.record and SAVE_KEY in keys.pressed:
                path = Path(options.record) / f"{game.id}_{count}.state"
                path.parent.mkdir(parents=True, exist_ok=True)
                write_state(path, emulator, rom)
                yield f"State: {path}"
            count += 1
        if options.record:
            path = next_path(Path(options.record), game.id)
            replay.save(path, emulator)
            yield f"Replay: {path}"
    finally:
        window.close()
        emulator.close()
    if options.video:
        save_film(Path(options.video), pages(shots), frame_skip=options.every)
        yield f"Film: {options.video} ({len(shots)} pictures)"
