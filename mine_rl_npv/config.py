"""The mine environments as values: what conf/env/mine*.yaml turns into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from frugal_rl.memory.part import Part
from frugal_rl.observation.content import Content
from frugal_rl.vec_env.serial import Serial
from mine_rl_npv.data.block_model import write_csv
from mine_rl_npv.data.economics import Economics, MinePlan, model_instance
from mine_rl_npv.data.minelib_write import write_instance
from mine_rl_npv.data.synthetic import Deposit, block_model
from mine_rl_npv.env import MineEnv
from mine_rl_npv.game import MineGame, worlds_arrays
from mine_rl_npv.rules import steps
from mine_rl_npv.rules.choices import Actions, Clock, Kind
from mine_rl_npv.rules.features import VIEW
from mine_rl_npv.rules.layout import empty_arena
from mine_rl_npv.rules.mines import EVAL_SEEDS, MineSet, MineSource, daily_kilograms, open_mines
from mine_rl_npv.rules.sizes import MineSizes, sizes_of
from mine_rl_npv.spec import Observation, Shapes, mine_spec, mine_table, table_room
from mine_rl_npv.vec_env import MineBatch

if TYPE_CHECKING:
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.spec import ObservationSpec
    from frugal_rl.report.recording import RecordOptions
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv
    from frugal_rl.vec_env.plain import SpecEnv

recording = Late("mine_rl_npv.tools.record")
"""It imports the optimisers."""


@dataclass(frozen=True)
class MineConfig:
    """A mine to schedule. Composed from conf/env/mine.yaml."""

    libraries_bytes: ClassVar[int] = 44 << 20
    """What its libraries and kernels hold beyond a bare process; see `benchmarks/plan_cells.py`."""
    compiles: ClassVar[bool] = True
    """It is tried out in small before its first run (`frugal_rl.memory.kernels`)."""
    name: str = "mine"
    kind: Kind = Kind.daily
    """cpit, pcpsp or daily."""
    data: str = "porphyry_full"
    """A bundled deposit, a .csv block model, a MineLib path prefix, or `synthetic`."""
    deposit: Deposit = field(default_factory=Deposit)
    """Size and style of `data=synthetic`."""
    deposits: int = 1
    """Synthetic deposits to train on."""
    eval_deposits: int = 0
    """Held-out synthetic deposits; 0 evaluates on the training ones."""
    realisations: int = 0
    """Equally likely grade models, one per episode; 0 plays the model itself."""
    economics: Economics = field(default_factory=Economics)
    plan: MinePlan = field(default_factory=MinePlan)
    actions: Actions = Actions.column
    """column, block, cone or bench."""
    clock: Clock = Clock.earliest
    """earliest or period; the daily environment counts tonnage instead."""
    obs: Observation = Observation.volume
    """volume or columns."""
    channels: tuple[str, ...] = ()
    """Static channels; empty takes the guide's 15, or MineLib's."""
    kept: bool = True
    """Whether what opening large mines finds is kept between runs, in ~/.cache/frugal-rl/arrays."""
    max_steps: int = 0
    """Truncates an episode; 0 means as many steps as the largest pit has blocks."""
    tonnes_per_day: float = 0.0
    """Daily environment: tonnes mined per day; 0 means one of the largest blocks."""
    yearly_rate: float = 0.12
    """Daily environment: discount rate per 365 days."""
    invalid_reward: float = 0.0
    """Reward of an action that can do nothing."""
    legacy: bool = False
    """Play the predecessor's daily environment, defects included; for comparisons."""
    min_tonnes: float = 50_000.0
    """Legacy: below 0.8 of this per day an episode ends."""
    max_tonnes: float = 100_000.0
    """Legacy: tonnes per day above which nothing can be dug."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Representation per field, over the profile's default."""

    def __post_init__(self) -> None:
        if self.deposits < 1 or self.eval_deposits < 0 or self.realisations < 0:
            raise ConfigError(
                f"env.deposits={self.deposits} must be 1 or more; env.eval_deposits and "
                "env.realisations 0 or more."
            )
        if self.deposits > EVAL_SEEDS:
            raise ConfigError(
                f"env.deposits={self.deposits:,}: from number {EVAL_SEEDS:,} on seeds are those "
                "of held-out deposits; use fewer."
            )
        macro = self.actions in (Actions.cone, Actions.bench)
        if macro and (self.kind is not Kind.cpit or self.clock is Clock.period):
            raise ConfigError(
                f"env.actions={self.actions.value} works with env.kind=cpit and "
                "env.clock=earliest only."
            )
        if self.obs is Observation.columns and (macro or self.actions is Actions.block):
            raise ConfigError(
                f"env.obs=columns needs env.actions=column, not {self.actions.value}."
            )
        if self.legacy and (self.kind is not Kind.daily or self.data.count("/")):
            raise ConfigError("env.legacy=true plays env.kind=daily on block models only.")
        if self.max_steps < 0 or self.tonnes_per_day < 0:
            raise ConfigError("env.max_steps and env.tonnes_per_day must be 0 or more.")

    @property
    def source(self) -> MineSource:
        """What decides the mines' content."""
        return MineSource(
            self.data,
            self.deposit,
            self.deposits,
            self.eval_deposits,
            self.realisations,
            self.economics,
            self.plan,
            self.kind,
            self.actions is Actions.block,
            self.channels,
            self.kept,
        )

    def mines(self) -> MineSet:
        """The mines, opened once per process."""
        return open_mines(self.source)

    def sizes(self) -> MineSizes:
        """The mines' sizes, without opening them where they are known."""
        return sizes_of(self.source)

    @property
    def static_rows(self) -> int:
        """Mines that a rollout can show."""
        return self.sizes().training

    @property
    def episode_steps(self) -> int:
        """The most steps of an episode."""
        return self.max_steps or max(self.sizes().blocks)

    @property
    def _clock(self) -> int:
        if self.kind is Kind.daily:
            return steps.TONNAGE
        return steps.PERIOD if self.clock is Clock.period else steps.EARLIEST

    def content(self, num_envs: int, steps: int) -> Content:
        """The view of a pit's blocks, which networks over blocks read."""
        sizes = self.sizes()
        view = np.zeros((max(sizes.blocks), len(VIEW)), np.float32)
        return Content({"view": view}, min(num_envs, sizes.training))

    def shapes(self) -> Shapes:
        """Sizes of the observation."""
        shapes = self.sizes().shapes
        macro = self.actions in (Actions.cone, Actions.bench)
        if macro:
            actions = MineGame.action_count(self.mines(), self.actions, self._clock)
        else:
            actions = shapes.columns * shapes.destinations + (self._clock == steps.PERIOD)
        return replace(
            shapes,
            logged=not macro,
            mask_from_log=self._clock != steps.PERIOD,
            actions=actions,
        )

    def spec(self) -> ObservationSpec:
        """The observation, declared."""
        if self.legacy:
            return _before().legacy_spec(self.sizes().grid)
        return mine_spec(self.shapes(), self.obs)

    def action_space(self) -> spaces.Space[Any]:
        """One of the columns (times destinations), blocks, cones or benches."""
        return spaces.Discrete(self.shapes().actions)

    def game(self, num_envs: int) -> MineGame:
        """The rules for N pits."""
        mines = self.mines()
        daily: tuple[int, ...] = ()
        if self.kind is Kind.daily:
            daily = tuple(daily_kilograms(lay, self.tonnes_per_day) for lay in mines.layouts)
            _refuse_long_lives(mines, daily, self.episode_steps)
        return MineGame(
            mines,
            self.spec(),
            num_envs,
            self.actions,
            self._clock,
            self.episode_steps,
            self.yearly_rate,
            daily,
            self.invalid_reward,
        )

    def generate(self, folder: str, count: int, seed: int) -> list[Path]:
        """Writes synthetic deposits of `env.deposit`: a block model and the MineLib files of each.

        Args:
            folder: where to.
            count: how many.
            seed: of the first; the others follow.
        """
        if count < 1:
            raise ConfigError(f"count is {count}; use 1 or more.")
        written: list[Path] = []
        for number in range(seed, seed + count):
            model = block_model(replace(self.deposit, seed=number))
            prefix = Path(folder) / f"deposit_{number}"
            write_csv(model, prefix.with_suffix(".csv"))
            instance = model_instance(model, self.economics, self.plan, prefix.name)
            written += [prefix.with_suffix(".csv"), *write_instance(instance, prefix)]
        return written

    def draw(self, vec_env: VectorEnv, player: Any, folder: Path) -> list[Path]:
        """Pictures of the schedule that a player digs on the first evaluation mine."""
        if self.legacy:
            return []
        from mine_rl_npv.tools.show import draw_episode  # imports matplotlib

        mine = int(self.mines().chosen("eval")[0])
        return draw_episode(self.game(1), vec_env.encoding, mine, player, folder, self.yearly_rate)

    def record(self, run: RunConfig, options: RecordOptions) -> int:
        """What `scripts/record.py` does: schedules as a Minari data set."""
        status: int = recording.record(run, options)
        return status

    def make(self, seed: int | None = None) -> SpecEnv:
        """One plain environment."""
        env: SpecEnv
        if self.legacy:
            rules_then = _before().LegacyRules(self.min_tonnes, self.max_tonnes)
            instance = self.mines().layouts[0].instance
            env = _before().LegacyDailyEnv(instance, self.economics, rules_then, self.episode_steps)
        else:
            env = MineEnv(self.game(1), self.mines().chosen("train"))
        if seed is not None:
            env.reset(seed=seed)
        return env

    def make_vec(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any, split: str
    ) -> VectorEnv:
        """The native batch, or whatever `vec` builds from single environments."""
        if self.legacy:
            backend = Serial() if vec is None or vec.native else vec
            return backend.build(self, num_envs, encoding, memory)
        if vec is None or vec.native:
            reuse = memory.buffers.value == "reused"
            return MineBatch(self.game(num_envs), encoding, self.mines().chosen(split), reuse)
        built: VectorEnv = vec.build(self, num_envs, encoding, memory)
        return built

    def parts(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any
    ) -> list[Part]:
        """Pits, graphs and static tables, by arithmetic on the mines' sizes."""
        sizes, shapes = self.sizes(), self.shapes()
        blocks, arcs = list(sizes.blocks), list(sizes.arcs)
        columns, most = sizes.shapes.columns, max(blocks)
        numbers = (sizes.destinations, sizes.resources, sizes.periods)
        arena = empty_arena(blocks, arcs, columns, *numbers)
        wanted, cells = {row.name for row in encoding.rows}, int(np.prod(shapes.grid))
        world = worlds_arrays(1, cells, columns, most, wanted, self.actions)
        pit = steps.allocate_pits(arena, 1).nbytes + sum(a.nbytes for a in world.values())
        table = mine_table(shapes, blocks, arcs).allocated_with(*table_room(blocks, arcs))
        count = f"{len(blocks)} mines"
        return [
            Part("mines", f"{count}, as they were opened", sizes.held, shared=True),
            Part("simulators", f"{num_envs} pits x {pit} B", num_envs * pit),
            Part(
                "mine graphs", f"{sum(blocks)} blocks, {sum(arcs)} arcs", arena.nbytes, shared=True
            ),
            Part("static tables", count, table, shared=True),
        ]


def _before() -> Any:
    """The room of what is only compared with, by its name: no product module imports it."""
    return import_module("mine_rl_npv.before.legacy")


def _refuse_long_lives(mines: MineSet, daily_kg: tuple[int, ...], steps: int) -> None:
    """A day is stored in 16 bits; an episode may not last longer."""
    for layout, rate in zip(mines.layouts, daily_kg, strict=True):
        tonnes = layout.use[:, :, 0].max(axis=1)
        days = min(tonnes.sum(), steps * tonnes.max()) * 1000 / max(rate, 1)
        if days >= 65534:
            raise ConfigError(
                f"An episode in {layout.instance.name} could last {days:,.0f} days, above 65,533; "
                "raise env.tonnes_per_day or lower env.max_steps."
            )
