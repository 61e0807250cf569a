"""Making pools: levels are drawn, proved and kept until every category has enough of them.

A pool file on disk is written every few seconds together with how far each category has come, so
that a search that was stopped goes on where it was, and a finished pool can be made larger.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from frugal_rl.untrusted.arrays import read_npz
from nclone.errors import LevelError
from nclone.files import write_whole
from nclone.levels.generators import (
    CATEGORIES,
    TEST_SEEDS,
    TRAIN_SEEDS,
    draw_recipes,
    generate,
    level_content,
)
from nclone.levels.pool import BUNDLED, LevelPool, PoolLevel, Split, load_pool
from nclone.search.proof import Prover

SEEDS_PER_RUN = 1 << 24
"""Level seeds that belong to one `seed` of the command line."""
SAVE_SECONDS = 5.0
_BATCH = 64


@dataclass
class Tally:
    """How far the search for one category's levels of one split has come."""

    category: str
    split: Split
    searched: int = 0
    """Recipes that were drawn."""
    proved: int = 0
    unsolved: int = 0
    duplicates: int = 0
    seconds: list[float] = field(default_factory=list)
    """Processor time of each search, proved or not."""

    @property
    def share(self) -> float:
        """Proved levels among those that were searched."""
        return self.proved / max(self.proved + self.unsolved, 1)

    @property
    def median_seconds(self) -> float:
        """Median processor time of a search, over proved and unsolved levels."""
        return statistics.median(self.seconds) if self.seconds else 0.0


class PoolMaker:
    """Draws levels and proves them; knows what it has made and what must not come again.

    Args:
        exclude: levels whose contents are left out, besides those that are made.
        first_seed: seed of the first recipe, above the split's base.

    `avoid` holds further contents that are left out of one split.
    """

    def __init__(self, exclude: Iterable[PoolLevel] = (), first_seed: int = 0) -> None:
        self.members: list[PoolLevel] = []
        self.tallies: dict[tuple[str, Split], Tally] = {}
        self.first_seed = first_seed
        self.avoid: dict[Split, set[bytes]] = {split: set() for split in Split}
        self._seen = contents(exclude)
        self._prover = Prover()

    def tally(self, name: str, split: Split) -> Tally:
        """The tally of a category, which may be called `mirrored:<category>`."""
        return self.tallies.setdefault((name, split), Tally(name, split))

    def prove(self, name: str, split: Split, wanted: int) -> Iterator[PoolLevel]:
        """Add proved levels of a category until it has `wanted`; yields each as it is found.

        Raises:
            LevelError: fewer than one recipe in twenty gives a new proved level.
        """
        tally = self.tally(name, split)
        category = name.removeprefix("mirrored:")
        base = (TEST_SEEDS if split is Split.test else TRAIN_SEEDS) + self.first_seed
        while tally.proved < wanted:
            if tally.searched > 20 * (wanted + _BATCH):
                raise LevelError(
                    f"Category '{name}' gave {tally.proved} new proved levels in {tally.searched} "
                    "recipes; ask for fewer levels."
                )
            for recipe in draw_recipes(category, _BATCH, base, tally.searched, name != category):
                tally.searched += 1
                level = generate(recipe)
                content = level_content(level)
                if content in self._seen or content in self.avoid[split]:
                    tally.duplicates += 1
                    continue
                began = time.process_time()
                proof = self._prover.prove(level, seed=recipe.seed & 0xFFFFFFFF)
                tally.seconds.append(time.process_time() - began)
                if proof.inputs is None:
                    tally.unsolved += 1
                    continue
                self._seen.add(content)
                tally.proved += 1
                found = proof.inputs, level.key, proof.frames_spent
                self.members.append(PoolLevel(category, split, recipe, *found))
                yield self.members[-1]
                if tally.proved == wanted:
                    return

    def save(self, path: Path) -> None:
        """Write the pool with its tallies, whole or not at all."""
        tallies = list(self.tallies.values())
        more = {
            "tally_of": np.array([f"{t.category} {t.split.value}" for t in tallies], np.str_),
            "tally": np.array(
                [(t.searched, t.proved, t.unsolved, t.duplicates) for t in tallies], np.int64
            ).reshape(-1, 4),
            "tally_ends": np.cumsum([len(t.seconds) for t in tallies], dtype=np.int64),
            "tally_seconds": np.array([s for t in tallies for s in t.seconds], np.float32),
            "first_seed": np.array(self.first_seed, np.uint64),
        }
        LevelPool(self.members).save(path, more)

    def resume(self, path: Path) -> None:
        """Go on with what `save` wrote.

        Raises:
            LevelError: the file is no pool, was made from another seed, or by other generators.
        """
        self.members = load_pool(path).members
        file = read_npz(path)
        if "tally" not in file or int(file["first_seed"]) != self.first_seed:
            raise LevelError(
                f"{path} was made with another seed, or not by generate.py; choose another "
                "folder=..., or the seed that it was made with."
            )
        begin = 0
        for name, row, end in zip(file["tally_of"], file["tally"], file["tally_ends"], strict=True):
            category, split = str(name).split(" ")
            spent = [float(s) for s in file["tally_seconds"][begin:end]]
            tally = Tally(category, Split(split), *map(int, row), spent)
            self.tallies[category, tally.split] = tally
            begin = int(end)
        self._seen |= {level_content(level) for level in LevelPool(self.members).make_levels()}


