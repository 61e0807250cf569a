"""`evaluation.film=true`: an episode of the policy that is being trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from frugal_rl.rendered.showing import showing
from frugal_rl.report.film import save_film, small

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.run.config import RunConfig


def film(run: RunConfig, policy: FrugalPolicy, path: Path) -> Path:
    """The first episode of an evaluation."""
    with showing(run, policy, run.evaluation.deterministic) as episodes:
        save_film(path, small(episodes.one()), episodes.rate)
    return path
