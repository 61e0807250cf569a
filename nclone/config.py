"""The N++ environment as values: what `conf/env/nclone.yaml` turns into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.memory.part import Part
from frugal_rl.memory.profile import LevelData, MemoryProfile
from frugal_rl.observation.encoding import Encoding, offered
from frugal_rl.observation.spec import ObservationSpec
from frugal_rl.vec_env.interface import VectorEnv
from frugal_rl.vec_env.serial import Serial
from nclone.levels.curriculum import CurriculumConfig
from nclone.rewards.config import PRESETS, Reach, Reward
from nclone.spec import ACTIONS, Observation, observation_spec

if TYPE_CHECKING:
    from frugal_rl.play import PlayOptions
    from frugal_rl.report.recording import RecordOptions
    from frugal_rl.run import RunConfig
    from nclone.env import NppEnv
    from nclone.levels.level import Level


class RewardPreset(Enum):
    """Which reward table counts; see `nclone.rewards.config.PRESETS`."""

    guide = "guide"
    sparse = "sparse"
    october = "october"


GRAPH_GROUP = "graph"
"""`env.fields.graph` names all fields of the navigation graph at once."""


def _without_group(fields: Mapping[str, str], obs: Observation) -> dict[str, str]:
    """`fields` with the group spelt out: each graph field that offers the representation."""
    single = {k: v for k, v in fields.items() if k != GRAPH_GROUP and v}
    wanted = fields.get(GRAPH_GROUP)
    if not wanted:
        return single
    members = [f for f in observation_spec(obs).fields if f.name.startswith("graph_")]
    able = [f.name for f in members if wanted in offered(f)]
    if not able:
        names = sorted({name for f in members for name in offered(f)})
        raise ConfigError(
            f"env.fields.graph={wanted} is not possible; the graph offers {', '.join(names)}."
            if members
            else f"env.fields.graph={wanted} needs env.obs=graph; env.obs={obs.value} has none."
        )
    return dict.fromkeys(able, wanted) | single


@dataclass(frozen=True)
class NppConfig:
    """N++ on a set of levels. Composed from conf/env/nclone.yaml."""

    name: str = "nclone"
    obs: Observation = Observation.state
    """Which keys the observation has."""
    levels: tuple[str, ...] = ("walk", "jump", "fall", "switch_first")
    """Bundled levels by name, or paths of level files."""
    eval_levels: tuple[str, ...] = ()
    """Levels of the evaluation; none means the training levels."""
    curriculum: bool = False
    """Begin with the first category of `levels` and go on as success allows; categories only."""
    curriculum_rules: CurriculumConfig = field(default_factory=CurriculumConfig)
    """When a stage is left, and how earlier ones are mixed in."""
    frame_skip: int = 4
    """Simulated frames per action; an episode's last step may be shorter."""
    start_frames: int = 24
    """Each episode begins after 0 to this many frames of one random held input."""
    reward: RewardPreset = RewardPreset.guide
    """The reward table."""
    reach: Reach = Reach.path
    """Where the shaping potential ends: the level's area scale, or the whole way."""
    gamma: float = 0.99
    """Discount of the shaping term; the learner's, by interpolation."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Representation per field, over the profile's default."""
    episode_steps: int = 0
    """No field shows a whole episode."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", _without_group(self.fields, self.obs))
        if self.frame_skip < 1:
            raise ConfigError(f"env.frame_skip is {self.frame_skip}; use 1 or more (usual: 4).")
        if self.start_frames < 0:
            raise ConfigError(f"env.start_frames is {self.start_frames}; use 0 or more.")
        if not self.levels:
            raise ConfigError("env.levels is empty; name at least one level, e.g. [walk].")
        if not 0.0 < self.gamma <= 1.0:
            raise ConfigError(f"env.gamma is {self.gamma}; use a value above 0, at most 1.")

    def spec(self) -> ObservationSpec:
        """The observation, declared."""
        return observation_spec(self.obs)

    def action_space(self) -> spaces.Space[Any]:
        """none, left, right, jump, jump+left, jump+right."""
        return spaces.Discrete(ACTIONS)

    def reward_table(self) -> Reward:
        """The reward preset with the shaping's reach put in."""
        preset = PRESETS[self.reward.value]
        return replace(preset, shaping=replace(preset.shaping, reach=self.reach))

    def open_levels(self, split: str) -> list[Level]:
        """The levels of a split: "train" or "eval"."""
        from nclone.levels.sources import open_levels

        wanted = self.eval_levels if split == "eval" and self.eval_levels else self.levels
        return open_levels(wanted, split)

    def make(self, seed: int | None = None) -> NppEnv:
        """One plain Gymnasium environment with the full observation."""
        from nclone.env import NppEnv

        return NppEnv(self, seed=seed)

    def make_vec(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any, split: str
    ) -> VectorEnv:
        """All environments in one kernel call.

        Plain environments, each with level data of its own, where `vec` or the profile asks for
        them; evaluation always plays the native batch, its levels dealt out in turn.
        """
        from nclone.vec_env import NppVecEnv

        per_env = memory.level_data is LevelData.per_env or not (vec is None or vec.native)
        if per_env and split == "train":
            backend = Serial() if vec is None or vec.native else vec
            built: VectorEnv = backend.build(self, num_envs, encoding, memory)
            return built
        return NppVecEnv(self, num_envs, encoding, memory, split)

    def generate(self, folder: str, count: int, seed: int) -> list[Path]:
        """Write `folder`/pool.npz: `count` proved training levels per category, a fifth for tests.

        The categories are those that `levels` names, all nine where it names none. What the file
        holds already is kept: a search that was stopped goes on.
        """
        from nclone.levels.growing_command import generate_into

        return generate_into(Path(folder), count, seed, self.levels)

    def play(self, run: RunConfig, options: PlayOptions) -> Iterator[str]:
        """A window with the keyboard, or a checkpoint at play; yields a line per written file."""
        from nclone.play import play

        return play(self, run, options)

    def record(self, run: RunConfig, options: RecordOptions) -> int:
        """Verify, film, convert or collect replays; returns the exit status."""
        from nclone.record import record

        return record(self, run, options)

    def parts(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any
    ) -> list[Part]:
        """Bytes of worlds, level tables and reused rows, from their record layouts."""
        from nclone.budget import parts

        copies = num_envs if memory.level_data is LevelData.per_env else 1
        return parts(self, num_envs, copies, encoding)
