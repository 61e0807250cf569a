"""Which mines an environment plays: files, bundled deposits, or synthetic ones by seed."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numba
import numpy as np
import scipy

from frugal_rl import kept_arrays, remembered
from frugal_rl.doing import doing
from frugal_rl.errors import ConfigError
from frugal_rl.untrusted.files import read_bytes
from mine_rl_npv.data.block_model import BlockModel, read_csv
from mine_rl_npv.data.bundled import BUNDLED, open_instance
from mine_rl_npv.data.economics import Economics, MinePlan, model_instance
from mine_rl_npv.data.instance import GeneralRows, Graph, Instance
from mine_rl_npv.data.kilograms import kilograms_up
from mine_rl_npv.data.realisations import realised_models
from mine_rl_npv.data.synthetic import Deposit, block_model
from mine_rl_npv.rules.choices import Kind
from mine_rl_npv.rules.layout import MineArrays, MineLayout, build_arena, lay_out, pit_of
from mine_rl_npv.rules.packed import packed, unpacked
from mine_rl_npv.rules.room import refuse_crowd
from mine_rl_npv.slopes.cone import Slopes
from mine_rl_npv.spec import (
    FULL_CHANNELS,
    MINELIB_CHANNELS,
    Shapes,
    mine_rows,
    mine_table,
    table_room,
)

if TYPE_CHECKING:
    from frugal_rl.observation.tables import StaticTable

T = TypeVar("T")
SYNTHETIC = "synthetic"
EVAL_SEEDS = 1_000_000
"""Seeds of held-out synthetic deposits begin here."""
WORTH_KEEPING = 20_000
"""Blocks of all mines of a source that take longer to open than to read."""


@dataclass(frozen=True)
class MineSource:
    """Everything that decides the mines' content; hashable, so that it is opened once."""

    data: str = "porphyry_full"
    """A bundled deposit, a .csv block model, a MineLib path prefix, or `synthetic`."""
    deposit: Deposit = field(default_factory=Deposit)
    """Size and style of `data=synthetic`; its seed is the first of `deposits`."""
    deposits: int = 1
    """How many synthetic deposits to train on."""
    eval_deposits: int = 0
    """Held-out synthetic deposits; 0 evaluates on the training ones."""
    realisations: int = 0
    """Equally likely grade models of a block model, one per episode; 0 plays the model itself."""
    economics: Economics = field(default_factory=Economics)
    plan: MinePlan = field(default_factory=MinePlan)
    kind: Kind = Kind.cpit
    per_block: bool = False
    channels: tuple[str, ...] = ()
    """Static channels; empty means those of the guide, or of MineLib, whichever fits the data."""
    kept: bool = field(default=True, repr=False, compare=False)
    """Whether what opening large mines finds is kept between runs; it changes no content."""


ENDINGS = (".blocks", ".prec", ".upit", ".cpit", ".pcpsp")


def key_of(source: MineSource) -> str:
    """A fingerprint of what decides the mines: the values, and the content of files."""
    like = replace(source, kind=Kind.pcpsp if source.kind is Kind.pcpsp else Kind.cpit)
    return remembered.fingerprint(repr(like), *_contents(source.data))


def _contents(data: str) -> list[str]:
    """Digests of the files that a source names; none for bundled and synthetic deposits."""
    paths = [Path(data), *(Path(f"{data}{ending}") for ending in ENDINGS)]
    return [hashlib.sha256(read_bytes(p)).hexdigest() for p in paths if p.is_file()]


