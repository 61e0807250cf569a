"""The Duel environments as values: what `conf/env/fighting*.yaml` turns into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from gymnasium import spaces

from fighting.actions import action_space
from fighting.cartridge.reading import load_profile
from fighting.choices import Actions, Emulation, Episode, PoolChoice, Rival, Weights
from fighting.env import DuelEnv
from fighting.machine import duel
from fighting.rom import DUEL
from fighting.rom.logic import WORK_RAM
from fighting.saved_states import states_part
from fighting.seating import paired
from fighting.signals import RAM_BYTES
from fighting.spec import Camera, View, observation_spec
from fighting.vec_env import DuelVecEnv
from frugal_rl.errors import ConfigError
from frugal_rl.memory.part import Confidence, Part
from frugal_rl.vec_env.threads import Threads

if TYPE_CHECKING:
    from fighting.cartridge.profile import Profile
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.spec import ObservationSpec
    from frugal_rl.vec_env.interface import VectorEnv

EMULATOR_BYTES = 1_100_000
"""One more running cartridge in a process (benchmarks/fighting_memory.py prints it)."""


@dataclass(frozen=True)
class DuelConfig:
    """Duel against an opponent. Composed from conf/env/fighting.yaml."""

    tools: ClassVar[str] = "fighting.tools"
    libraries_bytes: ClassVar[int] = 44 << 20
    """What its libraries and kernels hold beyond a bare process; see `benchmarks/plan_cells.py`."""
    compiles: ClassVar[bool] = True
    """It is tried out in small before its first run (`frugal_rl.memory.kernels`)."""
    name: str = "fighting"
    emulator: Emulation = Emulation.pyboy
    """pyboy | native: its logic translated to C, the same numbers in less time (env.obs=ram)."""
    obs: View = View.ram
    """ram | rgb | gray | half_size | both."""
    crop: bool = False
    """Leave out sky and head-up display; the health is then in the features of obs=both."""
    stack: int = 4
    """Frames that the policy sees at once."""
    max_pool: bool = False
    """Take the darker of a step's last two frames, for games that flicker."""
    actions: Actions = Actions.combos
    """combos | macros | buttons."""
    frame_skip: int = 4
    """Frames per action; the fastest attack starts up in 4."""
    press_frames: int = 2
    """Frames for which A and B stay down, so that the next press is a new one; 0 means all."""
    sticky: float = 0.0
    """Chance that an action is the one before instead."""
    mirror: bool = True
    """Show pictures as if the own fighter stood on the left."""
    opponent: Rival = Rival.cpu
    """Who is fought."""
    rival: str = ""
    """Run folder or checkpoint of the opponent (opponent=policy); it plays from memory."""
    levels: tuple[int, ...] = (1,)
    """Levels of the cartridge's player; drawn anew for each episode."""
    eval_levels: tuple[int, ...] = ()
    """Levels of the evaluation, in turn; none means `levels`."""
    pool_share: float = 0.25
    """Self-play: share of the rows that fight somebody else than the present self."""
    pool_choice: PoolChoice = PoolChoice.latest
    """Self-play: which past selves are met more often."""
    pool: tuple[str, ...] = ()
    """Self-play: run folders or checkpoints of policies that are among them from the first step on.
    With opponent=policy each episode meets one of these or `rival`, drawn anew: a population."""
    cpu_share: float = 0.5
    """Mixed: share of the fights with nobody learning opposite that meet the cartridge's own
    player at one of `levels`, instead of a past self."""
    raise_at: float = 0.7
    """Curriculum: share of the last fights that must be won."""
    raise_after: int = 200
    """Curriculum: how many last fights count."""
    easier_share: float = 0.25
    """Curriculum: share of the episodes that meet any level up to the present one."""
    episode: Episode = Episode.round
    """round | match."""
    round_seconds: int = 60
    wins_needed: int = 2
    """Rounds that win a match (episode=match)."""
    random_gap: bool = True
    """Begin at a distance drawn from 40 to 100 pixels instead of 64."""
    random_side: bool = True
    """Play as player 2 in half of the episodes (against anything but the cartridge's player)."""
    max_steps: int = 0
    """Longest episode; 0 means 1.1 times what the clock allows."""
    reward: Weights = field(default_factory=Weights)
    threads: int = 0
    """Threads that emulate; 0 means one per core."""
    debug: bool = False
    """Check every packed frame against the screen."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Representation per field, over the profile's default."""
    episode_steps: int = 0
    """No field shows a whole episode."""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("frame_skip", 1, 60),
            ("press_frames", 0, self.frame_skip),
            ("stack", 1, 16),
            ("round_seconds", 1, 99),
            ("wins_needed", 1, 3),
            ("sticky", 0, 1),
            ("raise_at", 0, 1),
            ("pool_share", 0, 1),
            ("cpu_share", 0, 1),
            ("easier_share", 0, 1),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"env.{name} is {value}; use {low} to {high}.")
        for name in ("levels", "eval_levels"):
            wrong = [level for level in getattr(self, name) if not 0 <= level <= 7]
            if wrong:
                raise ConfigError(f"env.{name} holds {wrong[0]}; levels run from 0 to 7.")
        if self.emulator is Emulation.native and self.camera.renders:
            raise ConfigError(
                f"env.emulator=native draws no pictures, which env.obs={self.obs.value} shows: "
                "choose env.obs=ram, or env.emulator=pyboy."
            )
        if self.opponent is Rival.policy and not self.rival:
            raise ConfigError(
                "env.opponent=policy needs env.rival=RUN, a run folder or checkpoint."
            )
        if self.opponent is Rival.mixed and not self.pool_share * self.cpu_share:
            raise ConfigError(
                "env.opponent=mixed meets the cartridge's own player in env.pool_share times "
                "env.cpu_share of the rows: set both above 0, or choose env.opponent=self_play."
            )
        if not self.levels:
            raise ConfigError("env.levels is empty; name at least one level, e.g. [1].")

    @cached_property
    def profile(self) -> Profile:
        """The Duel profile."""
        return load_profile("duel")

    @property
    def made_of(self) -> dict[str, str]:
        """The cartridge by its SHA-1: what was learned on another one is refused."""
        return {DUEL.image.name: self.profile.roms[0].digest}

    @property
    def camera(self) -> Camera:
        """Which picture is taken."""
        return Camera(self.obs, self.crop, self.stack)

    @property
    def longest(self) -> int:
        """Steps after which an episode is cut."""
        if self.max_steps:
            return self.max_steps
        rounds = 1 if self.episode is Episode.round else 5
        return int(1.1 * rounds * (self.round_seconds * 60 + 64) / self.frame_skip) + 1

    @property
    def plays_itself(self) -> bool:
        """Whether both seats of a cartridge may learn."""
        return self.opponent in (Rival.self_play, Rival.mixed)

    def pairs(self, rows: int) -> int:
        """Cartridges of which both seats are rows; the others have one row each."""
        if not self.plays_itself:
            return 0
        return paired(rows, self.pool_share)

    def machines(self, rows: int) -> int:
        """Cartridges that `rows` rows need."""
        return rows - self.pairs(rows)

    @property
    def typical_episode_steps(self) -> tuple[int, int]:
        """Steps of a short and of a long fight: 7 to 33 seconds."""
        return 400 // self.frame_skip, 2000 // self.frame_skip

    def match(
        self,
        mode: int,
        seed: int,
        level: int,
        gap: int,
        hp: tuple[int, int] | None = None,
        level1: int = 0,
    ) -> duel.MatchSettings:
        """A match as an environment begins it."""
        return duel.MatchSettings(
            mode=mode,
            level=level,
            level1=level1,
            seed=seed,
            round_seconds=self.round_seconds,
            wins_needed=1 if self.episode is Episode.round else self.wins_needed,
            hp=hp or (duel.HP_MAX, duel.HP_MAX),
            flags=duel.NO_INTRO | (duel.SHORT_END if self.frame_skip <= 4 else 0),
            gap=gap,
        )

    def spec(self) -> ObservationSpec:
        """The observation, declared."""
        return observation_spec(self.camera)

    def action_space(self) -> spaces.Space[Any]:
        """Discrete over sets of buttons (and macros), or eight switches."""
        return action_space(self.profile, self.actions)

    def make(self, seed: int | None = None) -> DuelEnv:
        """One plain Gymnasium environment."""
        return DuelEnv(self, seed)

    def make_vec(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any, split: str
    ) -> VectorEnv:
        """All cartridges in this process on threads; `vec` other than `batch` wraps plain ones.

        `vec=threads` is the same batch: its cartridges run on threads, the rest is done for all.
        """
        if split == "eval" and (self.plays_itself or self.opponent is Rival.curriculum):
            known = self.eval_levels or tuple(range(1, 8))
            return replace(self, opponent=Rival.cpu, levels=known, eval_levels=known).make_vec(
                num_envs, encoding, memory, vec, split
            )
        if isinstance(vec, Threads):
            config = replace(self, threads=vec.threads or self.threads)
            return DuelVecEnv(config, num_envs, encoding, memory, split)
        if vec is None or vec.native:
            return DuelVecEnv(self, num_envs, encoding, memory, split)
        if self.plays_itself:
            raise ConfigError("Self-play needs both seats of a cartridge: choose vec=batch.")
        built: VectorEnv = vec.build(self, num_envs, encoding, memory)
        return built

    def parts(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any
    ) -> list[Part]:
        """Running cartridges and the bytes read from them."""
        machines = self.machines(num_envs)
        native = self.emulator is Emulation.native
        each = WORK_RAM if native else EMULATOR_BYTES
        return [
            Part(
                "emulators",
                f"{machines} cartridges x {each:,} B",
                machines * each,
                confidence=Confidence.calibrated,
            ),
            Part("game memory", f"{machines} x 2 x {RAM_BYTES} B", machines * 2 * RAM_BYTES),
            states_part(machines, WORK_RAM) if native else states_part(machines),
        ]
