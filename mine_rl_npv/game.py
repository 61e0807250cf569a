"""The game behind every mine environment: rules, tables and raw fields of N pits."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

import numpy as np
from gymnasium import spaces

from frugal_rl.observation.tables import Tables
from frugal_rl.vec_env.game import Advance, Game
from mine_rl_npv.rules import macros, steps
from mine_rl_npv.rules.choices import Actions
from mine_rl_npv.rules.targets import macros_of
from mine_rl_npv.rules.volumes import CLOSED, column_features, mark_planes
from mine_rl_npv.spec import TABLE

if TYPE_CHECKING:
    from frugal_rl.observation.spec import ObservationSpec
    from mine_rl_npv.rules.mines import MineSet


def is_macro(actions: Actions) -> bool:
    """Whether an action moves a target with all that it needs."""
    return actions in (Actions.cone, Actions.bench)


def worlds_arrays(
    n: int, cells: int, columns: int, most: int, wanted: Set[str], actions: Actions
) -> dict[str, np.ndarray]:
    """What N worlds hold beside their pits: what a game works in, and what a plan counts.

    Args:
        n: worlds.
        cells: of the grid.
        columns: of the grid.
        most: blocks of the largest pit.
        wanted: rows that are stored; see `MineGame.watch`.
        actions: macro actions keep planes and stamps.
    """
    macro = is_macro(actions)
    return {
        "reward": np.zeros(n, np.float32),
        "entry": np.zeros(n, np.int32),
        "day": np.zeros(n, np.uint16),
        "planes": np.zeros((n if macro or "pit" in wanted else 0, 2, cells), np.float32),
        "stamp": np.zeros((n if macro else 0, most), np.int32),
        "closed": np.zeros((n if "depth" in wanted else 0, columns), bool),
    }


class MineGame(Game):
    """N pits of one mine set under one set of rules.

    Raw fields that follow from the log are computed only for encodings that store them; see
    `watch`.
    """

    def __init__(
        self,
        mines: MineSet,
        spec: ObservationSpec,
        num_envs: int,
        actions: Actions = Actions.column,
        clock: int = steps.EARLIEST,
        max_steps: int = 0,
        yearly_rate: float = 0.12,
        daily_kg: tuple[int, ...] = (),
        invalid_reward: float = 0.0,
    ) -> None:
        self.mines, self.spec, self.num_worlds = mines, spec, num_envs
        self.drawn = np.arange(len(mines.layouts))
        self.wanted: frozenset[str] = frozenset()
        self.actions, self.clock = actions, clock
        self.max_steps = max_steps or mines.most_blocks
        self.daily_discount = (1.0 + yearly_rate) ** (-1.0 / 365.0)
        self.invalid_reward = invalid_reward
        self.arena = mines.arena()
        if clock == steps.TONNAGE:
            self.arena.room[:, 0, 0] = daily_kg
        self.pits = steps.allocate_pits(self.arena, num_envs)
        self.tables = Tables({TABLE: mines.table})
        self.terminated, self.truncated = np.zeros(num_envs, bool), np.zeros(num_envs, bool)
        self.watch(frozenset())
        self.macros = macros_of(mines.layouts, actions) if is_macro(actions) else None
        self.action_space = spaces.Discrete(self.action_count(mines, actions, clock))

    @staticmethod
    def action_count(mines: MineSet, actions: Actions, clock: int) -> int:
        """Number of discrete actions."""
        if is_macro(actions):
            return int(macros_of(mines.layouts, actions)[1].max())
        closing = 1 if clock == steps.PERIOD else 0
        return mines.shapes.columns * mines.shapes.destinations + closing

    def watch(self, wanted: Set[str]) -> None:
        """Allocates what encodings with these rows need beyond the log; `observe` gives them."""
        self.wanted = frozenset(wanted)
        sizes = (int(np.prod(self.mines.shapes.grid)), self.mines.shapes.columns)
        most = self.pits.waiting.shape[1]
        held = worlds_arrays(self.num_worlds, *sizes, most, self.wanted, self.actions)
        self.reward, self.entry, self.day = held["reward"], held["entry"], held["day"]
        self.planes, self.stamp, self.closed = held["planes"], held["stamp"], held["closed"]

    def seed(self, rngs: Sequence[np.random.Generator]) -> None:
        """Each pit's own random state, drawn from its generator; the same in every backend."""
        self.pits.seed[:] = [rng.integers(1, 2**63) for rng in rngs]

    def draw_from(self, mines: np.ndarray) -> None:
        """New episodes are on mines drawn from these; at first from all."""
        self.drawn = mines

    def begin(self, which: np.ndarray, mines: np.ndarray | None = None) -> None:
        """New episodes in the pits of `which`, each on a drawn mine, or on one of `mines`."""
        steps.begin(self.pits, self.arena, which, self.drawn if mines is None else mines)
        self.entry[which] = 0
        self.day[which] = 0
        for changing in (self.closed, self.planes, self.stamp):
            if len(changing):
                changing[which] = 0

    def advance(self, actions: np.ndarray) -> Advance:
        """One action (N,) each; what was mined lies in entry and day."""
        if self.macros is not None:
            self._move_targets(actions)
        else:
            self._dig_columns(actions)
        return Advance(self.reward, self.terminated, self.truncated)

    def _move_targets(self, actions: np.ndarray) -> None:
        """Macro actions: each moves a target with all that it needs."""
        assert self.macros is not None
        first, _, pointer, target = self.macros
        macros.step_macros(
            self.pits,
            self.arena,
            actions,
            first,
            pointer,
            target,
            self.max_steps,
            self.invalid_reward,
            self.reward,
            self.stamp,
            self.terminated,
            self.truncated,
        )
        self._redraw()

    def _dig_columns(self, actions: np.ndarray) -> None:
        """Column actions: one block each."""
        steps.step_columns(
            self.pits,
            self.arena,
            actions,
            self.clock,
            self.daily_discount,
            self.max_steps,
            self.invalid_reward,
            self.reward,
            self.entry,
            self.day,
            self.terminated,
            self.truncated,
        )
        if len(self.closed):
            lost = np.flatnonzero((self.day == steps.NOWHERE) & (self.entry > 0))
            self.closed[lost, actions[lost] // self.arena.value.shape[1]] = True
        if len(self.planes):
            table = self.tables[TABLE]
            mark_planes(
                self.entry,
                self.day,
                table["cell"],
                table.offsets("cell"),
                self.pits.mine,
                self.planes,
            )

    def _redraw(self) -> None:
        """Planes from the stamps of macro actions."""
        for n in range(self.num_worlds):
            k = int(self.pits.mine[n])
            cell = self.mines.layouts[k].cell
            mined = self.stamp[n, : len(cell)] > 0
            self.planes[n, 0, cell[mined]] = 1.0
            self.planes[n, 1, cell[mined]] = self.stamp[n, : len(cell)][mined] - 1

    def raw(self, wanted: Set[str]) -> dict[str, np.ndarray]:
        """Raw fields (N, ...) by name: the log, and those of `wanted` that are stored."""
        fields: dict[str, np.ndarray] = {"mine_id": self.pits.mine}
        if self.macros is None:
            fields |= {"entry": self.entry, "day": self.day}
        if "pit" in wanted or self.macros is not None:
            fields["pit"] = self.planes.reshape(self.num_worlds, 2, *self.mines.shapes.grid)
        if "action_mask" in wanted:
            fields["action_mask"] = self.masks()
        if "depth" in wanted:
            fields["depth"] = self.pits.depth | (self.closed * np.uint8(CLOSED))
        if "columns" in wanted:
            fields["columns"] = self._columns()
        return fields

    def masks(self) -> np.ndarray:
        """(N, actions) bool."""
        mask = np.zeros((self.num_worlds, int(self.action_space.n)), np.bool_)
        if self.macros is not None:
            first, count, pointer, target = self.macros
            macros.macro_masks(self.pits, self.arena, first, count, pointer, target, mask)
        else:
            steps.column_masks(self.pits, self.arena, self.clock, mask)
        return mask

    def _columns(self) -> np.ndarray:
        table, shapes = self.tables[TABLE], self.mines.shapes
        opened = self.pits.place >= 0
        view = table["view"]
        out = np.empty((self.num_worlds, shapes.columns, view.shape[1] + 2), np.float32)
        column_features(
            self.pits.depth,
            opened,
            self.pits.mine,
            table["column_first"],
            view,
            table.offsets("view"),
            out,
        )
        return np.moveaxis(out.reshape(self.num_worlds, *shapes.grid[:2], -1), -1, 1)

    def observe(self, which: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """The raw fields of `watch`, of all pits or of those listed."""
        raw = self.raw(self.wanted)
        return raw if which is None else {name: values[which] for name, values in raw.items()}

    def outcomes(self, which: np.ndarray) -> dict[str, np.ndarray]:
        """Statistics of ended episodes: money, its share of the undiscounted pit, length, end."""
        money = self.pits.money[which].copy()
        return {
            "npv": money,
            "share": money / self.arena.scale[self.pits.mine[which]],
            "length": self.pits.steps[which].astype(np.float64),
            "success": self.terminated[which].astype(np.float64),
        }

    def parts(self) -> dict[str, int]:
        """Bytes of pits and planes, of the mines' graphs, of static tables."""
        extra = self.closed.nbytes + self.planes.nbytes + self.stamp.nbytes
        extra += self.reward.nbytes + self.entry.nbytes + self.day.nbytes
        return {
            "mines": self.mines.nbytes,
            "simulators": self.pits.nbytes + extra,
            "mine graphs": self.arena.nbytes,
            "static tables": self.tables.nbytes,
        }

    def state(self) -> dict[str, np.ndarray]:
        """Arrays that an exact resume needs."""
        names = ("reward", "entry", "day", "closed", "planes", "stamp")
        kept = {name: getattr(self, name).copy() for name in names}
        return kept | {f"pits.{k}": v.copy() for k, v in self.pits._asdict().items()}

    def load(self, state: dict[str, np.ndarray]) -> None:
        """Continue from `state()`."""
        for name, values in state.items():
            owner = self.pits if name.startswith("pits.") else self
            getattr(owner, name.removeprefix("pits."))[...] = values
