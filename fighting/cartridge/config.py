"""Any Game Boy fighter: the user's own cartridge image, read through a profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from gymnasium import spaces

from fighting.cartridge.env import GameBoyEnv
from fighting.cartridge.profile import Profile, System, load_profile
from fighting.rules import Weights
from fighting.spec import Camera, View, observation_spec
from frugal_rl.errors import ConfigError
from frugal_rl.memory.part import Confidence, Part
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import ObservationSpec
from frugal_rl.vec_env.interface import VectorEnv
from frugal_rl.vec_env.threads import Threads

EMULATOR_BYTES = 1_600_000
"""A running cartridge with its compressed start states, rounded up."""


@dataclass(frozen=True)
class GameBoyConfig:
    """A fighter on the user's own cartridge. Composed from conf/env/fighting_game_boy.yaml."""

    tools: ClassVar[str] = "fighting.tools"
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

    @property
    def camera(self) -> Camera:
        """Which picture is taken."""
        return Camera(self.obs, self.crop, self.stack)

    def spec(self) -> ObservationSpec:
        """The observation; only games of four shades offer packed frames."""
        shades = self.game.system is System.dmg
        return observation_spec(Camera(self.obs, self.crop, self.stack), four_shades=shades)

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

    def parts(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any
    ) -> list[Part]:
        """Running cartridges."""
        total = num_envs * EMULATOR_BYTES
        formula = f"{num_envs} cartridges x {EMULATOR_BYTES:,} B"
        return [Part("emulators", formula, total, confidence=Confidence.calibrated)]
