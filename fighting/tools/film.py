"""`evaluation.film=true`: a fight of the policy that is being trained."""

from __future__ import annotations

from pathlib import Path

from fighting.config import DuelConfig
from fighting.tools.pictures import save_film
from fighting.tools.watch import fight
from frugal_rl.learn.policy import FrugalPolicy
from frugal_rl.run.config import RunConfig


def film(run: RunConfig, policy: FrugalPolicy, path: Path) -> Path:
    """The first fight of an evaluation, against the highest level that it meets."""
    config = run.env
    assert isinstance(config, DuelConfig)
    level = max(config.eval_levels or config.levels)
    shots = list(fight(run, policy, level, run.evaluation.seed))
    return save_film(path, shots, config.frame_skip)
