"""Replays: verify, film, convert, collect: `python scripts/record.py env=nclone verify=replays`."""

import sys

from omegaconf import DictConfig

from frugal_rl.report.recording import RecordOptions
from frugal_rl.run.compose import build_run, main, options
from frugal_rl.run.tools import needed


@main("record")
def record(cfg: DictConfig) -> None:
    """Exit with 1 where a replay does not reproduce its outcome."""
    run = build_run(cfg)
    tool = needed(run.env, "record", "env=nclone keeps replays.")
    sys.exit(tool(run, options(cfg, RecordOptions)))


if __name__ == "__main__":
    record()
