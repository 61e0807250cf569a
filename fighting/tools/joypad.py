"""A cartridge by hand: the keyboard is its joypad; what was played can be kept, and marked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fighting.cartridge.opposite import Opposite
from fighting.cartridge.reading import load_profile
from fighting.cartridge.start_states import StartStates, write_state
from fighting.choices import Rival
from fighting.machine.emulator import FRAMES_PER_SECOND, Emulator, sha1
from fighting.tools.by_hand import FIRST_KEYS, WINDOW_SCALE
from fighting.tools.marks import ASKED, WITHOUT_SCREEN, write_marks
from fighting.tools.pictures import Shot, packed_screen, pages, save_film
from fighting.tools.replay import CartridgeReplay, next_path
from frugal_rl.run.play import FILMS, Keys, PlayOptions, Window

if TYPE_CHECKING:
    from fighting.cartridge.config import GameBoyConfig
    from fighting.cartridge.profile import Profile
    from fighting.tools.listening import Listener

SAVE_KEY = "p"


def opened(config: GameBoyConfig) -> tuple[Profile, bytes, Emulator]:
    """The profile, the cartridge and a machine in its first start state."""
    game = load_profile(config.profile)
    rom = game.open_rom(config.rom, config.allow_unknown_rom)
    emulator = Emulator(rom)
    StartStates(config.cache, emulator, rom, game).load(0)
    return game, rom, emulator


def by_joypad(
    config: GameBoyConfig, options: PlayOptions, listener: Listener | None = None
) -> Iterator[str]:
    """A window until it is closed; with record=FOLDER a replay, and a state for each P.

    With `env.opponent=policy`, or another that sits at the second pad, you meet it.

    A listener hears the keys that mark what happened, and tells what it found when play is over.
    """
    game, rom, emulator = opened(config)
    rival = None if config.opponent is Rival.cpu else Opposite(config, emulator)
    second = None if rival is None else rival.pads.second
    replay = CartridgeReplay(rom, emulator.save(), second=second)
    emulator.load(replay.state)  # a replay begins with loading too
    window = _window(game, emulator, options, listener is not None)
    frames, shots = listener.most if listener else options.frames, []
    if listener:
        yield ASKED
    try:
        for count, keys in enumerate(_played(window, emulator, replay, frames, rival)):
            if options.video and count % options.every == 0:
                shots.append(Shot(packed_screen(emulator.screen)))
            if options.record and SAVE_KEY in keys.pressed:
                path = Path(options.record) / f"{game.id}_{count}.state"
                path.parent.mkdir(parents=True, exist_ok=True)
                write_state(path, emulator, rom)
                yield f"State: {path}"
            if listener:
                listener.see(emulator)
                yield from listener.pressed(keys.pressed, window.name)
        if options.record:
            yield from _kept(replay, emulator, Path(options.record), game, listener)
    finally:
        window.close()
        emulator.close()
    if options.video:
        save_film(Path(options.video), pages(shots), frame_skip=options.every)
        yield f"Film: {options.video} ({len(shots)} pictures)"
    if listener:
        yield from listener.found(game, options.record, sha1(rom))


def _window(game: Profile, emulator: Emulator, options: PlayOptions, marking: bool) -> Window:
    """Empty as yet; its caption names the keys that mark."""
    caption = f"{game.title}: X lost, C gained, V nothing, Esc done" if marking else game.title
    instead = WITHOUT_SCREEN if marking else FILMS
    shape = emulator.screen[..., :3].shape
    return Window(caption, shape, WINDOW_SCALE * options.scale, instead)


def _played(
    window: Window,
    emulator: Emulator,
    replay: CartridgeReplay,
    frames: int,
    rival: Opposite | None,
) -> Iterator[Keys]:
    """Play until the window is closed, or for so many frames; yields the keys of each frame."""
    keys, count = Keys(), 0
    while not keys.closed and (count < frames or not frames):
        buttons = sum(bit for key, bit in FIRST_KEYS.items() if key in keys.held)
        replay.add(buttons, rival.press() if rival is not None else 0)
        emulator.hold(buttons)
        emulator.tick(1, True)
        keys = window.show(emulator.screen[..., :3], FRAMES_PER_SECOND)
        yield keys
        count += 1


def _kept(
    replay: CartridgeReplay,
    emulator: Emulator,
    folder: Path,
    game: Profile,
    listener: Listener | None,
) -> Iterator[str]:
    """The replay and its marks, which `probe=replay` reads again."""
    path = next_path(folder, game.id)
    replay.save(path, emulator)
    yield f"Replay: {path}"
    if listener:
        marks = path.with_suffix(".csv")
        write_marks(marks, listener.moments)
        yield f"Marks: {marks}"
