"""Replays: verify, film, convert, collect: `python scripts/record.py env=nclone verify=replays`."""

import sys

from omegaconf import DictConfig

from frugal_rl.config import build_run, main, options
from frugal_rl.errors import ConfigError
from frugal_rl.report.recording import RecordOptions


@main("record")
def record(cfg: DictConfig) -> None:
    """Exit with 1 where a replay does not reproduce its outcome."""
    run = build_run(cfg)
    if not hasattr(run.env, "record"):
        raise ConfigError(f"env={run.env.name} keeps no replays; env=nclone does.")
    sys.exit(run.env.record(run, options(cfg, RecordOptions)))


if __name__ == "__main__":
    record()
