"""Compare finished runs: `python scripts/report.py runs=[runs/sweeps/...]`."""

from omegaconf import DictConfig

from frugal_rl.report.comparison import ReportOptions, write_report
from frugal_rl.run.compose import main, options


@main("report")
def report(cfg: DictConfig) -> None:
    """Write report.md and report.html."""
    for path in write_report(options(cfg, ReportOptions)):
        print(path)


if __name__ == "__main__":
    report()
