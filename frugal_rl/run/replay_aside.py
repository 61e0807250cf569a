"""The replay of a run lies beside its checkpoints, in segments: each checkpoint names its own."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frugal_rl.errors import CheckpointError
from frugal_rl.run.manifest import read_manifest
from frugal_rl.run.segments import Segments
from frugal_rl.untrusted.printing import shown

FOLDER = "replay"
"""Where the segments lie, in the folder of the checkpoints; and the replay's place in a learner."""


def set_aside(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The content of a checkpoint with its replay saved beside it: a number in the place of it.

    Raises:
        DiskError: the segment cannot be written.
    """
    replay = _replay_of(content)
    if not isinstance(replay, list):
        return content
    saved = Segments(folder / FOLDER).save({FOLDER: replay})
    return _with_replay(content, {"segment": saved.number})


def brought_back(content: dict[str, Any], file: Path) -> dict[str, Any]:
    """The content that `set_aside` was given, of a checkpoint's file.

    Raises:
        CheckpointError: the segment is not there, or damaged.
    """
    number = _segment_of(content)
    if number is None:
        return content
    try:
        return _with_replay(content, _beside(file, number).load(number)[FOLDER])
    except (LookupError, TypeError) as error:
        raise CheckpointError(f"{shown(file)} has no replay in its segment {number}.") from error


def compared(content: dict[str, Any], file: Path) -> dict[str, Any]:
    """The content as it is, once every byte of its replay was compared; that fits any memory.

    Raises:
        CheckpointError: it is not there, or damaged.
    """
    number = _segment_of(content)
    if number is not None:
        _beside(file, number).verify(number)
    return content


def _beside(file: Path, number: int) -> Segments:
    segments = Segments(file.parent / FOLDER)
    if number not in segments.numbers():
        raise CheckpointError(
            f"{shown(file)} continues with the replay in {shown(segments.path(number))}, which is "
            f"not there: copy the folder {FOLDER}/ together with the checkpoint."
        )
    return segments


@dataclass
class Unread:
    """Checkpoints in a folder that cannot be read, and what they may need of the replay beside.

    That is any segment which was there when they were first met; later ones they cannot know.
    """

    newest: dict[Path, int] = field(default_factory=dict)
    """By file, the newest segment of that moment."""

    def met(self, file: Path, newest: int, error: CheckpointError) -> None:
        """Note a file; the first time in words."""
        if file not in self.newest:
            self.newest[file] = newest
            warnings.warn(
                f"{error} The replay beside it keeps all that it may need; remove {shown(file)} "
                "to have that disk back.",
                stacklevel=4,
            )


def forget_unused(folder: Path, unread: Unread) -> None:
    """Remove the segments that no checkpoint in the folder needs, or may need.

    Args:
        folder: of the checkpoints.
        unread: remembers those that cannot be read, from save to save.
    """
    if not (folder / FOLDER).is_dir():
        return
    segments, named = Segments(folder / FOLDER), []
    newest = max(segments.numbers(), default=0)
    files = [file for file in folder.glob("*.pt") if file.is_file()]
    for file in files:
        try:
            named.append(_segment_of(read_manifest(file).values))
        except CheckpointError as error:
            unread.met(file, newest, error)
    all_to = max((n for file, n in unread.newest.items() if file in files), default=0)
    segments.keep([n for n in named if n is not None], all_to)


def _replay_of(content: Any) -> Any:
    for name in ("learner", "collector", FOLDER):
        content = content.get(name) if isinstance(content, Mapping) else None
    return content


def _segment_of(content: Any) -> int | None:
    replay = _replay_of(content)
    number = replay.get("segment") if isinstance(replay, Mapping) else None
    return number if type(number) is int else None


def _with_replay(content: dict[str, Any], replay: Any) -> dict[str, Any]:
    learner = content["learner"]
    collector = {**learner["collector"], FOLDER: replay}
    return {**content, "learner": {**learner, "collector": collector}}
