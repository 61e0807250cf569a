"""Observations and actions from replays: what a policy would have seen while they were played.

A dataset is one `.npz` without pickles:
    obs_<field>            [M, *shape], stored and derived fields as the observation space has them
    <table>_id             [M] int32, row of a static table
    table_<table>_<field>  the table's rows, once; ragged ones with table_<table>_<field>_ends
    actions [M] uint8, rewards [M] float32, episode [M] int32, won [episodes] bool, names [episodes]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import DataError
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoder import value_of
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import ObservationSpec, Static
from frugal_rl.observation.tables import Tables
from frugal_rl.run.disk import finished_or_absent
from frugal_rl.untrusted.arrays import read_npz
from nclone.game import NppGame
from nclone.levels.level import Level

if TYPE_CHECKING:
    from nclone.config import NppConfig


AT_ONCE = 64
"""Replays that are played side by side."""


@dataclass(frozen=True)
class Demonstration:
    """A level and one action per frame."""

    name: str
    level: Level
    actions: np.ndarray


@dataclass(frozen=True)
class Dataset:
    """Arrays by name, as a file holds them."""

    arrays: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.arrays["actions"])

    def observation(self, spec: ObservationSpec, m: int) -> dict[str, np.ndarray]:
        """The full observation of sample m, every observed field of `spec`."""
        found = {}
        for f in spec.observed():
            if not isinstance(f, Static):
                found[f.name] = self.arrays[f"obs_{f.name}"][m]
                continue
            row = int(self.arrays[f"{f.table}_id"][m])
            found[f.name] = self._static(f, row)
        return found

    def _static(self, f: Static, row: int) -> np.ndarray:
        rows = self.arrays[f"table_{f.table}_{f.name}"]
        if not f.ragged:
            return rows[row].astype(f.dtype)
        ends = self.arrays[f"table_{f.table}_{f.name}_ends"]
        items = rows[ends[row - 1] if row else 0 : ends[row]]
        dense = np.zeros(f.shape, f.dtype)
        dense[: len(items)] = items
        return dense


def per_step(demonstration: Demonstration, frame_skip: int) -> np.ndarray:
    """[steps] one action per environment step.

    Raises:
        DataError: the inputs change inside a step.
    """
    frames = demonstration.actions
    steps = frames[::frame_skip]
    held = np.repeat(steps, frame_skip)[: len(frames)]
    if not np.array_equal(held, frames):
        at = int(np.flatnonzero(held != frames)[0])
        raise DataError(
            f"The inputs of {demonstration.name} change at frame {at}, inside a step of "
            f"{frame_skip} frames; use env.frame_skip=1."
        )
    return np.asarray(steps, np.uint8)


def collect(config: NppConfig, demonstrations: Sequence[Demonstration]) -> Dataset:
    """Play all demonstrations from their level's start and keep every observation."""
    if not demonstrations:
        raise DataError("There is no replay to collect from.")
    levels = list({d.level.key: d.level for d in demonstrations}.values())
    kept = _Kept(config.spec())
    parts = []
    for first in range(0, len(demonstrations), AT_ONCE):
        chosen = demonstrations[first : first + AT_ONCE]
        parts.append(_play(config, levels, chosen, first, kept))
    arrays = {n: np.concatenate([p[n] for p in parts]) for n in parts[0]}
    arrays["names"] = np.array([d.name for d in demonstrations], np.str_)
    return Dataset(arrays | kept.table_arrays())


def save_dataset(path: Path, dataset: Dataset) -> None:
    """Write a dataset, whole or not at all."""
    with finished_or_absent(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **dataset.arrays)


def load_dataset(path: Path) -> Dataset:
    """Read a dataset.

    Raises:
        DataError: there is no such file, or it is no dataset.
    """
    try:
        arrays = read_npz(path)
        if "actions" not in arrays:
            raise ValueError("it has no actions")
    except Exception as error:
        raise DataError(f"{path} is not a dataset of observations ({error}).") from error
    return Dataset(arrays)


