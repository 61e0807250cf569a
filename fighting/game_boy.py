"""Any Game Boy fighter: the user's own cartridge image, read through a profile."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from fighting.emulator import BUTTONS, PYBOY_VERSION, Emulator, StateError, sha1
from fighting.frames import colour, darker, grey, half_screen
from fighting.profile import Address, Profile, System, facing_left, load_profile
from fighting.rules import Weights
from fighting.spec import Camera, View, observation_spec
from frugal_rl.errors import ConfigError
from frugal_rl.memory.part import Confidence, Part
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import ObservationSpec
from frugal_rl.observation.tables import Tables
from frugal_rl.vec_env.interface import VectorEnv
from frugal_rl.vec_env.plain import Raw, SpecEnv
from frugal_rl.vec_env.threads import Threads

if TYPE_CHECKING:
    from frugal_rl.memory.checks import Finding
    from frugal_rl.run.config import RunConfig
    from frugal_rl.run.play import PlayOptions

EMULATOR_BYTES = 1_600_000
"""A running cartridge with its compressed start states, rounded up."""
COMPARISONS = {"ge": int.__ge__, "le": int.__le__, "eq": int.__eq__}


@dataclass(frozen=True)
class GameBoyConfig:
    """A fighter on the user's own cartridge. Composed from conf/env/fighting_game_boy.yaml."""

    name: str = "fighting_game_boy"
    profile: str = "duel"
    """A bundled profile's name, or the path of a YAML file."""
    rom: str | None = None
    """Path of the cartridge image; only the bundled game needs none."""
    allow_unknown_rom: bool = False
    accept_guesses: bool = False
    cache: str | None = None
    """Folder in which start states are kept; None makes them anew."""
    obs: View = View.half_size
    """rgb | gray | half_size: what the policy sees; memory features are for Duel only."""
    crop: bool = False
    stack: int = 4
    max_pool: bool = True
    """Take the darker of the last two frames: commercial games flicker."""
    frame_skip: int = 4
    press_frames: int = 2
    """Frames for which A and B stay down; 0 means all."""
    warmup_noop_max: int = 30
    """Frames without input after a start state, drawn anew for each episode."""
    max_steps: int = 0
    """Longest episode; 0 means 1.1 times what the clock allows."""
    reward: Weights = field(default_factory=Weights)
    fields: Mapping[str, str] = field(default_factory=dict)
    episode_steps: int = 0

    def __post_init__(self) -> None:
        if self.obs in (View.ram, View.both):
            raise ConfigError("env.obs=ram needs a cartridge that is known in full: env=fighting.")
        if not 0 <= self.press_frames <= self.frame_skip:
            raise ConfigError(f"env.press_frames is {self.press_frames}; use 0 to frame_skip.")

    @cached_property
    def game(self) -> Profile:
        """The profile, checked."""
        game = load_profile(self.profile)
        game.check_trainable(self.accept_guesses)
        if not game.combos:
            raise ConfigError(f"The profile '{game.id}' lists no actions.combos.")
        return game

    @property
    def longest(self) -> int:
        """Steps after which an episode is cut."""
        return self.max_steps or int(1.1 * self.game.round_seconds * 60 / self.frame_skip)

    def spec(self) -> ObservationSpec:
        """The observation; only games of four shades offer packed frames."""
        shades = self.game.system is System.dmg
        return observation_spec(Camera(self.obs, self.crop, self.stack), four_shades=shades)

    def checks(self) -> list[Finding]:
        """What the planner should know of emulators."""
        from fighting.checks import EmulatorFacts, findings, version_numbers

        return findings(
            EmulatorFacts(
                packed=self.fields.get("frame") in ("packed", "delta"),
                four_shades=self.game.system is System.dmg,
                stack=self.stack,
                frame_skip=self.frame_skip,
                fastest_startup=self.game.fastest_startup,
                longest_startup=self.game.longest_startup,
                loads_states=True,
                pyboy=version_numbers(),
            )
        )

    def action_space(self) -> spaces.Space[Any]:
        """The profile's sets of buttons."""
        return spaces.Discrete(len(self.game.combos))

    def make(self, seed: int | None = None) -> GameBoyEnv:
        """One plain Gymnasium environment."""
        return GameBoyEnv(self, seed)

    def make_vec(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any, split: str
    ) -> VectorEnv:
        """Single environments, on threads unless `vec` says otherwise."""
        backend = Threads() if vec is None or vec.native else vec
        built: VectorEnv = backend.build(self, num_envs, encoding, memory)
        return built

    def play(self, run: RunConfig, options: PlayOptions) -> Iterator[str]:
        """A window with the keyboard, or with probe=true a search for addresses."""
        from fighting.play import play_game_boy

        return play_game_boy(self, options)

    def parts(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any
    ) -> list[Part]:
        """Running cartridges."""
        total = num_envs * EMULATOR_BYTES
        formula = f"{num_envs} cartridges x {EMULATOR_BYTES:,} B"
        return [Part("emulators", formula, total, confidence=Confidence.calibrated)]


