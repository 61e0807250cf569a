"""The N++ environment as values: what `conf/env/nclone.yaml` turns into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from frugal_rl.memory.honour import DRAWN, ENCODED
from frugal_rl.observation.encoding import Encoding, offered
from frugal_rl.observation.spec import ObservationSpec, Padding
from frugal_rl.ranges import at_least, check_ranges
from frugal_rl.vec_env.serial import Serial
from nclone.budget import content, parts
from nclone.env import NppEnv
from nclone.geometry import COLUMNS, MAP_WIDTH_PX, ROWS
from nclone.guide import Guide, switches
from nclone.levels.curriculum import CurriculumConfig
from nclone.levels.sampler import LevelSampler
from nclone.levels.sources import (
    check_names,
    open_grouped,
    pool_places,
    search_efforts,
    widest_moments,
)
from nclone.rewards.config import PRESETS, Reach, Reward
from nclone.spec import ACTIONS, Drawing, Observation, observation_spec
from nclone.vec_env import NppVecEnv

if TYPE_CHECKING:
    from frugal_rl.memory.part import Part
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.content import Content
    from frugal_rl.vec_env.interface import VectorEnv
    from nclone.levels.evolution import LevelEvolution
    from nclone.levels.level import Level
    from nclone.levels.played import PlayedLevels

bests = Late("nclone.levels.bests")
"""Replays of won levels, which only a reward by time reads."""
evolution = Late("nclone.levels.evolution")
"""Levels that are made while learning; it loads scipy.ndimage."""


class RewardPreset(Enum):
    """Which reward table counts; see `nclone.rewards.config.PRESETS`."""

    guide = "guide"
    sparse = "sparse"
    october = "october"
    speedrun = "speedrun"


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
            else f"env.fields.graph={wanted} needs env.obs=graph or full; "
            f"env.obs={obs.value} has none."
        )
    return dict.fromkeys(able, wanted) | single


FRAMES = ("player_frame", "global_view")
MOST_STACK = 12
SMALLEST_PX = 8
LARGEST_PX = 2 * MAP_WIDTH_PX


def _size(wanted: tuple[int, ...]) -> tuple[int, int] | None:
    """Height and width, or None for a frame that is left out."""
    return (wanted[0], wanted[1]) if wanted else None


def _check_frames(config: NppConfig) -> None:
    """Refuse sizes that cannot be drawn."""
    for name in FRAMES:
        size = getattr(config, name)
        right = len(size) in (0, 2) and all(SMALLEST_PX <= n <= LARGEST_PX for n in size)
        if not right:
            raise ConfigError(
                f"env.{name}={list(size)} is no frame: give [height,width] in px, "
                f"{SMALLEST_PX} to {LARGEST_PX} each, or [] to leave it out."
            )
    if any(n % 2 for n in config.player_frame):
        raise ConfigError(
            f"env.player_frame={list(config.player_frame)} has no middle for the ninja; "
            "use even sizes, for instance [84,84]."
        )
    if config.global_view and (config.global_view[0] < ROWS or config.global_view[1] < COLUMNS):
        raise ConfigError(
            f"env.global_view={list(config.global_view)} is too small for the level; use at "
            f"least [{ROWS},{COLUMNS}], for instance [100,176]."
        )
    if config.obs is Observation.pixels and not (config.player_frame or config.global_view):
        raise ConfigError(
            "env.obs=pixels shows nothing with env.player_frame=[] and env.global_view=[]; "
            "leave out one of them."
        )


def _before() -> Any:
    """What the memory guide's savings are measured against, loaded only where it is asked for."""
    return import_module("nclone.before.guide_baseline")


TINY_GRAPHS_MIB = 2.0
"""Bound of the graph table in the tiny run that the planner measures."""


