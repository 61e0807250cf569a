"""Who sits at the second pad of one machine while a person holds the first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fighting.actions import Hands
from fighting.cartridge.rules import compiled
from fighting.cartridge.scene import Scene
from fighting.cartridge.second_seat import MIRRORED, SecondSeat
from fighting.cartridge.watching import watch
from fighting.opponents.rivals import rival_of
from fighting.opponents.scripts import of_any_game

if TYPE_CHECKING:
    from fighting.cartridge.config import GameBoyConfig
    from fighting.machine.emulator import Emulator

ONE = np.zeros(1, np.int64)


class Opposite:
    """The rival that `env.opponent` names: `press` before each frame writes its buttons."""

    def __init__(self, config: GameBoyConfig, emulator: Emulator, seed: int = 0) -> None:
        game, self.config, self.emulator = config.game, config, emulator
        assert game.pads is not None
        self.pads = game.pads
        self.rules = compiled(game, config.reward, config.accept_guesses)
        watched, meanings = self.rules.meanings.watched, self.rules.meanings
        self.seat = SecondSeat(game.pads, game.memory, watched)
        self.runs = watched.runs()
        self.plain = np.zeros((1, len(watched.addresses)), np.uint8)
        self.scene = Scene.empty(1, watched, len(meanings.slots), len(meanings.maps))
        self.hands = Hands(game, replace(config, sticky=0.0), 1)
        self.rival = rival_of(config, 1, of_any_game(config.choices))
        self.rngs = [np.random.default_rng(seed)]
        self.rival.begin(0, self.rngs[0])
        game.pads.begin(emulator)
        self.frame, self.byte = 0, 0

    def press(self) -> int:
        """What the second player holds in the frame to come; written where the game reads it."""
        if self.frame % self.config.frame_skip == 0:
            self._see()
            self.byte = self._chosen()
        self.frame += 1
        self.emulator.memory[self.pads.second] = self.byte
        return self.byte

    def _see(self) -> None:
        scene, meanings = self.scene, self.rules.meanings
        scene.pass_on()
        watch(self.emulator, meanings.watched, self.runs, self.plain[0], scene.pixels[0])
        scene.memory[:] = self.seat.seen(self.plain)
        if self.frame == 0:
            meanings.begin(scene, ONE)
            return
        scene.steps += 1
        scene.frames += self.config.frame_skip
        meanings.keep(scene)

    def _chosen(self) -> int:
        scene, rules = self.scene, self.rules
        action = self.rival.act(rules.shown(scene), scene.steps, self.rngs)
        left_side = rules.left_side(scene).astype(np.int64)
        byte = int(self.hands.buttons(action, left_side, self.rngs)[0])
        return int(MIRRORED[byte]) if self.pads.mirror else byte
