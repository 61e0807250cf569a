"""Compare finished runs: `python scripts/report.py runs=[runs/sweeps/...]`."""

from omegaconf import DictConfig

from frugal_rl.report.comparison import ReportOptions, write_report
from frugal_rl.run.command import main
from frugal_rl.run.compose import options
from frugal_rl.run.outcome import Outcome


@main("report")
def report(cfg: DictConfig) -> Outcome:
    """Write report.md and report.html."""
    paths = write_report(options(cfg, ReportOptions))
    for path in paths:
        print(path)
    return Outcome(files=paths)


if __name__ == "__main__":
    report()