def generate_pool(
    per_category: int,
    categories: Sequence[str] = tuple(CATEGORIES),
    split: Split = Split.train,
    exclude: LevelPool | None = None,
    mirrored: bool = False,
    show: bool = True,
) -> tuple[LevelPool, list[Tally]]:
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
    maker = PoolMaker(exclude.members if exclude else ())
    names = [f"mirrored:{c}" if mirrored else c for c in categories]
    for _ in _prove_all(maker, [(name, split, per_category) for name in names], show):
        pass
    return LevelPool(maker.members), list(maker.tallies.values())


def grow_pool(
    path: Path, train: int, test: int, names: Sequence[str], seed: int = 0, show: bool = True
) -> PoolMaker:
    """Write a pool file with so many proved levels per category, or make one larger.

    Training and test levels share no content, neither with each other nor with the other split of
    the bundled pool. Beside the pool, a `.json` lists the level keys of each category.

    Args:
        path: the pool file; what it holds already is kept.
        train: training levels per category.
        test: test levels per category.
        names: categories, or `mirrored:<category>` for the mirror images of further levels.
        seed: which seeds to draw from; each has its own 16 million per source.
        show: draw a progress bar.
    """
    maker = PoolMaker(first_seed=seed * SEEDS_PER_RUN)
    if path.is_file():
        maker.resume(path)
    for split in Split:
        maker.avoid[split] = {c for other in Split if other is not split for c in _bundled(other)}
    wanted = [(name, Split.test, test) for name in names]
    wanted += [(name, Split.train, train) for name in names]
    saved = time.monotonic()
    try:
        for _ in _prove_all(maker, wanted, show):
            if time.monotonic() - saved > SAVE_SECONDS:
                maker.save(path)
                saved = time.monotonic()
    finally:
        maker.save(path)
    write_whole(path.with_suffix(".json"), _listing(maker).encode())
    return maker


def contents(members: Iterable[PoolLevel]) -> set[bytes]:
    """What the levels of some recipes consist of, whatever generators they were proved with."""
    return {level_content(generate(m.recipe)) for m in members}


@cache
def _bundled(split: Split) -> frozenset[bytes]:
    """Contents of the bundled pool's levels of a split; none while there is no such pool."""
    found = load_pool(BUNDLED).of(split=split).members if BUNDLED.is_file() else []
    return frozenset(contents(found))


class _Rate(ProgressColumn):
    """Levels per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.1f} levels/s")


def _prove_all(
    maker: PoolMaker, wanted: Sequence[tuple[str, Split, int]], show: bool
) -> Iterator[PoolLevel]:
    columns = (TextColumn("{task.description:32}"), BarColumn(), MofNCompleteColumn(), _Rate())
    with Progress(*columns, TimeRemainingColumn(), disable=not show) as bar:
        for name, split, count in wanted:
            task = bar.add_task(f"{name} ({split.value})", total=count)
            bar.advance(task, maker.tally(name, split).proved)
            for member in maker.prove(name, split, count):
                bar.advance(task)
                yield member


def _listing(maker: PoolMaker) -> str:
    """What the pool holds, as JSON: category -> split -> keys, and the tallies."""
    levels: dict[str, dict[str, list[str]]] = {}
    for m in maker.members:
        levels.setdefault(m.category, {}).setdefault(m.split.value, []).append(m.key)
    tallies = [
        {
            "category": t.category,
            "split": t.split.value,
            "searched": t.searched,
            "proved": t.proved,
            "unsolved": t.unsolved,
            "duplicates": t.duplicates,
            "median_seconds": round(t.median_seconds, 5),
        }
        for t in maker.tallies.values()
    ]
    return json.dumps({"levels": levels, "search": tallies}, indent=1) + "\n"
