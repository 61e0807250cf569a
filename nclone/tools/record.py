"""What `scripts/record.py env=nclone` does with replays and level files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from rich.table import Table

from frugal_rl.errors import ConfigError
from frugal_rl.report.terminal import open_console
from nclone.errors import LevelError, ReplayError
from nclone.levels.files import read_level, write_level
from nclone.levels.level import Level, load_level
from nclone.levels.sources import open_levels, winning_actions
from nclone.render.export import film_run, picture_path
from nclone.replay.dataset import Demonstration, collect, save_dataset
from nclone.replay.episodes import write_demonstrations
from nclone.replay.files import REPLAYS, read_replay, read_replays, with_level, write_replays
from nclone.replay.outcome import Verdict, level_beside, replay_files, verify_all
from nclone.tools.solving import solve_levels

if TYPE_CHECKING:
    from frugal_rl.report.recording import RecordOptions
    from frugal_rl.run.config import RunConfig
    from nclone.config import NppConfig


def record(run: RunConfig, options: RecordOptions) -> int:
    """Do everything that was asked for; 1 where a replay does not reproduce its outcome."""
    console, status, done = open_console(), 0, False
    level = _named_level(options.level) if options.level else None
    if options.verify:
        verdicts = verify_all(Path(options.verify), level)
        console.print(verdict_table(verdicts, Path(options.verify)))
        console.print(verdict_line(verdicts))
        status, done = int(any(v.reproduced is False for v in verdicts)), True
    if options.convert or options.to:
        console.print(convert(options.convert, options.to, level))
        done = True
    if options.dataset:
        console.print(write_dataset(cast("NppConfig", run.env), options, level))
        done = True
    if options.solve:
        status = max(status, solve_levels(options, console))
        done = True
    if options.video or options.picture:
        for line in draw(options, level):
            console.print(line)
        done = True
    if not done:
        raise ConfigError(
            "Nothing was asked for; add verify=FOLDER, replay=FILE with video= or picture=, "
            "convert=FILE to=FILE, solve=LEVELS, or dataset=FILE."
        )
    return status


def verdict_table(verdicts: list[Verdict], folder: Path) -> Table:
    """File | reproduced | end | frame | of | gold | note; files as seen from the folder."""
    table = Table()
    for name in ("file", "reproduced", "end", "frame", "of", "gold", "note"):
        numeric = name in ("frame", "of", "gold")
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    words = {True: "yes", False: "no", None: "not played"}
    for v in verdicts:
        o = v.outcome
        numbers = (o.end.value, f"{o.frame:,}", f"{o.frames:,}", str(o.gold)) if o else ("",) * 4
        name = v.path.relative_to(folder) if v.path != folder else v.path.name
        table.add_row(str(name), words[v.reproduced], *numbers, v.note)
    return table


def verdict_line(verdicts: list[Verdict]) -> str:
    """How many replays reproduce their outcome, in one line."""
    played = [v for v in verdicts if v.reproduced is not None]
    good = sum(v.reproduced is True for v in played)
    rest = len(verdicts) - len(played)
    share = f" ({good / len(played):.1%})" if played else ""
    return f"{good} of {len(played)} replays reproduce their outcome{share}" + (
        f"; {rest} hold no level and were not played." if rest else "."
    )


def convert(source: str, target: str, level: Level | None) -> str:
    """Write a level or replay file in the format that the target's suffix names.

    A replay becomes a level file when the target is one: the level it was played on.
    """
    if not source or not target:
        raise ConfigError("A conversion needs both convert=FILE and to=FILE.")
    old, new = Path(source), Path(target)
    if new.suffix not in REPLAYS:
        write_level(new, read_level(old))
        return f"Level: {new}"
    if old.suffix not in REPLAYS:
        raise ReplayError(f"{old} is no replay ({', '.join(REPLAYS)}), so it cannot become {new}.")
    own = (level or level_beside(old)) if new.suffix in REPLAYS[:2] else None
    replays = [with_level(r, own.map_data if own else None) for r in read_replays(old)]
    write_replays(new, replays)
    return f"Replay: {new} ({sum(len(r.inputs) for r in replays):,} frames)"


def draw(options: RecordOptions, level: Level | None) -> list[str]:
    """Film a replay, or paint its path over the level; a level alone gives its picture."""
    if options.replay:
        path = Path(options.replay)
        replay = read_replay(path)
        own = load_level(replay.map_data, path) if replay.map_data else level or level_beside(path)
        actions = replay.actions
    else:
        own, actions = level, np.zeros(0, np.uint8)
        if own is None or options.video:
            raise ConfigError("A film needs replay=FILE, a picture replay=FILE or level=NAME.")
    if own is None:
        raise LevelError(f"{options.replay} holds no level; name it by level=FILE.")
    lines = []
    if options.video:
        film = Path(options.video)
        count = film_run(film, own, actions, options.scale, options.every, show=True)
        lines.append(f"Film: {film} ({count} pictures)")
    if options.picture:
        picture_path(Path(options.picture), own, actions, options.scale)
        lines.append(f"Picture: {options.picture}")
    return lines


def write_dataset(config: NppConfig, options: RecordOptions, level: Level | None) -> str:
    """Observations and actions as one file or a Minari folder; a line that says how many."""
    if options.source:
        demonstrations = _from_replays(Path(options.source), level)
    else:
        demonstrations = _from_solutions(config)
    path = Path(options.dataset)
    if path.suffix != ".npz":
        return write_demonstrations(config, demonstrations, path)
    data = collect(config, demonstrations)
    save_dataset(path, data)
    won = int(data.arrays["won"].sum())
    return (
        f"Dataset: {path} ({len(data):,} samples of {len(demonstrations)} episodes, {won} won, "
        f"{path.stat().st_size:,} bytes)"
    )


def _from_replays(folder: Path, level: Level | None) -> list[Demonstration]:
    found = []
    for file in replay_files(folder):
        for number, replay in enumerate(read_replays(file)):
            own = (
                load_level(replay.map_data, file)
                if replay.map_data
                else level or level_beside(file)
            )
            if own is None:
                raise LevelError(f"{file} holds no level; name it by level=FILE.")
            name = file.stem if number == 0 else f"{file.stem} {number + 1}"
            found.append(Demonstration(name, own, replay.actions))
    return found


def _from_solutions(config: NppConfig) -> list[Demonstration]:
    found = []
    for name in config.levels:
        known = winning_actions(name)
        if known is None:
            raise ReplayError(f"env.levels names '{name}', which has no stored solution.")
        levels = open_levels([name])
        found += [Demonstration(at.name, at, a) for at, a in zip(levels, known, strict=True)]
    return found


def _named_level(name: str) -> Level:
    levels = open_levels([name])
    if len(levels) != 1:
        raise ConfigError(f"level={name} names {len(levels)} levels; name one.")
    return levels[0]
