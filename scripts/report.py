"""Compare finished runs: `python scripts/report.py runs=[runs/sweeps/...]`."""

try:
    import frugal_rl.first_words  # noqa: F401
except ImportError as missing:
    raise SystemExit(f"{missing}. Use .venv/bin/python (make train), or pip install .") from None

# isort: split
from omegaconf import DictConfig

from frugal_rl.report.comparison import ReportOptions, write_report
from frugal_rl.report.live import follow
from frugal_rl.run.command import main
from frugal_rl.run.compose import options
from frugal_rl.run.outcome import Outcome


@main("report")
def report(cfg: DictConfig) -> Outcome:
    """Write report.md and report.html, or follow one run on a page."""
    wanted = options(cfg, ReportOptions)
    if wanted.live:
        follow(wanted.live, wanted.port)
        return Outcome({"live": wanted.live})
    paths = write_report(wanted)
    for path in paths:
        print(path)
    return Outcome(files=paths)


if __name__ == "__main__":
    report()
