"""Where levels come from, as a user names them: bundled names, categories, pools, files.

A name is one of
    walk                     a bundled level
    bundled                  all of them
    drawn                    all levels drawn by hand
    simplest                 the proved levels of a category in the bundled pool
    pools/pool.npz           all levels of a pool file
    pools/pool.npz:simple    one category of it
    my_level.map, .txt       level bytes, or a drawing
    run.replay, run.attract  the level inside a replay
    evolved:RUN              the levels that a run evolved (`env.evolved`)
    my_levels                a folder: every file in it that is one of these, by name
    mirrored:NAME            any of them with left and right exchanged
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from frugal_rl.invocation import command
from frugal_rl.run.nearness import nearest
from nclone.errors import LevelError, LevelWarning, ReplayError
from nclone.levels.bundled import bundled_level, bundled_names, winning_inputs
from nclone.levels.drawn import drawn_levels, drawn_solutions
from nclone.levels.evolved import EVOLVED, evolved_levels
from nclone.levels.files import DRAWING, read_level
from nclone.levels.generators import CATEGORIES, generate, mirror_level
from nclone.levels.inputs import mirrored_actions
from nclone.levels.level import Level, load_level
from nclone.levels.pool import LevelPool, PoolLevel, Split, load_pool
from nclone.render.scene import moment_widths
from nclone.replay.files import REPLAYS, read_replay
from nclone.search.proof import mirrored_members

DRAWN = "drawn"
"""The name of the levels in `nclone.levels.drawn`."""
BUNDLED = "bundled"
"""The name of all bundled levels."""
MIRRORED = "mirrored:"
POOL = ".npz"
IN_FOLDERS = (DRAWING, ".map", *REPLAYS[:2])
"""Suffixes of the files that a folder stands for."""


def open_levels(
    wanted: Sequence[str], split: str = "train", skip_unreadable: bool = False
) -> list[Level]:
    """Levels by name, in the order given.

    Categories and pools stand for their training levels, or with `split` "eval" for their test
    levels, which share no content.

    Raises:
        LevelError: a name that means nothing; the nearest name is given.
    """
    return [level for _, level in open_grouped(wanted, split, skip_unreadable)]


def open_grouped(
    wanted: Sequence[str], split: str = "train", skip_unreadable: bool = False
) -> list[tuple[str, Level]]:
    """As `open_levels`, each with the name that it is judged under: its category, or its own."""
    found: list[tuple[str, Level]] = []
    for name in wanted:
        members, levels = pool_members(name, split), _open(name, split, skip_unreadable)
        groups = [level.name for level in levels] if members is None else _categories(members)
        if name.startswith(EVOLVED):
            groups = [EVOLVED.removesuffix(":")] * len(levels)
        found += zip(groups, levels, strict=True)
    return found


def _categories(members: Sequence[PoolLevel]) -> list[str]:
    return [member.category for member in members]


def pool_members(name: str, split: str = "train") -> list[PoolLevel] | None:
    """The pool levels that a name stands for, in the order of `open_levels`; None for others."""
    if name.startswith(MIRRORED):
        plain = name.removeprefix(MIRRORED)
        return _mirrored(plain, split) if _is_pool(plain) else None
    if not _is_pool(name):
        return None
    part = Split.test if split == "eval" else Split.train
    if name in CATEGORIES:
        return load_pool().of([name], part).members
    file, category = _pool_and_category(name)
    found = load_pool(Path(file)).of([category] if category else None, part).members
    if not found:
        raise LevelError(
            f"The pool {file} has no {part.value} level of category '{category or 'any'}'; add "
            f"some with `{command('generate', 'env=nclone')}`."
        )
    return found


def pool_places(names: Sequence[str]) -> list[tuple[str, str]]:
    """Category and source ("generator/preset") of every training level of these categories.

    Raises:
        LevelError: a name that is no category.
    """
    parts = {name: pool_members(name) for name in names}
    unknown = [name for name, members in parts.items() if members is None]
    if unknown:
        raise LevelError(
            f"env.curriculum=true needs categories in env.levels, but {unknown} are none. "
            f"Use some of {', '.join(CATEGORIES)}, or set env.curriculum=false."
        )
    members = [m for name in names for m in parts[name] or ()]
    return [(m.category, f"{m.recipe.generator}/{m.recipe.preset}") for m in members]


def search_efforts(names: Sequence[str]) -> dict[str, int]:
    """Frames that the searcher took for training levels, by their keys; of pools alone."""
    members = [m for name in names for m in pool_members(name) or ()]
    return {m.key: m.effort for m in members}


def check_names(names: Iterable[str]) -> None:
    """Refuse a name that nothing is called; no file is opened.

    Raises:
        LevelError: with the nearest names.
    """
    known = {*bundled_names(), BUNDLED, DRAWN}
    for name in names:
        plain = name.removeprefix(MIRRORED).removeprefix(EVOLVED)
        if not (plain in known or _is_pool(plain) or Path(plain).exists()):
            raise _unknown(name)


def widest_moments(*wanted: Sequence[str], skip_unreadable: bool = False) -> tuple[int, int, int]:
    """`moment_widths` over lists of level names: the training's, then the evaluation's."""
    stamps = tuple((name, _stamp(name)) for names in wanted for name in names)
    return _widest(tuple(tuple(names) for names in wanted), stamps, skip_unreadable)


@lru_cache(maxsize=64)
def _widest(
    wanted: tuple[tuple[str, ...], ...], stamps: Any, skip_unreadable: bool
) -> tuple[int, int, int]:
    splits = zip(wanted, ("train", "eval"), strict=True)
    opened = [open_levels(names, split, skip_unreadable) for names, split in splits]
    return moment_widths([level for levels in opened for level in levels])


def _stamp(name: str) -> int:
    """When a level file was changed; 0 for what is no file."""
    path = Path(name)
    return path.stat().st_mtime_ns if path.is_file() else 0


def winning_actions(name: str, split: str = "train") -> list[np.ndarray] | None:
    """[T] actions 0..5 per frame that win each level of a name; None where none are known.

    A folder has some where all its levels come from replays that won.
    """
    members = pool_members(name, split)
    if members is not None:
        return [m.inputs.per_step(1) for m in members]
    if name in (*bundled_names(), BUNDLED):
        return [winning_inputs(level) for level in _bundled(name)]
    if name == DRAWN:
        known = drawn_solutions()
        return [known[level].per_step(1) for level in drawn_levels()]
    path = Path(name)
    if path.suffix in REPLAYS and path.is_file():
        return _replayed([path])
    if path.is_dir():
        return _replayed(_level_files(path))
    if name.startswith(MIRRORED):
        plain = winning_actions(name.removeprefix(MIRRORED), split)
        return None if plain is None else [mirrored_actions(actions) for actions in plain]
    return None


def _bundled(name: str) -> Sequence[str]:
    """The bundled levels that a name stands for."""
    return bundled_names() if name == BUNDLED else (name,)


def _replayed(files: Sequence[Path]) -> list[np.ndarray] | None:
    """The actions of replays that won; None where a file is no replay or did not win."""
    if not files or any(file.suffix not in REPLAYS for file in files):
        return None
    replays = [read_replay(file) for file in files]
    return [r.actions for r in replays] if all(r.success for r in replays) else None


def _level_files(folder: Path) -> list[Path]:
    """The files of a folder that hold levels, by name."""
    return sorted(p for p in folder.iterdir() if p.suffix in IN_FOLDERS)


def _open(name: str, split: str, skip_unreadable: bool = False) -> list[Level]:
    members = pool_members(name, split)
    if members is not None:
        return LevelPool(members).make_levels()
    if name.startswith(MIRRORED):
        plain = _open(name.removeprefix(MIRRORED), split, skip_unreadable)
        return [load_level(mirror_level(level.map_data)) for level in plain]
    if name.startswith(EVOLVED):
        return evolved_levels(name.removeprefix(EVOLVED))
    if name in (*bundled_names(), BUNDLED):
        return [bundled_level(level) for level in _bundled(name)]
    if name == DRAWN:
        return list(drawn_levels().values())
    path = Path(name)
    if path.is_file():
        return [read_level(path)]
    if path.is_dir():
        return _folder(path, skip_unreadable)
    raise _unknown(name)


def _folder(path: Path, skip_unreadable: bool) -> list[Level]:
    """The levels in the files of a folder; what cannot be read is refused, or left out if asked."""
    files = _level_files(path)
    levels, wrong = [], []
    for file in files:
        try:
            levels.append(read_level(file))
        except (LevelError, ReplayError) as error:
            wrong.append(str(error))
    if wrong and not skip_unreadable:
        raise LevelError(
            f"{len(wrong)} of {len(files)} files in {path} cannot be read:\n  "
            + "\n  ".join(wrong)
            + "\nMend or move them, or leave them out by skip_unreadable=true "
            "(env.skip_unreadable=true where env.levels names the folder)."
        )
    if not levels:
        raise LevelError(f"The folder {path} holds no level file ({', '.join(IN_FOLDERS)}).")
    if wrong:
        words = "\n  ".join(wrong)
        warnings.warn(
            f"{path}: {len(wrong)} of {len(files)} files left out:\n  {words}",
            LevelWarning,
            stacklevel=2,
        )
    return levels


@lru_cache(maxsize=32)
def _mirrored(name: str, split: str) -> list[PoolLevel]:
    return mirrored_members(pool_members(name, split) or [], generate)


def _is_pool(name: str) -> bool:
    return name in CATEGORIES or _pool_and_category(name)[0].endswith(POOL)


def _pool_and_category(name: str) -> tuple[str, str]:
    """`a/pool.npz:simple` -> `a/pool.npz`, `simple`; the category is empty where none is named."""
    file, colon, category = name.rpartition(":")
    if not colon or not file.endswith(POOL):
        return name, ""
    if category not in CATEGORIES:
        raise LevelError(
            f"env.levels names '{name}', but '{category}' is no category; use one of "
            f"{', '.join(CATEGORIES)}."
        )
    return file, category


def _unknown(name: str) -> LevelError:
    hint = nearest(name, [*bundled_names(), BUNDLED, DRAWN, *CATEGORIES])
    return LevelError(
        f"env.levels names '{name}', which is no bundled level, category or file; "
        f"{hint}{'' if hint.endswith('?') else '.'} More levels: "
        f"`{command('generate', 'env=nclone')}`, then env.levels=[generated/pool.npz:simple]."
    )
