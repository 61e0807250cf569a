"""Check a run's checkpoints, every byte of them: `python scripts/verify.py checkpoint=runs/...`."""

try:
    import frugal_rl.first_words  # noqa: F401
except ImportError as missing:
    raise SystemExit(f"{missing}. Use .venv/bin/python (make train), or pip install .") from None

# isort: split
from dataclasses import asdict

from omegaconf import DictConfig

from frugal_rl.doing import doing
from frugal_rl.garbage import loading_torch
from frugal_rl.run.command import main
from frugal_rl.run.compose import options
from frugal_rl.run.outcome import Outcome
from frugal_rl.run.preflight import VerifyOptions


@main("verify")
def verify(cfg: DictConfig) -> Outcome:
    """Print a line per checkpoint; exits 1 where one is damaged, or none is of this version."""
    with loading_torch():
        from frugal_rl.run.keeping import all_well, verdict_lines, verify_checkpoints
        from frugal_rl.run.replay_aside import compared
    with doing("comparing checksums"):
        verdicts = verify_checkpoints(options(cfg, VerifyOptions).checkpoint, compared)
    print("\n".join(verdict_lines(verdicts)))
    status = int(not all_well(verdicts))
    return Outcome({"checkpoints": [asdict(v) for v in verdicts]}, status=status)


if __name__ == "__main__":
    verify()
