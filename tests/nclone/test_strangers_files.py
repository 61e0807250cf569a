"""Levels, replays, pools and data sets, changed at random, are read or refused in one line."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from frugal_rl.testing.fuzz import Reading, mutations
from nclone.config import NppConfig
from nclone.game import NppGame
from nclone.levels.bundled import FOLDER
from nclone.levels.files import read_level
from nclone.levels.level import load_level
from nclone.levels.pool import BUNDLED, load_pool
from nclone.replay.dataset import Dataset, load_dataset, save_dataset
from nclone.replay.files import read_replays, write_replays
from nclone.replay.inputs import Replay

NAME = "bounce_block"
REPLAYS = (".replay", ".attract", ".download", ".inputs")


def replayed(path):
    for replay in read_replays(path):
        assert replay.actions.max(initial=0) <= 5
        if replay.map_data is not None:
            load_level(replay.map_data, path)


def written(suffix, path):
    """A file of each kind, as the package writes it."""
    level, inputs = FOLDER / f"{NAME}.map", (FOLDER / f"{NAME}.inputs").read_bytes()
    if suffix in REPLAYS:
        write_replays(path, [Replay(inputs, level.read_bytes(), True, 5, 0)])
    elif suffix == ".dataset":
        save_dataset(path, Dataset({"actions": np.zeros(50, np.uint8), "won": np.ones(3, bool)}))
    else:
        found = {".map": level, ".txt": FOLDER / f"{NAME}.txt", ".pool": BUNDLED}[suffix]
        path.write_bytes(found.read_bytes())
    return path.read_bytes()


READERS = {".map": load_level, ".txt": read_level, ".pool": load_pool, ".dataset": load_dataset}


def fuzzed(suffix, folder, count):
    path = folder / f"a{suffix}"
    reading = Reading(path, READERS.get(suffix, replayed), name=path.name)
    raw = written(suffix, path)
    assert reading.problems(mutations(raw, count, 2, text=suffix == ".txt")) == []
    assert reading.refused > 0


@pytest.mark.parametrize("suffix", [*READERS, *REPLAYS])
def test_changed_files_are_read_or_refused_in_one_line(suffix, tmp_path):
    fuzzed(suffix, tmp_path, 40)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [*READERS, *REPLAYS])
def test_five_hundred_changed_files_are_read_or_refused_in_one_line(suffix, tmp_path):
    fuzzed(suffix, tmp_path, 500)


def accepted_levels(count):
    """Changed levels that are read; most have entities where none belong."""
    raw = (FOLDER / f"{NAME}.map").read_bytes()
    for _, changed in mutations(raw, count, 4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                yield load_level(changed)
            except ValueError:
                continue


def played(levels, steps):
    """What the policy sees of each level after some steps, all at once."""
    game = NppGame(replace(NppConfig(), curriculum=False), levels, len(levels), threads=1)
    game.seed([np.random.default_rng(n) for n in range(len(levels))])
    game.begin(
        np.arange(len(levels)), np.array([game.level_table.id_of(level) for level in levels])
    )
    rng = np.random.default_rng(0)
    for _ in range(steps):
        game.advance(rng.integers(6, size=len(levels), dtype=np.uint8))
    return game.observe(np.arange(len(levels)))


def test_levels_that_are_accepted_can_be_played():
    seen = played(list(accepted_levels(40)), 30)
    assert all(np.isfinite(v).all() for v in seen.values() if v.dtype.kind == "f")


@pytest.mark.slow
def test_hundreds_of_accepted_levels_can_be_played():
    seen = played(list(accepted_levels(500)), 120)
    assert all(np.isfinite(v).all() for v in seen.values() if v.dtype.kind == "f")
