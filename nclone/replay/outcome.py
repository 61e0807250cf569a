"""Replays played again: how they end, and whether that is what their file says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np

from nclone.errors import LevelError, ReplayError
from nclone.levels.files import read_level
from nclone.levels.level import Level, load_level
from nclone.replay.files import REPLAYS, read_replays
from nclone.replay.inputs import RESET, Replay
from nclone.sim import state as st
from nclone.sim.world import World

LEVELS_BESIDE = (".map", ".txt")


class End(Enum):
    """How a run ended."""

    won = "won"
    died = "died"
    alive = "alive"


@dataclass(frozen=True)
class Outcome:
    """How inputs end: after which frame, and how many frames they have."""

    end: End
    frame: int
    frames: int
    gold: int


@dataclass(frozen=True)
class Verdict:
    """One replay of a file, played again.

    `reproduced` is None where the file holds no level to play it on.
    """

    path: Path
    reproduced: bool | None
    outcome: Outcome | None
    note: str


def play_out(level: Level, replay: Replay) -> Outcome:
    """Play a replay from the level's start until it wins, dies, or has no more inputs."""
    actions = replay.actions
    world = World([level], threads=1)
    if len(actions):
        world.step(actions[:, None], frames=1, on_end=st.STOP)
    end = End.won if world.won[0] else End.died if world.dead[0] else End.alive
    return Outcome(end, int(world.frame[0]), len(actions), int(world.gold[0]))


def judge(replay: Replay, outcome: Outcome) -> tuple[bool, str]:
    """Whether an outcome is the one that was recorded, and why.

    A recording ends on the frame of its win or death. One that says it was completed must win on
    its last frame; one that says it was not must not win; where the file says nothing, it must end
    by a win, a death or a reset.
    """
    at_end = outcome.frame >= outcome.frames
    if replay.success:
        if outcome.end is not End.won:
            return False, f"says completed, but ends {outcome.end.value} at frame {outcome.frame}"
        return (at_end, "" if at_end else f"won {outcome.frames - outcome.frame} frames early")
    if replay.success is False:
        if outcome.end is End.won:
            return False, f"says not completed, but wins at frame {outcome.frame}"
        return True, ""
    reset = any(byte & RESET for byte in replay.inputs)
    if not at_end:
        return False, f"{outcome.end.value} {outcome.frames - outcome.frame} frames early"
    if outcome.end is End.alive and not reset:
        return False, "ends alive, without a reset"
    return True, ""


def verify_file(path: Path, level: Level | None = None) -> list[Verdict]:
    """The verdicts on all replays of a file; damage is a verdict too, not an exception.

    `level` is played where the file holds none, or else the level file beside it of its name.
    """
    try:
        replays, level = read_replays(path), level or level_beside(path)
        found = []
        for replay in replays:
            own = load_level(replay.map_data) if replay.map_data is not None else level
            if own is None:
                found.append(Verdict(path, None, None, "holds no level; give level=..."))
                continue
            outcome = play_out(own, replay)
            found.append(Verdict(path, *_order(judge(replay, outcome), outcome)))
        return found
    except (ReplayError, LevelError) as error:
        return [Verdict(path, False, None, str(error))]


def level_beside(path: Path) -> Level | None:
    """The level `<name>.map` or `<name>.txt` beside a replay `<name>.*`, if there is one."""
    for suffix in LEVELS_BESIDE:
        if path.with_suffix(suffix).is_file():
            return read_level(path.with_suffix(suffix))
    return None


def _order(judged: tuple[bool, str], outcome: Outcome) -> tuple[bool, Outcome, str]:
    return judged[0], outcome, judged[1]


def replay_files(path: Path) -> list[Path]:
    """The replays of a folder and of the folders in it, by name; or the one file.

    Raises:
        ReplayError: there is no such file or folder, or no replay in it.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ReplayError(f"There is no folder or file {path}.")
    files = sorted(p for p in path.rglob("*") if p.suffix in REPLAYS and p.is_file())
    if not files:
        raise ReplayError(f"The folder {path} holds no replay ({', '.join(REPLAYS)}).")
    return files


def verify_all(path: Path, level: Level | None = None) -> list[Verdict]:
    """The verdicts on all replays under a folder."""
    return [verdict for file in replay_files(path) for verdict in verify_file(file, level)]


def path_of(level: Level, actions: Sequence[int] | np.ndarray) -> np.ndarray:
    """[T + 1, 2] px: where the ninja is after 0, 1, ... frames of actions; stops at the end."""
    world = World([level], threads=1)
    places = [world.position[0].copy()]
    for action in actions:
        world.step([int(action)], frames=1)
        places.append(world.position[0].copy())
        if world.ended[0]:
            break
    return np.array(places)
