"""Watch an environment's memory: `python scripts/profile_memory.py env=nclone frames=1000`."""

from pathlib import Path

from omegaconf import DictConfig

from frugal_rl.report.snapshots import SnapshotOptions, profile_memory, report, write_profile
from frugal_rl.run.compose import build_run, main, options


@main("profile_memory")
def profile(cfg: DictConfig) -> None:
    """Write memory_profiling_report.txt and profiling_stats.txt; print the first."""
    run, wanted = build_run(cfg), options(cfg, SnapshotOptions)
    seen = profile_memory(run, wanted)
    print(report(run, seen).markdown(Path(wanted.out)))
    for path in write_profile(run, wanted, seen):
        print(path)


if __name__ == "__main__":
    profile()
