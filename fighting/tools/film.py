"""`evaluation.film=true`: an episode of the policy that is being trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fighting.tools.pictures import save_film
from fighting.tools.watch import levels_of, shots_of

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.run.config import RunConfig


def film(run: RunConfig, policy: FrugalPolicy, path: Path) -> Path:
    """The first episode of an evaluation, of Duel against the highest level that it meets."""
    env: Any = run.env
    level = max(levels_of(run), default=0)
    return save_film(path, list(shots_of(run, policy, level, run.evaluation.seed)), env.frame_skip)