@dataclass(frozen=True)
class MineSet:
    """The mines of one source, laid out on one grid: the first `training` ones are for training."""

    layouts: tuple[MineLayout, ...]
    training: int
    shapes: Shapes
    references: tuple[float, ...]
    """Undiscounted value of each ultimate pit: one unit of reward."""
    kept_as: str = ""
    """Under which name they are kept between runs; empty where they are not."""

    def chosen(self, split: str) -> np.ndarray:
        """Mine numbers of the split "train" or "eval"."""
        held_out = len(self.layouts) > self.training
        if split == "train":
            return np.arange(self.training)
        return np.arange(self.training if held_out else 0, len(self.layouts))

    def arena(self) -> MineArrays:
        """The kernels' view: one for all games, but for the room in them, which is the rules'."""
        return self._arena._replace(room=self._arena.room.copy())

    @cached_property
    def _arena(self) -> MineArrays:
        return build_arena(self.layouts, self.references)

    @cached_property
    def table(self) -> StaticTable:
        """The static rows of all mines, one for all games: they play the same ones."""
        keys = [(layout.instance.name, k) for k, layout in enumerate(self.layouts)]
        name, table = f"{self.kept_as}_table", self._empty_table()
        if self.kept_as and table.fill(keys, partial(kept_arrays.read_into, name)):
            return table
        table = self._empty_table()
        for key, layout in zip(keys, self.layouts, strict=True):
            table.intern(key, partial(mine_rows, layout, self.shapes.channels))
        if self.kept_as:
            kept_arrays.write(name, None, table.arrays)
        return table

    def _empty_table(self) -> StaticTable:
        """With room for all mines, and no more."""
        arcs = [layout.graph.arcs for layout in self.layouts]
        blocks = [len(layout.block) for layout in self.layouts]
        table = mine_table(self.shapes, blocks, arcs)
        table.reserve(*table_room(blocks, arcs))
        return table

    @cached_property
    def nbytes(self) -> int:
        """Of all that is kept of them while they are open: models, slopes and pits."""
        return sum(_arrays_of(self.layouts).values())

    @property
    def most_blocks(self) -> int:
        """Blocks of the largest pit."""
        return max(len(layout.block) for layout in self.layouts)


_CLASSES = (MineSet, MineLayout, Instance, Graph, GeneralRows, Slopes, Shapes)
PARTS = {part.__name__: part for part in _CLASSES}
"""What kept mines may be made of."""


def _arrays_of(value: Any) -> dict[int, int]:
    """Bytes of the arrays that a value of dataclasses holds, by the array: each counts once."""
    if isinstance(value, np.ndarray):
        owner = value if value.base is None else value.base
        return {id(owner): memoryview(owner).nbytes}
    if isinstance(value, dict):
        held = list(value.values())
    elif is_dataclass(value):
        held = [getattr(value, part.name) for part in fields(value)]
    else:
        held = list(value) if isinstance(value, (list, tuple)) else []
    return {k: n for inner in held for k, n in _arrays_of(inner).items()}


@lru_cache(maxsize=4)
def open_mines(source: MineSource) -> MineSet:
    """Opens, cuts to pits and lays out; the same source is opened once per process.

    Large mines are opened once per machine: they are kept in the user's cache folder.
    """
    name = name_of(source) if source.kept else ""
    mines = _kept(name) if name else None
    if mines is None:
        mines = _opened(source)
        if name and sum(layout.instance.blocks for layout in mines.layouts) >= WORTH_KEEPING:
            mines = replace(mines, kept_as=name)
            kept_arrays.write(name, *packed(mines))
    return mines


def name_of(source: MineSource) -> str:
    """Under which name the mines of a source are kept: a fingerprint of all that they follow from.

    Last bits of powers and sines depend on what the processor can do.
    """
    versions = (sys.version, *(lib.__version__ for lib in (np, scipy, numba)))
    processor = (platform.machine(), np.show_config("dicts").get("SIMD Extensions"))
    code = remembered.code_digest("mine_rl_npv")
    return f"mines_{remembered.fingerprint(key_of(source), *versions, *processor, code)}"


def _kept(name: str) -> MineSet | None:
    """The mines that were kept under a name, where they are whole."""
    found = kept_arrays.read(name)
    try:
        mines = unpacked(*found, PARTS) if found else None
    except (LookupError, TypeError, ValueError):
        return None
    return mines if isinstance(mines, MineSet) else None


