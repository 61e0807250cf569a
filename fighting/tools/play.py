"""`scripts/play.py env=fighting` and `env=fighting_game_boy`: by hand, a policy, a search."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fighting.cartridge.config import GameBoyConfig
from fighting.cartridge.reading import load_profile
from fighting.cartridge.start_states import StartStates
from fighting.config import DuelConfig
from fighting.machine import duel
from fighting.machine.emulator import FRAMES_PER_SECOND, Emulator
from fighting.opponents.saved_player import saved_player
from fighting.tools.address_search import search
from fighting.tools.by_hand import FIRST_KEYS, WINDOW_SCALE, Session, by_hand
from fighting.tools.pictures import check_film
from fighting.tools.watch import watch
from frugal_rl.errors import ConfigError
from frugal_rl.run.config import RunConfig
from frugal_rl.run.play import Keys, PlayOptions, Window


def play(run: RunConfig, options: PlayOptions) -> Iterator[str]:
    """A window with the keyboard, a film, or a search for addresses; a line per written file."""
    if options.video:
        check_film(Path(options.video))
    if isinstance(run.env, GameBoyConfig):
        return _cartridge(run.env, options)
    assert isinstance(run.env, DuelConfig)
    return _duel(run.env, run, options)


def _duel(config: DuelConfig, run: RunConfig, options: PlayOptions) -> Iterator[str]:
    """By hand; with a checkpoint, its policy sits in the other seat.

    With `env.opponent=...` typed as well, or a film asked for, the policy plays and you watch.
    """
    if options.probe:
        yield from search(duel.boot(), config.profile, options.frames)
        return
    watching = any(word.startswith("env.opponent=") for word in run.overrides)
    if options.checkpoint and (options.video or watching):
        yield from watch(run, options)
        return
    session = Session(duel.boot(), duel.MatchSettings(level=config.levels[0]))
    if options.checkpoint:
        session.rival = saved_player(options.checkpoint)
        session.restart()
    try:
        yield from by_hand(session, options)
    finally:
        session.emulator.close()


def _cartridge(config: GameBoyConfig, options: PlayOptions) -> Iterator[str]:
    """The user's cartridge from its start state: the keyboard is its joypad, or it is probed."""
    if options.checkpoint or options.video or options.record:
        raise ConfigError("env=fighting_game_boy plays by keyboard, or searches with probe=true.")
    game = load_profile(config.profile)
    rom = game.open_rom(config.rom, config.allow_unknown_rom)
    emulator = Emulator(rom)
    StartStates(config.cache, emulator, rom, game).load(0)
    if options.probe:
        yield from search(emulator, game, options.frames)
        return
    window = Window(game.title, emulator.screen[..., :3].shape, WINDOW_SCALE * options.scale)
    keys, count = Keys(), 0
    try:
        while not keys.closed and (count < options.frames or not options.frames):
            emulator.hold(sum(bit for key, bit in FIRST_KEYS.items() if key in keys.held))
            emulator.tick(1, True)
            keys = window.show(emulator.screen[..., :3], FRAMES_PER_SECOND)
            count += 1
    finally:
        window.close()
        emulator.close()
