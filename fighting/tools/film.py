"""`evaluation.film=true`: an episode of the policy that is being trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fighting.config import DuelConfig
from fighting.tools.pictures import pages, save_film
from fighting.tools.spectator import CARTRIDGE, DUEL
from frugal_rl.report.film import small

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.run.config import RunConfig


def film(run: RunConfig, policy: FrugalPolicy, path: Path) -> Path:
    """The first episode of an evaluation, of Duel against the highest level that it meets."""
    env: Any = run.env
    shown = DUEL if isinstance(env, DuelConfig) else CARTRIDGE
    level = max(shown.levels(run, False), default=0)
    shots = shown.shots(run, policy, level, run.evaluation.seed)
    return save_film(path, small(pages(shots)), env.frame_skip)
