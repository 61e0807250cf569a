"""Replays: verify, film, convert, collect: `python scripts/record.py env=nclone verify=replays`."""

import sys

from omegaconf import DictConfig

from frugal_rl.errors import ConfigError
from frugal_rl.report.recording import RecordOptions
from frugal_rl.run.compose import build_run, main, options


@main("record")
def record(cfg: DictConfig) -> None:
    """Exit with 1 where a replay does not reproduce its outcome."""
    run = build_run(cfg)
    if not hasattr(run.env, "record"):
        raise ConfigError(f"env={run.env.name} keeps no replays; env=nclone does.")
    sys.exit(run.env.record(run, options(cfg, RecordOptions)))


if __name__ == "__main__":
    record()
