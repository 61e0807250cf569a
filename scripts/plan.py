"""What a run will hold, before it starts: `python scripts/plan.py env=nclone memory=baseline`."""

from omegaconf import DictConfig

from frugal_rl.report.plan_command import PlanOptions, show_plan
from frugal_rl.run.command import main
from frugal_rl.run.compose import build_run, options
from frugal_rl.run.outcome import Outcome
from frugal_rl.run.probe import probe_update


@main("plan")
def plan(cfg: DictConfig) -> Outcome:
    """Print parts, peaks, verdict, checks and ways to fit; exits 3 where the run does not fit."""
    return show_plan(build_run(cfg), options(cfg, PlanOptions), probe_update)


if __name__ == "__main__":
    plan()
