"""`scripts/play.py env=fighting` and `env=fighting_game_boy`: by hand, a policy, a search."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fighting.cartridge.config import GameBoyConfig
from fighting.config import DuelConfig
from fighting.machine import duel
from fighting.machine.console import boot
from fighting.machine.emulator import sha1
from fighting.opponents.saved_player import saved_player
from fighting.rom import ROM_PATH
from fighting.tools.address_search import search
from fighting.tools.by_hand import Session, by_hand
from fighting.tools.joypad import by_joypad, opened
from fighting.tools.listening import MOST_FRAMES, Listener, heard
from fighting.tools.replay import CartridgeReplay, Replay
from fighting.tools.spectator import CARTRIDGE, DUEL, UNUSED, spectate
from frugal_rl.errors import ConfigError
from frugal_rl.report.film import check_film
from frugal_rl.run.play import Probe

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig
    from frugal_rl.run.play import PlayOptions


def play(run: RunConfig, options: PlayOptions) -> Iterator[str]:
    """A window with the keyboard, a film, or a search for addresses; a line per written file."""
    options.without(run.env.name, *UNUSED)
    if options.video:
        check_film(Path(options.video))
    if isinstance(run.env, GameBoyConfig):
        return _cartridge(run.env, run, options)
    assert isinstance(run.env, DuelConfig)
    return _duel(run.env, run, options)


def _duel(config: DuelConfig, run: RunConfig, options: PlayOptions) -> Iterator[str]:
    """By hand; with a checkpoint, its policy sits in the other seat.

    With `env.opponent=...` typed as well, or a film asked for, the policy plays and you watch.
    """
    if options.probe is not Probe.off:
        yield from _duel_probed(config, options)
        return
    watching = any(word.startswith("env.opponent=") for word in run.overrides)
    if options.checkpoint and (options.video or watching):
        yield from spectate(run, options, DUEL)
        return
    session = Session(boot(), duel.MatchSettings(level=config.levels[0]))
    if options.checkpoint:
        session.rival = saved_player(options.checkpoint)
        session.restart()
    try:
        yield from by_hand(session, options)
    finally:
        session.emulator.close()


def _duel_probed(config: DuelConfig, options: PlayOptions) -> Iterator[str]:
    """Addresses by random play or by a marked match; by hand the cartridge needs its joypad."""
    if options.probe is Probe.person:
        raise ConfigError(
            "probe=person plays on the cartridge's joypad: type env=fighting_game_boy, whose "
            "first cartridge is Duel."
        )
    if options.probe is Probe.replay:
        rom = sha1(ROM_PATH.read_bytes())
        yield from heard(Replay.load(Path(options.replay)), options, config.profile, rom)
    else:
        yield from search(boot(), config.profile, options.frames, options.record)


def _cartridge(config: GameBoyConfig, run: RunConfig, options: PlayOptions) -> Iterator[str]:
    """The keyboard is the joypad, a checkpoint is watched, or addresses are searched."""
    if options.checkpoint:
        yield from spectate(run, options, CARTRIDGE)
    elif options.probe is Probe.random:
        game, rom, emulator = opened(config)
        yield from search(emulator, game, options.frames, options.record, sha1(rom))
    elif options.probe is Probe.replay:
        rom = config.game.open_rom(config.rom, config.allow_unknown_rom)
        replay = CartridgeReplay.load(Path(options.replay), rom)
        yield from heard(replay, options, config.game, sha1(rom))
    elif options.probe is Probe.person:
        yield from by_joypad(config, options, Listener(options.frames or MOST_FRAMES))
    else:
        yield from by_joypad(config, options)