class StartStates:
    """The states from which episodes begin, made by a profile's recipe, kept compressed."""

    def __init__(
        self, config: GameBoyConfig, emulator: Emulator, rom: bytes, game: Profile
    ) -> None:
        self.emulator, self.game = emulator, game
        recipe = json.dumps([dict(s) for s in game.start], sort_keys=True).encode()
        key = hashlib.sha1(recipe, usedforsecurity=False).hexdigest()[:12]
        name = f"{sha1(rom)[:16]}-{key}-pyboy{PYBOY_VERSION}.states"
        self.path = Path(config.cache) / name if config.cache else None
        self.states = self._kept() or self._made()

    def load(self, index: int) -> None:
        """Goes to a state and draws one frame: a state holds the colours it was saved with."""
        try:
            self.emulator.load(zlib.decompress(self.states[index]))
        except (StateError, zlib.error) as error:
            if self.path is None:
                raise
            words = f"{self.path}: {error} Without the file the states are made again."
            raise StateError(words) from error
        self.emulator.hold(0)
        self.emulator.tick(1, True)

    def _kept(self) -> list[bytes]:
        if self.path is None or not self.path.is_file():
            return []
        data, states = self.path.read_bytes(), []
        while data:
            size = int.from_bytes(data[:4], "little")
            if len(data) < 4 + size:
                raise ConfigError(f"{self.path} is truncated; delete it, it will be made again.")
            states.append(data[4 : 4 + size])
            data = data[4 + size :]
        return states

    def _made(self) -> list[bytes]:
        found: list[bytes] = []
        for number, step in enumerate(self.game.start):
            self._run(number, step, found)
        states = [zlib.compress(state) for state in found or [self.emulator.save()]]
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            part = self.path.with_suffix(".part")
            part.write_bytes(b"".join(len(s).to_bytes(4, "little") + s for s in states))
            part.replace(self.path)
        return states

    def _run(self, number: int, step: Mapping[str, Any], found: list[bytes]) -> None:
        where = f"profile '{self.game.id}': start[{number}]"
        if "wait" in step:
            self.emulator.tick(int(step["wait"]))
        elif "press" in step:
            if step["press"] not in BUTTONS:
                raise ConfigError(f"{where}: no button {step['press']!r}.")
            self.emulator.hold(1 << BUTTONS.index(step["press"]))
            self.emulator.tick(int(step.get("frames", 4)))
            self.emulator.hold(0)
            self.emulator.tick(1)
        elif "until" in step:
            self._wait_until(step, where)
        elif "save" in step:
            found.append(self.emulator.save())
        else:
            raise ConfigError(f"{where} is none of wait, press, until, save.")

    def _wait_until(self, step: Mapping[str, Any], where: str) -> None:
        condition = dict(step["until"])
        address = self.game.address(str(condition.pop("memory")))
        if len(condition) != 1 or (word := next(iter(condition))) not in COMPARISONS:
            raise ConfigError(f"{where}: until takes one of {', '.join(COMPARISONS)}.")
        for _ in range(int(step.get("timeout", 3000))):
            if COMPARISONS[word](value_at(self.emulator, address), int(condition[word])):
                return
            self.emulator.tick(1)
        raise ConfigError(f"{where} did not happen within {step.get('timeout', 3000)} frames.")