class _Kept:
    """What is kept of the observations of some worlds: copies, and static rows of its own."""

    def __init__(self, spec: ObservationSpec) -> None:
        self.spec = spec
        self.encoding = Encoding.choose(spec, Storage.lossless)
        if self.encoding.windowed:
            raise DataError(
                "A dataset keeps single moments, which stacks can be made from; use env.stack=1."
            )
        self.tables = Tables()

    def observed(self, game: NppGame, index: np.ndarray) -> dict[str, np.ndarray]:
        """Observed fields of the worlds `index`; static ones by id in tables of our own."""
        raw = {n: np.array(v) for n, v in game.observe(index).items()}
        values: dict[str, np.ndarray] = {}
        row: dict[str, np.ndarray] = {}
        for f in self.spec.observed():
            if isinstance(f, Static):
                row.setdefault(f"{f.table}_id", self._ids(f.table, game.tables, raw))
            else:
                value = value_of(f.name, self.encoding, raw, game.tables, values)
                row[f"obs_{f.name}"] = value.copy()
        return row

    def _ids(self, name: str, theirs: Tables, raw: dict[str, np.ndarray]) -> np.ndarray:
        """Ids by content: those of a game's table may be given again to other rows."""
        table, ids = theirs[name], raw[f"{name}_id"]
        ours = self.tables.setdefault(name, table.empty())
        keys, found = table.keys, {}
        for number in map(int, np.unique(ids)):

            def content(number: int = number) -> dict[str, np.ndarray]:
                return {name: value.copy() for name, value in table.row(number).items()}

            found[number] = ours.intern(keys[number], content)
        return np.array([found[int(number)] for number in ids], np.int32)

    def table_arrays(self) -> dict[str, np.ndarray]:
        """The static rows of all observed fields, by the names of the file."""
        arrays: dict[str, np.ndarray] = {}
        for f in self.spec.observed():
            if not isinstance(f, Static):
                continue
            table = self.tables[f.table]
            arrays[f"table_{f.table}_{f.name}"] = table[f.name].copy()
            if table.fields[f.name].ragged:
                arrays[f"table_{f.table}_{f.name}_ends"] = table.offsets(f.name)[1:].copy()
        return arrays


def _play(
    config: NppConfig,
    levels: Sequence[Level],
    chosen: Sequence[Demonstration],
    first: int,
    kept: _Kept,
) -> dict[str, np.ndarray]:
    """One group of demonstrations side by side; samples ordered by episode, then time."""
    steps = [per_step(d, config.frame_skip) for d in chosen]
    plan = np.zeros((max(map(len, steps)), len(chosen)), np.uint8)
    for n, actions in enumerate(steps):
        plan[: len(actions), n] = actions
    game = NppGame(
        replace(config, start_frames=0, curriculum=False), levels, len(chosen), threads=1
    )
    game.seed([np.random.default_rng(n) for n in range(len(chosen))])
    game.begin(np.arange(len(chosen)), np.array([game.level_table.id_of(d.level) for d in chosen]))
    length = np.array([len(s) for s in steps])
    won, playing = np.zeros(len(chosen), np.bool_), length > 0
    seen: list[dict[str, np.ndarray]] = []
    for t, actions in enumerate(plan):
        playing &= t < length
        index = np.flatnonzero(playing)
        if not len(index):
            break
        row = kept.observed(game, index)
        told = game.advance(actions)
        row["actions"] = actions[index]
        row["rewards"] = told.reward[index].astype(np.float32)
        row["episode"] = (first + index).astype(np.int32)
        seen.append(row)
        won |= told.terminated & ~told.events["died"] & playing
        playing &= ~(told.terminated | told.truncated)
    merged = {n: np.concatenate([s[n] for s in seen]) for n in seen[0]}
    order = np.argsort(merged["episode"], kind="stable")
    return {n: a[order] for n, a in merged.items()} | {"won": won}
