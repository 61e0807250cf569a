"""Any Game Boy game: the user's own cartridge image, read through a profile."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from gymnasium import spaces

from fighting.actions import action_space
from fighting.cartridge.env import GameBoyEnv
from fighting.cartridge.game import CartridgeGame
from fighting.cartridge.profile import Profile, System
from fighting.cartridge.reading import load_profile
from fighting.cartridge.rules import compiled
from fighting.cartridge.scene import FRAMES_PER_SECOND, MAP_BYTES
from fighting.choices import Actions, PoolChoice, Rival, Weights
from fighting.saved_states import states_part
from fighting.seating import paired
from fighting.spec import Camera, View, observation_spec, packed_form
from frugal_rl.errors import ConfigError
from frugal_rl.memory.choices import Buffers
from frugal_rl.memory.part import Confidence, Part
from frugal_rl.ranges import at_least, between
from frugal_rl.vec_env.game_env import GameVecEnv
from frugal_rl.vec_env.threads import Threads

if TYPE_CHECKING:
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.spec import ObservationSpec
    from frugal_rl.vec_env.interface import VectorEnv

UNLIMITED_SECONDS = 600.0
"""What cuts an episode of a profile that has an end and names no time limit."""
EMULATOR_BYTES = 1_600_000
"""A running cartridge with its compressed start states, rounded up."""
PLAYERS = (Rival.cpu, Rival.still, Rival.random, Rival.policy)
OPPONENTS = {
    "opponent": (*PLAYERS, Rival.self_play, Rival.mixed),
    "eval_opponent": PLAYERS,
}
"""Who may sit at the second pad of any cartridge."""


@dataclass(frozen=True)
class GameBoyConfig:
    """A game on the user's own cartridge. Composed from conf/env/fighting_game_boy.yaml."""

    tools: ClassVar[str] = "fighting.tools"
    libraries_bytes: ClassVar[int] = 44 << 20
    """What its libraries and kernels hold beyond a bare process; see `benchmarks/plan_cells.py`."""
    compiles: ClassVar[bool] = True
    """It is tried out in small before its first run (`frugal_rl.memory.kernels`)."""
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
    """ram (the profile's features) | rgb | gray | half_size | both: what the policy sees."""
    crop: bool = False
    stack: Annotated[int, between(1, 16)] = 4
    max_pool: bool = True
    """Take the darker of the last two frames: commercial games flicker."""
    actions: Actions = Actions.combos
    """combos | macros | buttons."""
    frame_skip: Annotated[int, between(1, 60)] = 4
    press_frames: int = 2
    """Frames for which A and B stay down; 0 means all."""
    sticky: Annotated[float, between(0, 1)] = 0.0
    """Chance that an action is the one before instead."""
    warmup_noop_max: Annotated[int, at_least(0)] = 30
    """Frames without input after a start state, drawn anew for each episode."""
    max_steps: Annotated[int, at_least(0)] = 0
    """Longest episode; 0 means the profile's time limit, 1.1 times that of a fight's clock."""
    reward: Weights = field(default_factory=Weights)
    """Of a fight; a profile with a `reward:` of its own says all itself."""
    opponent: Rival = Rival.cpu
    """Who is at the second pad: nobody (cpu: the cartridge's own player, if it has one), or, where
    the profile has `pads:`, still | random | policy | self_play | mixed."""
    rival: str = ""
    """Run folder or checkpoint of the opponent (opponent=policy); it plays from the features."""
    eval_opponent: Rival = Rival.cpu
    """Whom an evaluation of self-play meets: cpu | still | random | policy."""
    pool_share: Annotated[float, between(0, 1)] = 0.25
    """Self-play: share of the rows that meet somebody else than the present self."""
    pool_choice: PoolChoice = PoolChoice.latest
    """Self-play: which past selves are met more often."""
    pool: tuple[str, ...] = ()
    """Self-play: run folders or checkpoints of policies that are among them from the first step on.
    With opponent=policy each episode meets one of these or `rival`, drawn anew: a population."""
    cpu_share: Annotated[float, between(0, 1)] = 0.5
    """Mixed: share of the games with nobody learning opposite that meet the cartridge's own
    player, instead of a past self."""
    random_side: bool = True
    """Sit at the second pad in half of the episodes with nobody learning opposite."""
    threads: Annotated[int, at_least(0)] = 0
    """Threads that emulate; 0 means one per core."""
    fields: Mapping[str, str] = field(default_factory=dict)
    episode_steps: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.press_frames <= self.frame_skip:
            raise ConfigError(f"env.press_frames is {self.press_frames}; use 0 to frame_skip.")
        for name in ("opponent", "eval_opponent"):
            if getattr(self, name) not in OPPONENTS[name]:
                known = ", ".join(rival.value for rival in OPPONENTS[name])
                raise ConfigError(
                    f"env.{name}={getattr(self, name).value} sits at no cartridge's second pad; "
                    f"use one of {known}."
                )
        if Rival.policy in (self.opponent, self.eval_opponent) and not self.rival:
            raise ConfigError(
                "env.opponent=policy needs env.rival=RUN, a run folder or checkpoint."
            )

    @cached_property
    def game(self) -> Profile:
        """The profile, checked."""
        game = load_profile(self.profile)
        game.check_trainable(self.accept_guesses)
        if not game.combos and self.actions is not Actions.buttons:
            raise ConfigError(
                f"{game.source.at('actions')}: the profile '{game.id}' lists no actions.combos. "
                "Add some, such as [[], [left], [right], [a]]."
            )
        if self.shows_memory and not game.features:
            raise ConfigError(
                f"env.obs={self.obs.value} shows the profile's features; {game.source.name} has "
                "none. Add features: {score: score / 100}, or choose env.obs=half_size."
            )
        if self.opponent is not Rival.cpu:
            self._check_pads(game)
        return game

    def _check_pads(self, game: Profile) -> None:
        """Two players need a second pad; rivals see features and choose one of the actions."""
        if game.pads is None:
            raise ConfigError(
                f"{game.source.at()}: env.opponent={self.opponent.value} sits at a second pad, and "
                "the profile knows none. Add pads: {second: 0xC010}, the address that the "
                "cartridge reads it from, or leave env.opponent=cpu."
            )
        if not game.features:
            raise ConfigError(
                f"{game.source.at()}: whoever sits at the second pad plays from features: and the "
                "profile has none. Add features: {score: score / 100}."
            )
        for name in (*(n for pair in game.pads.exchange for n in pair), *game.pads.mirror):
            game.check_sure(name, self.accept_guesses)
        if self.actions is Actions.buttons:
            raise ConfigError(
                "env.actions=buttons has no second player: choose env.actions=combos or macros."
            )

    def check(self) -> None:
        """Refuse a cartridge image that is missing, or another than the profile's."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the run itself warns of an unknown image
            self.game.open_rom(self.rom, self.allow_unknown_rom)

    @property
    def shows_memory(self) -> bool:
        """Whether the policy sees the profile's features."""
        return self.obs in (View.ram, View.both)

    @property
    def choices(self) -> int:
        """How many actions there are to choose from; 0 where each is eight switches."""
        space = self.action_space()
        return int(space.n) if isinstance(space, spaces.Discrete) else 0

    @property
    def plays_itself(self) -> bool:
        """Whether both seats of a machine may learn."""
        return self.opponent in (Rival.self_play, Rival.mixed)

    def pairs(self, rows: int) -> int:
        """Machines of which both seats are rows; the others have one row each."""
        return paired(rows, self.pool_share) if self.plays_itself else 0

    @property
    def longest(self) -> int:
        """Steps after which an episode is cut."""
        goal = self.game.goal
        if self.max_steps:
            return self.max_steps
        if goal is None:
            return int(1.1 * self.game.round_seconds * 60 / self.frame_skip)
        seconds = goal.time_limit or UNLIMITED_SECONDS
        return max(1, round(seconds * FRAMES_PER_SECOND / self.frame_skip))

    @property
    def camera(self) -> Camera:
        """Which picture is taken."""
        return Camera(self.obs, self.crop, self.stack)

    def spec(self) -> ObservationSpec:
        """The observation; only games of four shades offer packed frames."""
        shades = self.game.system is System.dmg
        return observation_spec(self.camera, four_shades=shades, named=len(self.game.feature_names))

    def action_space(self) -> spaces.Space[Any]:
        """The profile's sets of buttons (and macros), or eight switches."""
        return action_space(self.game, self.actions)

    def make(self, seed: int | None = None) -> GameBoyEnv:
        """One plain Gymnasium environment."""
        return GameBoyEnv(self, seed)

    def make_vec(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any, split: str
    ) -> VectorEnv:
        """All cartridges in this process on threads; `vec` other than `batch` wraps plain ones."""
        if split == "eval" and self.plays_itself:
            alone = replace(self, opponent=self.eval_opponent)
            return alone.make_vec(num_envs, encoding, memory, vec, split)
        if vec is not None and not vec.native and not isinstance(vec, Threads):
            if self.plays_itself:
                raise ConfigError("Self-play needs both seats of a machine: choose vec=batch.")
            built: VectorEnv = vec.build(self, num_envs, encoding, memory)
            return built
        threads = vec.threads if isinstance(vec, Threads) else 0
        config = replace(self, threads=threads or self.threads)
        game = CartridgeGame(config, num_envs, packed_form(encoding))
        return GameVecEnv(game, encoding, memory.buffers is Buffers.reused)

    def parts(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any
    ) -> list[Part]:
        """Running cartridges."""
        machines = num_envs - self.pairs(num_envs)
        seats = machines if self.opponent is Rival.cpu else 2 * machines
        total = machines * EMULATOR_BYTES
        formula = f"{machines} cartridges x {EMULATOR_BYTES:,} B"
        found = [Part("emulators", formula, total, confidence=Confidence.calibrated)]
        found.append(states_part(machines))
        maps = len(compiled(self.game, self.reward, self.accept_guesses).meanings.maps)
        if maps:
            words = f"{seats} seats x {maps} of seen() x {MAP_BYTES:,} B"
            found.append(Part("values seen", words, seats * maps * MAP_BYTES))
        return found
