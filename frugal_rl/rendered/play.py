"""`scripts/play.py env=gymnasium`: a policy in a window or in a film; nobody plays by hand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.rendered.showing import Showing, showing
from frugal_rl.report.film import check_film, save_thinned
from frugal_rl.run.play import PlayOptions, Window
from frugal_rl.run.saved import open_saved
from frugal_rl.vec_env.registered import Registered

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

UNUSED = ("solver", "report", "record", "crop", "probe", "replay", "marks")
"""Options of `scripts/play.py` that change nothing here."""
ENDLESS = 1 << 62


def play(run: RunConfig, options: PlayOptions) -> Iterator[str]:
    """Show a checkpoint at play, or film it without a window; yields a line per written file.

    Raises:
        ConfigError: no checkpoint, one of another kind of environment, or nothing is drawn.
    """
    options.without(run.env.name, *UNUSED)
    if not options.checkpoint:
        raise ConfigError("env=gymnasium is played by a policy: name it by checkpoint=RUN.")
    if options.video:
        check_film(Path(options.video))
    with open_saved(options.checkpoint, run, single=True) as saved:
        if not isinstance(saved.run.env, Registered):
            raise ConfigError(
                f"The checkpoint was trained on env={saved.run.env.name}; play that one."
            )
        with showing(saved.run, saved.policy, options.deterministic) as episodes:
            yield from _shown(episodes, options)
            yield _told(episodes.returns)


def _shown(episodes: Showing, options: PlayOptions) -> Iterator[str]:
    count = options.episodes or (1 if options.video else ENDLESS)
    pictures = (picture for _ in range(count) for picture in episodes.one())
    limited = islice(pictures, options.frames or None)
    if options.video:
        written = save_thinned(Path(options.video), limited, options.every, episodes.rate)
        yield f"Film: {options.video} ({written} pictures)"
    else:
        _in_window(limited, episodes.rate, options.scale)


def _in_window(pictures: Iterator[np.ndarray], rate: float, scale: float) -> None:
    first = next(pictures)
    window = Window("A policy at play (Esc leaves)", first.shape, scale)
    try:
        picture: np.ndarray | None = first
        while picture is not None and not window.show(picture, rate).closed:
            picture = next(pictures, None)
    finally:
        window.close()


def _told(returns: list[float]) -> str:
    if not returns:
        return "No episode has ended."
    return f"Episodes: {len(returns)}, mean return {np.mean(returns):.4g}."
