"""Pools of levels that are proved winnable: recipes and winning inputs, a few hundred bytes each.

A pool file holds no level bytes: levels are made from their recipes when the pool is loaded, once,
and their keys must be those that were proved. At a reset nothing is generated or searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.invocation import command
from frugal_rl.run.disk import finished_or_absent
from frugal_rl.untrusted.arrays import read_npz
from nclone.errors import LevelError
from nclone.levels.generators import CATEGORIES, Recipe, generate
from nclone.levels.inputs import Inputs

if TYPE_CHECKING:
    from nclone.levels.level import Level

BUNDLED = Path(__file__).with_name("pool.npz")


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
    effort: int = 0
    """Frames that the searcher simulated until it won; 0 in pools of before this was kept."""


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
                    f"`{command('generate', 'env=nclone')}`."
                )
            levels.append(level)
        return levels

    def save(self, path: Path, more: Mapping[str, np.ndarray] | None = None) -> None:
        """Write the pool as compressed arrays (no pickles), whole or not at all.

        `more` are further arrays for whoever makes the pool; `load_pool` passes them over.
        """
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
            "effort": np.array([m.effort for m in self.members], np.uint32),
            "ends": np.cumsum([len(r.actions) for r in runs]).astype(np.int32),
            "actions": np.concatenate([r.actions for r in runs]) if runs else np.zeros(0, np.uint8),
            "lengths": np.concatenate([r.lengths for r in runs]) if runs else np.zeros(0, np.uint8),
        }
        narrow = {
            name: np.asarray(a, np.uint8) if isinstance(a, list) else a
            for name, a in arrays.items()
        }
        with finished_or_absent(path) as part, part.open("wb") as file:
            np.savez_compressed(file, **narrow, **(more or {}))


def _source(recipe: Recipe) -> str:
    return f"{recipe.generator}/{recipe.preset}"


def load_pool(path: Path = BUNDLED) -> LevelPool:
    """Read a pool file; makes no level yet.

    Raises:
        LevelError: there is no such file, or it is not a pool.
    """
    try:
        return LevelPool(_members(read_npz(path)))
    except FileNotFoundError as error:
        raise LevelError(
            f"There is no level pool at {path}; make one with "
            f"`{command('generate', 'env=nclone')}`."
        ) from error
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise LevelError(
            f"{path} is not a level pool ({error}); make it again with "
            f"`{command('generate', 'env=nclone')}`."
        ) from error


def _members(arrays: dict[str, np.ndarray]) -> list[PoolLevel]:
    members = []
    begin = 0
    efforts = arrays.get("effort", np.zeros(len(arrays["ends"]), np.uint32))
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
                int(efforts[k]),
            )
        )
        begin = int(end)
    return members
