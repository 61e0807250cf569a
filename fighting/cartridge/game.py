"""Any cartridge as a game: N machines that step together, judged by the rules of a profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fighting.actions import Hands
from fighting.cartridge.rules import compiled
from fighting.cartridge.scene import Scene
from fighting.cartridge.start_states import StartStates
from fighting.cartridge.watching import watch
from fighting.machine.emulator import SCREEN, Emulator
from fighting.machine.frames import colour, darker, grey, half_screen, pack_screen
from fighting.machine.trial import try_states
from fighting.spec import View
from frugal_rl.observation.tables import Tables
from frugal_rl.vec_env.game import Advance, Game, generator_states, restored
from frugal_rl.vec_env.shares import Shares

if TYPE_CHECKING:
    from fighting.cartridge.config import GameBoyConfig
    from frugal_rl.observation.encoder import Raw

PRESSED = 3
"""A and B: the buttons that are let go of within a step, so that the next press is a new one."""
TAKES = {View.rgb: colour, View.gray: grey, View.both: grey, View.half_size: half_screen}


class CartridgeGame(Game):
    """N machines with the same cartridge, the player on the joypad.

    An episode is over where the profile's `end` says so; it is cut after `config.longest` steps.
    """

    def __init__(self, config: GameBoyConfig, count: int, packed: str = "") -> None:
        self.config, self.profile, self.packed = config, config.game, packed
        self.num_worlds, self.tables = count, Tables()
        self.action_space = config.action_space()
        rom = self.profile.open_rom(config.rom, config.allow_unknown_rom)
        self.rules = compiled(self.profile, config.reward, config.accept_guesses)
        self.machines = [Emulator(rom) for _ in range(count)]
        self.shares = Shares(config.threads)
        self.states = StartStates(config.cache, self.machines[0], rom, self.profile)
        self.watched = self.rules.meanings.watched
        self.runs = self.watched.runs()
        meanings = self.rules.meanings
        self.scene = Scene.empty(count, self.watched, len(meanings.slots), len(meanings.maps))
        self.hands = Hands(self.profile, config, count)
        self.rngs: list[np.random.Generator] = []
        self.totals = {name: np.zeros(count) for name in self.rules.reward}
        self.drawn = config.camera.renders or bool(self.watched.pixels)
        pooled = count if config.max_pool and self.drawn else 0
        self.pooled = np.zeros((pooled, *SCREEN, 4), np.uint8)
        shape = config.camera.shape
        if packed:
            shape = (*shape[:-1], shape[-1] // 4)
        self.frames = np.zeros((count if config.camera.renders else 0, *shape), np.uint8)

    def seed(self, rngs: Sequence[np.random.Generator]) -> None:
        """One source of random numbers per machine."""
        self.rngs = list(rngs)

    def begin(self, which: np.ndarray) -> None:
        """Load start states and wait a random number of frames."""
        for i in which.tolist():
            rng = self.rngs[i]
            self.states.load(int(rng.integers(len(self.states.states))), self.machines[i])
            wait = 1 + int(rng.integers(self.config.warmup_noop_max + 1))
            self.machines[i].tick(wait, self.drawn)
            self._look(i)
        self.rules.begin(self.scene, which)
        self.hands.begin(which)
        for total in self.totals.values():
            total[which] = 0

    def advance(self, actions: np.ndarray) -> Advance:
        """One action per machine, held for the frame skip."""
        scene, rules = self.scene, self.rules
        left_side = rules.left_side(scene).astype(np.int64)
        pressed = self.hands.buttons(actions, left_side, self.rngs).tolist()
        scene.pass_on()

        def some(first: int, end: int) -> None:
            for i in range(first, end):
                self._hold(i, pressed[i])

        self.shares.each(self.num_worlds, some)
        scene.steps += 1
        scene.frames += self.config.frame_skip
        rules.keep(scene)
        reward = np.zeros(self.num_worlds)
        for name, rule in rules.reward.items():
            paid = rule(scene)
            self.totals[name] += paid
            reward += paid
        terminated = np.zeros(self.num_worlds, bool) if rules.end is None else rules.end(scene) != 0
        truncated = (scene.steps >= self.config.longest) & ~terminated
        return Advance(reward.astype(np.float32), terminated, truncated)

    def _hold(self, i: int, byte: int) -> None:
        """Hold one set of buttons for the frame skip."""
        config, machine = self.config, self.machines[i]
        left = config.frame_skip
        machine.hold(byte)
        if 0 < config.press_frames < left and byte & PRESSED:
            machine.tick(config.press_frames)
            machine.hold(byte & ~PRESSED)
            left -= config.press_frames
        if len(self.pooled) and left > 1:
            machine.tick(left - 1, True)
            self.pooled[i] = machine.screen
            left = 1
        machine.tick(left, self.drawn)
        if len(self.pooled):
            darker(machine.screen, self.pooled[i])
        self._look(i)

    def _look(self, i: int) -> None:
        """Reads what is watched and takes the picture."""
        machine = self.machines[i]
        watch(machine, self.watched, self.runs, self.scene, i)
        if len(self.frames):
            take = pack_screen if self.packed else TAKES[self.config.obs]
            take(machine.pixels, False, self.frames[i])

    def observe(self, which: np.ndarray | None = None) -> Raw:
        """Raw fields; packed frames in the form that rows are stored in."""
        rows: Any = slice(None) if which is None else which
        raw: Raw = {}
        if self.config.camera.renders:
            raw[f"frame_{self.packed}" if self.packed else "frame"] = self.frames[rows]
        if self.config.shows_memory:
            features = [rule(self.scene) for rule in self.rules.features.values()]
            raw["features"] = np.vstack(features).T.astype(np.float32)[rows]
        return raw

    def outcomes(self, which: np.ndarray) -> dict[str, np.ndarray]:
        """Length, success, score, and what each part of the reward paid."""
        rules, scene, count = self.rules, self.scene, len(which)
        success = np.zeros(count) if rules.success is None else rules.success(scene)[which] != 0
        score = {} if rules.score is None else {"score": rules.score(scene)[which]}
        paid = {f"paid_{name}": total[which].copy() for name, total in self.totals.items()}
        length = scene.steps[which].astype(np.float64)
        return {"length": length, "success": success.astype(np.float64), **score, **paid}

    def parts(self) -> dict[str, int]:
        """Bytes held beside the emulators."""
        pictures = self.frames.nbytes + self.pooled.nbytes
        return {"game memory": self.scene.nbytes, "frames": pictures}

    def state(self) -> dict[str, Any]:
        """All that an exact resume needs."""
        before = self.scene.before
        assert before is not None
        return {
            "machines": [machine.save() for machine in self.machines],
            "held": [machine.held for machine in self.machines],
            "rngs": generator_states(self.rngs),
            "scene": [array.copy() for array in (*self.scene.arrays, *before.arrays)],
            "maps": self.scene.maps.copy(),
            "totals": {name: total.copy() for name, total in self.totals.items()},
            "hands": [self.hands.left.copy(), self.hands.running.copy(), self.hands.last.copy()],
            "frames": self.frames.copy(),
        }

    def vet(self, state: dict[str, Any]) -> None:
        """The emulator goes on from each machine's state, in a child."""
        try_states(self.states.rom, state["machines"])

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        saved = zip(self.machines, state["machines"], state["held"], strict=True)
        for machine, kept, held in saved:
            machine.load(kept)
            machine.held = held
        self.rngs = restored(state["rngs"])
        assert self.scene.before is not None
        arrays = (*self.scene.arrays, *self.scene.before.arrays)
        for own, kept in zip(arrays, state["scene"], strict=True):
            own[...] = kept
        self.scene.maps[...] = state.get("maps", self.scene.maps)  # older checkpoints have none
        for name, total in self.totals.items():
            total[...] = state["totals"][name]
        hands = (self.hands.left, self.hands.running, self.hands.last)
        for own, kept in zip(hands, state["hands"], strict=True):
            own[...] = kept
        self.frames[...] = state["frames"]

    def close(self) -> None:
        """Ends threads and emulation."""
        self.shares.close()
        for machine in self.machines:
            machine.close()
