"""A page on how a policy fares on every level of a collection: won or not, time, film, replay."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from frugal_rl.run.evaluate import wilson
from nclone.files import file_stem, write_whole
from nclone.render.export import FRAME_RATE, save_thinned

if TYPE_CHECKING:
    from frugal_rl.run.play import PlayOptions
    from nclone.tools.watch import Spectator

EVERY = 3
"""Films of a report show every third frame, unless `every` says more."""


@dataclass(frozen=True)
class Line:
    """One level's episode; `film` and `replay` are names of files beside the page."""

    level: str
    won: bool
    end: str
    seconds: float
    film: str
    replay: str


def write_report(spectator: Spectator, options: PlayOptions) -> Iterator[str]:
    """Play every level once, film it, and write `index.html` and `levels.json`; names the files."""
    folder = Path(options.report)
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number in range(len(spectator.game.levels.playlist)):
        lines.append(_played(spectator, folder, number, max(EVERY, options.every)))
        line = lines[-1]
        yield f"{line.level}: {line.end} after {line.seconds:.1f} s"
    write_whole(folder / "index.html", page(lines).encode())
    write_whole(folder / "levels.json", json.dumps([asdict(li) for li in lines], indent=1).encode())
    yield f"Report: {folder / 'index.html'}"


def _played(spectator: Spectator, folder: Path, number: int, every: int) -> Line:
    level = spectator.game.level_table.level[int(spectator.game.world.level[0])]
    film = f"{number + 1:04d}_{file_stem(level.name)}.mp4"
    save_thinned(folder / film, spectator.one_episode(), every)
    world = spectator.world
    won = bool(world.won[0])
    end = "won" if won else "died" if world.dead[0] else "out of time"
    replay = spectator.written[-1].name if spectator.written else ""
    return Line(level.name, won, end, int(world.frame[0]) / FRAME_RATE, film, replay)


def page(lines: Sequence[Line]) -> str:
    """The page: how many were won, then a row per level."""
    won = sum(line.won for line in lines)
    low, high = wilson(won, len(lines))
    rows = "\n".join(
        f"<tr><td>{escape(line.level)}</td><td class={line.end.split()[0]}>{line.end}</td>"
        f"<td>{line.seconds:.1f}</td><td><a href='{line.film}'>film</a></td>"
        f"<td>{_link(line.replay)}</td></tr>"
        for line in lines
    )
    return (
        "<!doctype html><meta charset=utf-8><title>Levels</title><style>body{font:16px sans-serif;"
        "margin:2em}td,th{padding:.2em 1em;text-align:left}.won{color:#076}</style>"
        f"<h1>{won} of {len(lines)} levels won</h1><p>{won / max(1, len(lines)):.1%}, 95 % interval"
        f" {low:.1%} to {high:.1%}</p><table><tr><th>level<th>end<th>seconds<th>film<th>replay</tr>"
        f"{rows}</table>\n"
    )


def _link(replay: str) -> str:
    return f"<a href='{replay}'>replay</a>" if replay else ""
