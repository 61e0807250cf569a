"""Replay files by their suffix: one reader and one writer for all formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nclone.errors import ReplayError
from nclone.files import write_whole
from nclone.replay.attract import read_attract, write_attract
from nclone.replay.compact import read_compact, write_compact
from nclone.replay.downloaded import Download, read_downloaded, write_downloaded
from nclone.replay.inputs import MAX_FRAMES, Replay, read_bytes

COMPACT, ATTRACT, DOWNLOAD, INPUTS = ".replay", ".attract", ".download", ".inputs"
REPLAYS = (COMPACT, ATTRACT, DOWNLOAD, INPUTS)
"""Compact and attract files hold their level, downloads and bare inputs do not."""


def read_replays(path: Path) -> list[Replay]:
    """The replays in a file: one, or the levels of a downloaded episode.

    Raises:
        ReplayError: the suffix names no format, or the file is damaged.
    """
    if path.suffix == COMPACT:
        return [read_compact(path)]
    if path.suffix == ATTRACT:
        return [read_attract(path)]
    if path.suffix == DOWNLOAD:
        return list(read_downloaded(path).levels)
    if path.suffix == INPUTS:
        return [_bare(path)]
    raise ReplayError(f"{path} ends in '{path.suffix}'; replays end in {', '.join(REPLAYS)}.")


def read_replay(path: Path) -> Replay:
    """The only replay of a file."""
    found = read_replays(path)
    if len(found) != 1:
        raise ReplayError(
            f"{path} holds {len(found)} levels of an episode; this needs a replay of one level."
        )
    return found[0]


def write_replays(path: Path, replays: Sequence[Replay]) -> None:
    """Write replays in the format that the suffix names, whole or not at all.

    Raises:
        ReplayError: the suffix names no format, or the format cannot hold what is given.
    """
    if path.suffix == DOWNLOAD:
        number = replays[0].level_id if replays else 0
        write_whole(path, write_downloaded(Download(0, number, 0, tuple(replays))))
        return
    if len(replays) != 1:
        raise ReplayError(f"{path} holds one replay, not {len(replays)}; use {DOWNLOAD}.")
    if path.suffix == COMPACT:
        write_whole(path, write_compact(replays[0]))
    elif path.suffix == ATTRACT:
        write_whole(path, write_attract(replays[0]))
    elif path.suffix == INPUTS:
        write_whole(path, replays[0].inputs)
    else:
        raise ReplayError(f"{path} ends in '{path.suffix}'; replays end in {', '.join(REPLAYS)}.")


def with_level(replay: Replay, map_data: bytes | None) -> Replay:
    """The replay with a level, where it holds none of its own."""
    return replay if replay.map_data is not None else replace(replay, map_data=map_data)


def _bare(path: Path) -> Replay:
    data, name = read_bytes(path)
    if len(data) > MAX_FRAMES:
        raise ReplayError(f"{name} has {len(data)} bytes, more than {MAX_FRAMES} frames.")
    wrong = [at for at, byte in enumerate(data) if byte > 15]
    if wrong:
        raise ReplayError(
            f"Byte {wrong[0]} of {name} is {data[wrong[0]]}; an input uses bits 0 to 3. Is it a "
            "file of bare inputs?"
        )
    return Replay(data)
