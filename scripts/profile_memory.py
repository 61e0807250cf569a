"""Watch an environment's memory: `python scripts/profile_memory.py env=nclone frames=1000`."""

try:
    import frugal_rl.first_words  # noqa: F401
except ImportError as missing:
    raise SystemExit(f"{missing}. Use .venv/bin/python (make train), or pip install .") from None

# isort: split
from pathlib import Path

from omegaconf import DictConfig

from frugal_rl.report.snapshots import (
    SnapshotOptions,
    profile_memory,
    report,
    verdicts,
    write_profile,
)
from frugal_rl.run.command import main
from frugal_rl.run.compose import build_run, options
from frugal_rl.run.outcome import Outcome


@main("profile_memory")
def profile(cfg: DictConfig) -> Outcome:
    """Write memory_profiling_report.txt and profiling_stats.txt; print the first."""
    run, wanted = build_run(cfg), options(cfg, SnapshotOptions)
    seen = profile_memory(run, wanted)
    print(report(run, seen).markdown(Path(wanted.out)))
    paths = write_profile(run, wanted, seen)
    for path in paths:
        print(path)
    return Outcome({"leaks": [v.name for v in verdicts(seen.snapshots) if v.leaks]}, paths)


if __name__ == "__main__":
    profile()
