"""What a run will hold, before it starts: `python scripts/plan.py env=nclone memory=baseline`."""

try:
    import frugal_rl.first_words  # noqa: F401
except ImportError as missing:
    raise SystemExit(f"{missing}. Use .venv/bin/python (make train), or pip install .") from None

# isort: split
from omegaconf import DictConfig

from frugal_rl.report.plan_command import Format, PlanOptions, show_plan
from frugal_rl.run.command import main
from frugal_rl.run.compose import build_run, options
from frugal_rl.run.outcome import Outcome
from frugal_rl.run.preflight import check_chosen
from frugal_rl.run.probe import probe_update


@main("plan")
def plan(cfg: DictConfig) -> Outcome:
    """Print parts, peaks, verdict, checks and ways to fit; exits 3 where the run does not fit."""
    run, asked = build_run(cfg), options(cfg, PlanOptions)
    check_chosen(run)
    if run.launch.size == 1:
        return show_plan(run, asked, probe_update)
    return plan_together(run, asked)


def plan_together(run, asked: PlanOptions) -> Outcome:
    """Plan one process of several, then what all of them hold and send."""
    from frugal_rl.report.wire import show_wire
    from frugal_rl.run.shares import share_of

    outcome = show_plan(share_of(run), asked, probe_update)
    if asked.format is Format.table and "parts" in outcome.values:
        show_wire(run, outcome.values)
    return outcome


if __name__ == "__main__":
    plan()
