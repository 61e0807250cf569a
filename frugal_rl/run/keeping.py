"""Which checkpoints of a run stay, and which one a resume takes: the newest that is sound."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugal_rl.errors import CheckpointError, OtherFormatError, OutOfReachError
from frugal_rl.run.checkpoint_file import pieces_of, read_file, verify_file
from frugal_rl.run.checkpoints import as_it_stands, load_checkpoint
from frugal_rl.run.disk import write_whole
from frugal_rl.run.manifest import (
    LAST,
    OLDER,
    Manifest,
    checkpoints_in,
    find_checkpoint,
    older_in,
    read_manifest,
    refuse_begun,
)

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig


OUT_OF_REACH = "out_of_reach.pt"
"""Name of a newest checkpoint that this user may not open, once a run of his saved beside it."""
OTHER = "other_version.pt"
"""Name of a newest checkpoint that another version wrote, once this one has saved in its folder."""


def save_newest(folder: Path, content: Mapping[str, Any], keep: int) -> Path:
    """Save `last.pt`; the one before stays under its own steps, `keep` of them in all.

    Nothing older is moved or removed before the new one was read back.
    """
    last = folder / LAST

    def accept(part: Path) -> None:
        verify_file(part)
        if keep > 1:
            _put_aside(last)

    write_whole(last, pieces_of(content), accept)
    _prune(folder, keep)
    return last


def _put_aside(last: Path) -> None:
    """Give the newest checkpoint a second name, by its steps."""
    try:
        values = read_manifest(last).values
    except OtherFormatError:
        last.replace(last.with_name(OTHER))
        return
    except OutOfReachError:
        last.replace(last.with_name(OUT_OF_REACH))
        return
    except CheckpointError:
        return  # none there, or one that nobody can read
    steps = values.get("num_steps") if isinstance(values, dict) else None
    aside = last.with_name(OLDER.format(steps if type(steps) is int else 0))
    aside.unlink(missing_ok=True)
    try:
        os.link(last, aside)
    except OSError:  # a file system without second names
        last.replace(aside)


def _prune(folder: Path, keep: int) -> None:
    """Remove what is older than `keep` checkpoints, and parts that a killed run left behind."""
    for path in (*older_in(folder)[max(0, keep - 1) :], *folder.glob(".*.part")):
        path.unlink(missing_ok=True)


Complete = Callable[[dict[str, Any], Path], dict[str, Any]]


def as_it_is(content: dict[str, Any], file: Path) -> dict[str, Any]:
    """A checkpoint beside which nothing lies."""
    return content


@dataclass(frozen=True)
class Found:
    """The newest sound checkpoint, and what is wrong with those that are newer."""

    file: Path
    content: dict[str, Any]
    unsound: tuple[str, ...] = ()


def newest_sound(path: str | Path, complete: Complete = as_it_is) -> Found:
    """The newest sound checkpoint of a run; a file named by itself stands for no other.

    Args:
        path: a checkpoint, a run folder, or its `checkpoints/`.
        complete: adds what lies beside the file and belongs to it, or refuses it.

    Raises:
        CheckpointError: there is none; what is wrong with the newest.
    """
    path = Path(path)
    unsound: list[str] = []
    if path.is_file() and path.name != LAST:
        return Found(path, complete(load_checkpoint(path), path))
    files = _files(path) or [find_checkpoint(path)]
    for file in files:
        try:
            return Found(file, complete(load_checkpoint(file), file), tuple(unsound))
        except (OtherFormatError, OutOfReachError):
            raise  # a save behind an older one would replace what others can read
        except CheckpointError as error:
            unsound.append(str(error))
    if len(files) == 1:
        raise CheckpointError(unsound[0])
    raise CheckpointError(f"None of {len(files)} checkpoints is sound. {unsound[0]}")


def _files(path: Path) -> list[Path]:
    """The checkpoints of a run, newest first."""
    folder = path.parent if path.is_file() else path
    if folder == path and (path / "checkpoints").is_dir():
        folder = path / "checkpoints"
    return checkpoints_in(folder)


@dataclass(frozen=True)
class Verdict:
    """One checkpoint file: sound, of another version, or what is wrong with it."""

    file: Path
    entries: int = 0
    num_bytes: int = 0
    num_steps: int | None = None
    problem: str = ""
    other_version: bool = False
    """Whether only another version of this program can tell."""
    out_of_reach: bool = False
    """Whether this user may not open it."""

    @property
    def sound(self) -> bool:
        """Whether every byte is as it was written."""
        return not self.problem


def verify_checkpoints(path: str | Path, complete: Complete = as_it_is) -> list[Verdict]:
    """A verdict on every checkpoint of a run, newest first, or on one file.

    Args:
        path: a checkpoint, a run folder, or its `checkpoints/`.
        complete: refuses a checkpoint for what lies beside it.

    Raises:
        CheckpointError: there is none.
    """
    path = Path(path)
    files = [path] if path.is_file() else _files(path) or [find_checkpoint(path)]
    if not path.is_file():  # copies by another name may need of the replay what no other does
        folder = files[0].parent
        files += sorted(f for f in folder.glob("*.pt") if f.is_file() and f not in files)
    verdicts = [_verdict(file, complete) for file in files]
    return [v for v in verdicts if v.sound or v.file.exists()]  # a run that goes on removes some


def _verdict(file: Path, complete: Complete) -> Verdict:
    def compared() -> tuple[Manifest, dict[str, Any]]:
        manifest = verify_file(file)
        return manifest, complete(read_file(manifest), file)

    try:
        manifest, content = as_it_stands(file, compared)
    except OtherFormatError as error:
        return Verdict(file, problem=str(error), other_version=True)
    except OutOfReachError as error:
        return Verdict(file, problem=str(error), out_of_reach=True)
    except CheckpointError as error:
        return Verdict(file, problem=str(error))
    size = sum(e.num_bytes for e in manifest.entries.values())
    steps = content.get("num_steps")
    return Verdict(file, len(manifest.entries), size, steps if type(steps) is int else None)


def verdict_lines(verdicts: list[Verdict]) -> list[str]:
    """One line per checkpoint, as `scripts/verify.py` prints them."""
    return [_line(verdict) for verdict in verdicts]


def _line(verdict: Verdict) -> str:
    if verdict.other_version:
        return f"another version  {verdict.problem}"
    if not verdict.sound:
        return f"{'not read' if verdict.out_of_reach else 'UNSOUND'}  {verdict.problem}"
    steps = "" if verdict.num_steps is None else f", {verdict.num_steps:,} steps"
    size = f"{verdict.entries} entries, {verdict.num_bytes:,} bytes"
    return f"sound    {verdict.file}  {size}{steps}"


def all_well(verdicts: list[Verdict]) -> bool:
    """Whether no checkpoint is damaged, and this version can go on from one of them."""
    damaged = any(not (v.sound or v.other_version) for v in verdicts)
    return not damaged and any(v.sound for v in verdicts)


NONE_YET = "No checkpoint was saved yet; checkpoint_every_steps=... saves some on the way."
"""What a run that ends early says where there is nothing to go on from."""


def own_checkpoints(run: RunConfig) -> bool:
    """Whether the run's own folder holds a checkpoint to go on from."""
    return bool(checkpoints_in(Path(run.run_dir, "checkpoints")))


def continuing(run: RunConfig) -> RunConfig:
    """The run as it goes on after a restart: `launch.restarts` lets its own folder come first.

    Raises:
        FolderInUseError: it would begin anew in a folder that holds another run's checkpoints.
    """
    if run.launch.restarts and own_checkpoints(run):
        return replace(run, resume=run.run_dir)
    refuse_begun(Path(run.run_dir), run.resume)
    return run
