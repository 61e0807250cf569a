"""`scripts/record.py env=fighting`: do replays reproduce their end; one of them filmed or shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fighting.machine.emulator import FRAMES_PER_SECOND
from fighting.tools.pictures import Shot, packed_screen, pages, save_film
from fighting.tools.replay import CartridgeReplay, Replay, load_replay
from frugal_rl.errors import ConfigError
from frugal_rl.report.film import check_film
from frugal_rl.report.recording import RecordOptions
from frugal_rl.run.play import Window

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

OFFERED = {"verify", "replay", "video", "scale", "every"}


def record(run: RunConfig, options: RecordOptions) -> int:
    """1 where a replay does not reproduce its end; films `replay`, or shows it in a window."""
    env: Any = run.env
    rom: str | None = getattr(env, "rom", None)
    plain = RecordOptions()
    for name in vars(plain):
        if name not in OFFERED and getattr(options, name) != getattr(plain, name):
            raise ConfigError(f"{name}= is not for env={env.name}; use verify=, replay=, video=.")
    if options.verify:
        return verified(Path(options.verify), rom)
    if not options.replay:
        raise ConfigError("Type verify=FOLDER, or replay=FILE with or without video=out.gif.")
    if options.video:
        check_film(Path(options.video))
    replay = load_replay(Path(options.replay), rom)
    if options.video:
        shots = [Shot(packed_screen(screen)) for screen in _screens(replay)][:: options.every]
        save_film(Path(options.video), pages(shots), options.every)
        print(f"Film: {options.video} ({len(shots)} pictures)")
        return 0
    _show(replay, Path(options.replay).name, options.scale)
    return 0


def verified(path: Path, rom: str | None) -> int:
    """Plays one replay, or all of a folder, and compares how they end; a line for each."""
    paths = sorted(path.glob("*.replay")) if path.is_dir() else [path]
    if not paths:
        raise ConfigError(f"verify={path}: there is no .replay in that folder.")
    wrong = 0
    for one in paths:
        replay = load_replay(one, rom)
        emulator = replay.opened()
        try:
            frames = sum(1 for _ in replay.play(emulator))
            found = replay.outcome(emulator)
        finally:
            emulator.close()
        verdict = "no end was kept" if not replay.end else "ends as it did"
        if replay.end and found != replay.end:
            verdict, wrong = "ENDS OTHERWISE", wrong + 1
        print(f"{one}: {frames} frames, {verdict}")
    return int(wrong > 0)


def _screens(replay: Replay | CartridgeReplay) -> Iterator[np.ndarray]:
    emulator = replay.opened()
    try:
        for _ in replay.play(emulator, render=True):
            yield emulator.screen
    finally:
        emulator.close()


def _show(replay: Replay | CartridgeReplay, title: str, scale: float) -> None:
    window = None
    try:
        for screen in _screens(replay):
            window = window or Window(title, screen.shape, 4 * scale)
            if window.show(screen[..., :3], FRAMES_PER_SECOND).closed:
                return
    finally:
        if window is not None:
            window.close()
