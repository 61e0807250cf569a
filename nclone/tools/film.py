"""`evaluation.film=true`: an episode of the policy that is being trained."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from frugal_rl.report.film import save_film, small
from frugal_rl.run.watch import watch_policy
from nclone.render.export import FRAME_RATE, PALETTE
from nclone.tools.watch import Spectator

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.run.config import RunConfig

SCALE = 0.6
EVERY = 4
"""Of so many simulated frames one is drawn: 15 per second."""


def film(run: RunConfig, policy: FrugalPolicy, path: Path) -> Path:
    """The first episode of an evaluation."""
    with watch_policy(run, policy) as watch:
        shown = islice(Spectator(watch, SCALE).one_episode(), 0, None, EVERY)
        save_film(path, small(shown), FRAME_RATE / EVERY, PALETTE)
    return path