def _opened(source: MineSource) -> MineSet:
    training, held_out = _instances(source)
    instances = [*training, *held_out]
    destinations = source.kind is Kind.pcpsp
    cells = np.max([instance.position.max(axis=0) for instance in instances], axis=0) + 1
    grid = tuple(int(n) for n in cells)
    units = 0
    if source.per_block:
        units = max(int(pit_of(i, destinations).sum()) for i in instances)
    layouts = tuple(lay_out(i, grid, destinations, units=units) for i in instances)
    references = tuple(
        float(layout.value.max(axis=1).sum()) for layout in layouts
    )  # of the pit's blocks
    width = instances[0].destinations if destinations else 1
    return MineSet(
        layouts,
        len(training),
        Shapes(grid, _channels(source, instances[0]), width, units=units),
        references,
    )


def _channels(source: MineSource, instance: Instance) -> tuple[str, ...]:
    known = {*instance.fields, "upl", "destination", "value", "tonnes", "value_per_tonne"}
    if source.channels:
        unknown = [name for name in source.channels if name not in known]
        if unknown:
            raise ConfigError(f"env.channels names {unknown}; this data has {sorted(known)}.")
        return source.channels
    return FULL_CHANNELS if set(FULL_CHANNELS) <= known else MINELIB_CHANNELS


def _instances(source: MineSource) -> tuple[list[Instance], list[Instance]]:
    periods = source.plan.periods
    if source.data == SYNTHETIC:
        deposit, count = source.deposit, source.deposits + source.eval_deposits
        size = f"{deposit.nx} x {deposit.ny} x {deposit.nz}"
        words = f"{count:,} deposits (env.deposits, env.eval_deposits) of {size} cells"
        refuse_crowd(deposit.nx * deposit.ny * deposit.nz, count, periods, words)
        seeds = [deposit.seed + i for i in range(source.deposits)]
        seeds += [EVAL_SEEDS + deposit.seed + i for i in range(source.eval_deposits)]
        models = (block_model(replace(deposit, seed=seed)) for seed in seeds)
        names = [f"deposit_{seed}" for seed in seeds]
        grown = _from_models(source, _told(models, count, "growing deposits"), names)
        return grown[: source.deposits], grown[source.deposits :]
    if source.realisations:
        model = _model(source)
        words = f"env.realisations={source.realisations:,}"
        refuse_crowd(len(model.cell), source.realisations, periods, words)
        models = realised_models(model, source.realisations, source.deposit.seed)
        told = _told(models, source.realisations, "simulating grades")
        names = [f"realisation_{i}" for i in range(source.realisations)]
        return _from_models(source, told, names), []
    return [open_instance(source.data, source.economics, source.plan)], []


def _told(items: Iterable[T], of: int, words: str) -> Iterator[T]:
    """The items, while whoever waits hears how many of them are done."""
    with doing(words, of) as work:
        for item in items:
            yield item
            work.done += 1


def _from_models(
    source: MineSource, models: Iterable[BlockModel], names: Sequence[str]
) -> list[Instance]:
    """The instances of models that mostly lie alike: those share places, slopes and precedence."""
    made: list[Instance] = []
    for model, name in zip(models, names, strict=True):
        like = made[0] if made else None
        made.append(model_instance(model, source.economics, source.plan, name, like))
    return made


def _model(source: MineSource) -> BlockModel:
    if source.data in BUNDLED:
        return block_model(BUNDLED[source.data])
    if source.data.endswith(".csv"):
        return read_csv(source.data)
    raise ConfigError(
        f"env.realisations needs grades: a .csv file or a bundled deposit, not {source.data}."
    )


def daily_kilograms(layout: MineLayout, tonnes_per_day: float) -> int:
    """The daily rate in kilograms; 0 tonnes means the largest block, one block a day at most."""
    if tonnes_per_day > 0:
        return int(tonnes_per_day * 1000)
    return int(kilograms_up(layout.use).max())