def value_at(emulator: Emulator, address: Address) -> int:
    """The number that lies at an address of the profile."""
    assert address.addr is not None
    return address.value(emulator.read(address.addr, address.size))


class GameBoyEnv(SpecEnv):
    """One fight on the user's cartridge, player 1 on the joypad.

    Health that rises is a new round, not a reward. Terminates when a fighter is knocked out, or
    when the profile's phase says that the round is over; truncates after `config.longest` steps.
    """

    def __init__(self, config: GameBoyConfig, seed: int | None = None) -> None:
        self.config, self.game = config, config.game
        rom = self.game.open_rom(config.rom, config.allow_unknown_rom)
        self.emulator = Emulator(rom)
        self.states = StartStates(config, self.emulator, rom, self.game)
        self.combos = [(b, facing_left(b)) for b in self.game.combos]
        self.action_space = config.action_space()
        self.steps = 0
        camera = Camera(config.obs, config.crop, config.stack)
        self.frame = np.zeros(camera.shape, np.uint8)
        self.last = np.zeros_like(self.emulator.screen)
        super().__init__(config.spec(), Tables(), config.episode_steps)
        if seed is not None:
            self.reset(seed=seed)

    def begin(self) -> None:
        """Load a start state and wait a random number of frames."""
        self.states.load(int(self.np_random.integers(len(self.states.states))))
        self.emulator.tick(1 + int(self.np_random.integers(self.config.warmup_noop_max + 1)), True)
        self.steps = 0
        self.health = self._health()
        self._picture()

    def advance(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        """Hold one set of buttons for the frame skip."""
        config, emulator = self.config, self.emulator
        byte = self.combos[int(action)][0 if self._on_the_left() else 1]
        emulator.hold(byte)
        left = config.frame_skip
        if 0 < config.press_frames < left and byte & 3:
            emulator.tick(config.press_frames)
            emulator.hold(byte & ~3)
            left -= config.press_frames
        if config.max_pool and left > 1:
            emulator.tick(left - 1, True)
            self.last[:] = emulator.screen
            left = 1
        emulator.tick(left, True)
        if config.max_pool:
            darker(emulator.screen, self.last)
        self._picture()
        self.steps += 1
        return self._judged()

    def _judged(self) -> tuple[float, bool, bool, dict[str, Any]]:
        before, self.health = self.health, self._health()
        taken, dealt = (max(b - a, 0.0) for b, a in zip(before, self.health, strict=True))
        down = [h == 0 for h in self.health]
        weights = self.config.reward
        reward = weights.dealt * dealt - weights.taken * taken - weights.time
        reward += weights.ko * (float(down[1]) - float(down[0]))
        terminated = any(down) or self._phase_over()
        won = terminated and self.health[0] > self.health[1]
        truncated = not terminated and self.steps >= self.config.longest
        return reward, terminated, truncated, {"success": won, "hp": self.health}

    def _health(self) -> tuple[float, float]:
        """Shares of a full bar; values that mean knocked out are 0."""
        shares = []
        for name in ("p1_hp", "p2_hp"):
            address = self.game.address(name)
            value = value_at(self.emulator, address)
            shares.append(0.0 if value in self.game.ko_values else value / address.max)
        return shares[0], shares[1]

    def _phase_over(self) -> bool:
        phase = self.game.memory.get("phase")
        if phase is None or phase.addr is None:
            return False
        return value_at(self.emulator, phase) in (*phase.over, *phase.match_over)

    def _on_the_left(self) -> bool:
        """Where the profile knows both places; else as at the start."""
        places = [self.game.memory.get(n) for n in ("p1_x", "p2_x")]
        if any(p is None or p.addr is None for p in places):
            return True
        one, two = (value_at(self.emulator, p) for p in places if p is not None)
        return one <= two

    def _picture(self) -> None:
        takes: dict[View, Any] = {
            View.rgb: colour, View.gray: grey, View.half_size: half_screen,
        }  # fmt: skip
        takes[self.config.obs](self.emulator.pixels, False, self.frame)

    def raw(self) -> Raw:
        """The current frame."""
        return {"frame": self.frame}

    def close(self) -> None:
        """End the emulation."""
        self.emulator.close()
