"""Replays of any environment: the options of `scripts/record.py`.

An environment that keeps replays offers `record(run, options)`, which returns the exit status.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RecordOptions:
    """The options of `scripts/record.py` beside those of a run; empty ones are not asked for."""

    verify: str = ""
    """Folder or file: do the replays reproduce their outcome?"""
    replay: str = ""
    """One replay, to film, picture or convert."""
    level: str = ""
    """The level of a replay that holds none: a bundled name or a file."""
    video: str = ""
    """Film of `replay`, .mp4 or .gif."""
    picture: str = ""
    """PNG of the path of `replay` over the level; of `level` alone without a replay."""
    convert: str = ""
    """A level or replay file to write in the format of `to`."""
    to: str = ""
    """The converted file; its suffix chooses the format."""
    dataset: str = ""
    """.npz, or a folder for a Minari data set: what is observed and done in `source`."""
    source: str = ""
    """Replays of the dataset, a folder or a file; empty takes the solutions of env.levels."""
    checkpoint: str = ""
    """Run folder of a policy whose episodes `dataset` is to hold; any environment."""
    episodes: int = 20
    """How many of them."""
    solve: str = ""
    """Levels to win by search: a name, a level file, or a folder of level files."""
    solved: str = "solved"
    """Folder of the replays that `solve` writes."""
    budget_frames: int = 400_000
    """Frames that the search may simulate per level."""
    skip_unreadable: bool = False
    """Leave out files of the folder that are no level, instead of refusing all."""
    scale: float = 1.0
    """Size of pictures."""
    every: int = 1
    """Film only every so many frames; the film keeps its speed."""