@dataclass(frozen=True)
class NppConfig:
    """N++ on a set of levels. Composed from conf/env/nclone.yaml."""

    tools: ClassVar[str] = "nclone.tools"
    """Where what else can be done with it is found: `frugal_rl.run.tools`."""
    libraries_bytes: ClassVar[int] = 24 << 20
    """What its libraries and kernels hold beyond a bare process; see `benchmarks/plan_cells.py`."""
    evaluates_natively: ClassVar[bool] = True
    """Workers that `vec` starts play no evaluation."""
    compiles: ClassVar[bool] = True
    """It is tried out in small before its first run (`frugal_rl.memory.kernels`)."""
    honours: ClassVar[frozenset[str]] = ENCODED | DRAWN
    name: str = "nclone"
    obs: Observation = Observation.state
    """Which keys the observation has."""
    player_frame: tuple[int, ...] = (84, 84)
    """Height and width in px of the frame around the ninja, even; empty leaves it out."""
    global_view: tuple[int, ...] = (100, 176)
    """Height and width in px of the picture of the whole level; empty leaves it out."""
    stack: int = 1
    """Rows of `player_frame` and `game_state` that are shown, oldest first; 4 is usual."""
    padding: Padding = Padding.repeat
    """What a stack shows before an episode's first row."""
    graphs_mib: float = 256.0
    """Bound of the table of navigation graphs; the least recently read are dropped first."""
    distances_mib: float = 64.0
    """Bound of the table of path distances; what no environment uses is dropped first."""
    levels: tuple[str, ...] = ("walk", "jump", "fall", "switch_first")
    """Bundled levels by name, or paths of level files."""
    eval_levels: tuple[str, ...] = ()
    """Levels of the evaluation; none means the training levels."""
    skip_unreadable: bool = False
    """Leave out files of a folder that are no level, with a warning, instead of refusing all."""
    curriculum: bool = False
    """Begin with the first category of `levels` and go on as success allows; categories only."""
    curriculum_rules: CurriculumConfig = field(default_factory=CurriculumConfig)
    """When a stage is left, and how earlier ones are mixed in."""
    evolved: Annotated[int, at_least(0)] = 0
    """Most levels that are made while learning, by small changes to those that are won as often as
    lost; each is proved winnable, and levels are drawn by how uncertain their result is."""
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
    guide: Guide = field(default_factory=Guide)
    """The memory guide's optimisations, each alone, over what the memory profile says."""
    episode_steps: int = 0
    """No field shows a whole episode."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", _without_group(self.fields, self.obs))
        check_ranges(self, "env")
        if not 1 <= self.stack <= MOST_STACK:
            raise ConfigError(f"env.stack is {self.stack}; use 1 to {MOST_STACK} (usual: 4).")
        _check_frames(self)
        if self.graphs_mib <= 0:
            raise ConfigError(f"env.graphs_mib is {self.graphs_mib}; use a positive size, say 64.")
        if self.frame_skip < 1:
            raise ConfigError(f"env.frame_skip is {self.frame_skip}; use 1 or more (usual: 4).")
        if self.start_frames < 0:
            raise ConfigError(f"env.start_frames is {self.start_frames}; use 0 or more.")
        if not self.levels:
            raise ConfigError("env.levels is empty; name at least one level, e.g. [walk].")
        if self.evolved and self.curriculum:
            raise ConfigError(
                "env.curriculum=true and env.evolved both choose what is played next; leave one "
                "of them out: env.evolved=0."
            )
        if self.evolved and self.reward is RewardPreset.speedrun:
            raise ConfigError(
                "env.reward=speedrun needs a best time of each level, and those that env.evolved "
                "makes have none; choose another reward, or env.evolved=0."
            )
        if not 0.0 < self.gamma <= 1.0:
            raise ConfigError(f"env.gamma is {self.gamma}; use a value above 0, at most 1.")

    def spec(self) -> ObservationSpec:
        """The observation, declared; frames are as wide as the levels' entities need."""
        drawing = None
        if self.obs.draws:
            names = (self.levels, self.eval_levels or self.levels)
            widths = widest_moments(*names, skip_unreadable=self.skip_unreadable)
            drawing = Drawing(widths, _size(self.player_frame), _size(self.global_view))
        return observation_spec(self.obs, drawing, self.stack, self.padding)

    def action_space(self) -> spaces.Space[Any]:
        """none, left, right, jump, jump+left, jump+right."""
        return spaces.Discrete(ACTIONS)

    def reward_table(self) -> Reward:
        """The reward preset with the shaping's reach put in."""
        preset = PRESETS[self.reward.value]
        return replace(preset, shaping=replace(preset.shaping, reach=self.reach))

    def check(self) -> None:
        """Refuse a level that nothing is called, before anything is opened."""
        check_names((*self.levels, *self.eval_levels))

    def open_levels(self, split: str) -> list[Level]:
        """The levels of a split: "train" or "eval"."""
        return [level for _, level in self.open_grouped(split)]

    def open_grouped(self, split: str) -> list[tuple[str, Level]]:
        """These levels, each with the name that it is judged under: its category, or its own."""
        wanted = self.eval_levels if split == "eval" and self.eval_levels else self.levels
        return open_grouped(wanted, split, self.skip_unreadable)

    def best_frames(self, levels: Sequence[Level]) -> np.ndarray:
        """[levels] int64: frames of the best known win of each of this configuration's levels."""
        named = [(name, "train") for name in self.levels]
        named += [(name, "eval") for name in self.eval_levels or self.levels]
        frames: np.ndarray = bests.best_frames(levels, named)
        return frames

    def chooser(self, levels: PlayedLevels) -> LevelSampler | LevelEvolution | None:
        """What decides which level comes next; None where all come equally often."""
        if self.curriculum:
            places = pool_places(self.levels)
            return LevelSampler(places, self.curriculum_rules, ids=levels.playlist)
        if not self.evolved:
            return None
        known = search_efforts(self.levels)
        efforts = np.array([known.get(level.key, 0) for level in levels.table.level])
        return evolution.LevelEvolution(levels, efforts)

    def make(self, seed: int | None = None) -> NppEnv:
        """One plain Gymnasium environment with the full observation."""
        made: NppEnv = (
            _before().GuideEnv(self, seed) if self.guide.is_before else NppEnv(self, seed)
        )
        return made

    def make_vec(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any, split: str
    ) -> VectorEnv:
        """All environments in one kernel call.

        Single ones where `vec` asks for them; those of the guide where the profile has one of its
        optimisations off. Evaluation always plays the native batch, its levels dealt out in turn.
        """
        stored = [n for n in FRAMES if encoding.choice.get(n, "derived") != "derived"]
        if self.stack > 1 and stored:
            raise ConfigError(
                f"A stack of {self.stack} moments is drawn while decoding only: add "
                f"{' '.join(f'env.fields.{n}=derived' for n in stored)}, or choose env.stack=1."
            )
        single, chosen = not (vec is None or vec.native), switches(self.guide, memory)
        if self.evolved and split == "train" and (single or chosen.is_before):
            raise ConfigError(
                "env.evolved makes levels for all environments of a process at once: choose "
                "vec=batch and a memory profile that shares levels, or env.evolved=0."
            )
        if (single or chosen.is_before) and split == "train":
            backend = vec if single else Serial()
            maker = replace(self, guide=chosen)
            built: VectorEnv = backend.build(maker, num_envs, encoding, memory)
            return built
        return self.batch(num_envs, encoding, memory, split)

    def batch(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, split: str = "train"
    ) -> NppVecEnv:
        """All environments in one kernel call, whatever the profile says of the guide."""
        return NppVecEnv(self, num_envs, encoding, memory, split)

    def content(self, num_envs: int, steps: int) -> Content:
        """What rollouts show of graphs and doors: `frugal_rl.observation.content`."""
        return content(self, num_envs, steps)

    def observed(self) -> NppConfig:
        """The same game with episodes that begin without a frame being simulated."""
        return replace(self, start_frames=0)

    def tiny(self) -> NppConfig:
        """The same game with a small table of graphs, which a tiny run may fill."""
        return replace(self, graphs_mib=min(self.graphs_mib, TINY_GRAPHS_MIB))

    def parts(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any
    ) -> list[Part]:
        """Bytes of worlds, level tables and reused rows, from their record layouts."""
        chosen = switches(self.guide, memory)
        copies = 1 if chosen.shared_levels else num_envs
        lines = parts(self, num_envs, copies, encoding)
        if chosen.is_before:
            lines += _before().guide_parts(self, chosen, num_envs)
        return lines
