"""Watch an environment's memory: `python scripts/profile_memory.py env=nclone`."""

from pathlib import Path

from omegaconf import DictConfig

from frugal_rl.config import build_run, main, options
from frugal_rl.report.snapshots import SnapshotOptions, snapshot_document, take_snapshots


@main("profile_memory")
def profile(cfg: DictConfig) -> None:
    """Write snapshots, parts, allocating lines and the leak verdict."""
    run, wanted = build_run(cfg), options(cfg, SnapshotOptions)
    document = snapshot_document(run, take_snapshots(run, wanted))
    print(document.markdown(Path(wanted.out)))
    for path in document.write(Path(wanted.out), "memory_profile"):
        print(path)


if __name__ == "__main__":
    profile()
