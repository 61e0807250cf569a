"""Pools of levels that are proved winnable: recipes and winning inputs, a few hundred bytes each.

A pool file holds no level bytes: levels are made from their recipes when the pool is loaded, once,
and their keys must be those that were proved. At a reset nothing is generated or searched.
"""

from __future__ import annotations

import statistics
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from nclone.errors import LevelError
from nclone.levels.generators import (
    CATEGORIES,
    TEST_SEEDS,
    TRAIN_SEEDS,
    Recipe,
    draw_recipes,
    generate,
    level_content,
)
from nclone.levels.level import Level
from nclone.levels.proof import Inputs, Prover

BUNDLED = Path(__file__).with_name("pool.npz")
_BATCH = 64


class Split(Enum):
    """Which of two sets of levels that never share a seed or a content."""

    train = "train"
    test = "test"


@dataclass(frozen=True)
class PoolLevel:
    """One proved level."""

    category: str
    split: Split
    recipe: Recipe
    inputs: Inputs
    key: str
    """`Level.key` of the level that was proved."""


@dataclass
class CategoryReport:
    """How the search for one category's levels went."""

    category: str
    proved: int = 0
    unsolved: int = 0
    duplicates: int = 0
    seconds: list[float] = field(default_factory=list)
    unsolved_of: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        """Proved levels among those that were searched."""
        return self.proved / max(self.proved + self.unsolved, 1)

    @property
    def median_seconds(self) -> float:
        """Median processor time of a search, over proved and unsolved levels."""
        return statistics.median(self.seconds) if self.seconds else 0.0


class LevelPool:
    """Proved levels by category, made once and then only handed out."""

    def __init__(self, members: Sequence[PoolLevel]) -> None:
        self.members = list(members)

    def __len__(self) -> int:
        return len(self.members)

    def of(self, categories: Iterable[str] | None = None, split: Split = Split.train) -> LevelPool:
        """The part of some categories (None: all) and of one split."""
        wanted = set(CATEGORIES if categories is None else categories)
        unknown = wanted - set(CATEGORIES)
        if unknown:
            raise ValueError(
                f"There is no category {sorted(unknown)}; choose from {list(CATEGORIES)}."
            )
        return LevelPool([m for m in self.members if m.category in wanted and m.split is split])

    def make_levels(self) -> list[Level]:
        """Make all levels of the pool, in its order.

        Raises:
            LevelError: a recipe no longer gives the level that was proved.
        """
        levels = []
        for member in self.members:
            level = generate(member.recipe)
            if level.key != member.key:
                raise LevelError(
                    f"Level '{member.recipe.title}' of the pool is not the one that was proved: "
                    "the generators have changed. Make the pool again with "
                    "`python scripts/generate.py env=nclone`."
                )
            levels.append(level)
        return levels

    def save(self, path: Path) -> None:
        """Write the pool as compressed arrays (no pickles), first under another name."""
        names = sorted({_source(m.recipe) for m in self.members})
        runs = [m.inputs for m in self.members]
        arrays = {
            "sources": np.array(names, np.str_),
            "categories": np.array(list(CATEGORIES), np.str_),
            "source": [
                names.index(f"{m.recipe.generator}/{m.recipe.preset}") for m in self.members
            ],
            "category": [list(CATEGORIES).index(m.category) for m in self.members],
            "test": [m.split is Split.test for m in self.members],
            "seed": np.array([m.recipe.seed for m in self.members], np.uint64),
            "mirrored": [m.recipe.mirrored for m in self.members],
            "key": np.array([int(m.key, 16) for m in self.members], np.uint64),
            "ends": np.cumsum([len(r.actions) for r in runs]).astype(np.int32),
            "actions": np.concatenate([r.actions for r in runs]) if runs else np.zeros(0, np.uint8),
            "lengths": np.concatenate([r.lengths for r in runs]) if runs else np.zeros(0, np.uint8),
        }
        narrow = {
            name: np.asarray(a, np.uint8) if isinstance(a, list) else a
            for name, a in arrays.items()
        }
        unfinished = path.with_name(path.name + ".part")
        with unfinished.open("wb") as file:
            np.savez_compressed(file, **narrow)
        unfinished.replace(path)


