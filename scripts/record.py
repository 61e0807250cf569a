"""Replays: verify, film, convert, collect: `python scripts/record.py env=nclone verify=replays`."""

try:
    import frugal_rl.first_words  # noqa: F401
except ImportError as missing:
    raise SystemExit(f"{missing}. Use .venv/bin/python (make train), or pip install .") from None

# isort: split
from omegaconf import DictConfig

from frugal_rl.errors import ConfigError
from frugal_rl.garbage import loading_torch
from frugal_rl.report.recording import RecordOptions
from frugal_rl.run.command import main
from frugal_rl.run.compose import build_run, options
from frugal_rl.run.config import RunConfig
from frugal_rl.run.outcome import Outcome
from frugal_rl.run.tools import needed


@main("record")
def record(cfg: DictConfig) -> Outcome:
    """Exit with 1 where a replay does not reproduce its outcome."""
    run, asked = build_run(cfg), options(cfg, RecordOptions)
    if asked.checkpoint:
        return Outcome({"dataset": asked.dataset, "told": of_policy(run, asked)})
    status = needed(run.env, "record", "env=nclone keeps replays.")(run, asked)
    return Outcome({"reproduced": status == 0}, status=status)


def of_policy(run: RunConfig, asked: RecordOptions) -> str:
    """Write the episodes of a policy as a Minari data set."""
    if not asked.dataset or asked.episodes < 1:
        raise ConfigError("checkpoint=RUN needs dataset=FOLDER, and episodes of 1 or more.")
    with loading_torch():
        from frugal_rl.run.export import export_policy
    told = export_policy(asked.checkpoint, asked.dataset, asked.episodes, run)
    print(told)
    return told


if __name__ == "__main__":
    record()
