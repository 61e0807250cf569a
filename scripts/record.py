"""Replays: verify, film, convert, collect: `python scripts/record.py env=nclone verify=replays`."""

from omegaconf import DictConfig

from frugal_rl.report.recording import RecordOptions
from frugal_rl.run.command import main
from frugal_rl.run.compose import build_run, options
from frugal_rl.run.outcome import Outcome
from frugal_rl.run.tools import needed


@main("record")
def record(cfg: DictConfig) -> Outcome:
    """Exit with 1 where a replay does not reproduce its outcome."""
    run = build_run(cfg)
    tool = needed(run.env, "record", "env=nclone keeps replays.")
    status = tool(run, options(cfg, RecordOptions))
    return Outcome({"reproduced": status == 0}, status=status)


if __name__ == "__main__":
    record()