def _source(recipe: Recipe) -> str:
    return f"{recipe.generator}/{recipe.preset}"


def load_pool(path: Path = BUNDLED) -> LevelPool:
    """Read a pool file; makes no level yet.

    Raises:
        LevelError: there is no such file, or it is not a pool.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return LevelPool(_members(arrays))
    except FileNotFoundError as error:
        raise LevelError(
            f"There is no level pool at {path}; make one with generate_pool."
        ) from error
    except (OSError, ValueError, KeyError, IndexError, EOFError, BadZipFile, zlib.error) as error:
        raise LevelError(
            f"{path} is not a level pool ({error}); make it again with "
            "`python scripts/generate.py env=nclone`."
        ) from error


def _members(arrays: dict[str, np.ndarray]) -> list[PoolLevel]:
    members = []
    begin = 0
    for k, end in enumerate(arrays["ends"]):
        generator, preset = str(arrays["sources"][arrays["source"][k]]).split("/")
        mirrored = bool(arrays["mirrored"][k])
        members.append(
            PoolLevel(
                str(arrays["categories"][arrays["category"][k]]),
                Split.test if arrays["test"][k] else Split.train,
                Recipe(generator, preset, int(arrays["seed"][k]), mirrored),
                Inputs(arrays["actions"][begin:end], arrays["lengths"][begin:end]),
                f"{int(arrays['key'][k]):016x}",
            )
        )
        begin = int(end)
    return members


def generate_pool(
    per_category: int,
    categories: Sequence[str] = tuple(CATEGORIES),
    split: Split = Split.train,
    exclude: LevelPool | None = None,
    mirrored: bool = False,
    show: bool = True,
) -> tuple[LevelPool, list[CategoryReport]]:
    """Generate levels and prove them until every category has `per_category`.

    Args:
        per_category: proved levels wanted.
        categories: which categories; each draws from its sources in turn.
        split: which range of seeds to draw from.
        exclude: levels whose contents must not appear again, whatever their split.
        mirrored: make the levels' mirror images instead.
        show: draw a progress bar.

    Raises:
        LevelError: a category yields fewer than one new proved level in twenty.
    """
    seen = {level_content(level) for level in exclude.make_levels()} if exclude else set()
    members: list[PoolLevel] = []
    reports = []
    columns = (TextColumn("{task.description:20}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), disable=not show) as bar:
        for category in categories:
            task = bar.add_task(category, total=per_category)
            report = CategoryReport(category)
            for member in _prove_category(category, per_category, split, mirrored, seen, report):
                members.append(member)
                bar.advance(task)
            reports.append(report)
    return LevelPool(members), reports


def _prove_category(
    category: str,
    wanted: int,
    split: Split,
    mirrored: bool,
    seen: set[bytes],
    report: CategoryReport,
) -> Iterable[PoolLevel]:
    prover = Prover()
    base = TEST_SEEDS if split is Split.test else TRAIN_SEEDS
    first = 0
    while report.proved < wanted:
        if first > 20 * (wanted + _BATCH):
            raise LevelError(
                f"Category '{category}' gave {report.proved} new proved levels in {first} recipes; "
                "ask for fewer levels."
            )
        for recipe in draw_recipes(category, _BATCH, base, first, mirrored):
            level = generate(recipe)
            content = level_content(level)
            if content in seen:
                report.duplicates += 1
                continue
            seen.add(content)
            started = time.process_time()
            proof = prover.prove(level, seed=recipe.seed & 0xFFFFFFFF)
            report.seconds.append(time.process_time() - started)
            if proof.inputs is None:
                report.unsolved += 1
                report.unsolved_of[_source(recipe)] += 1
                continue
            report.proved += 1
            yield PoolLevel(category, split, recipe, proof.inputs, level.key)
            if report.proved == wanted:
                return
        first += _BATCH
