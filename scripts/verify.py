"""Check a run's checkpoints, every byte of them: `python scripts/verify.py checkpoint=runs/...`."""

import sys

from omegaconf import DictConfig

from frugal_rl.run.compose import main, options
from frugal_rl.run.keeping import VerifyOptions, verdict_lines, verify_checkpoints


@main("verify")
def verify(cfg: DictConfig) -> None:
    """Print a line per checkpoint; exits 1 where one is not sound."""
    verdicts = verify_checkpoints(options(cfg, VerifyOptions).checkpoint)
    print("\n".join(verdict_lines(verdicts)))
    sys.exit(1 if any(v.problem for v in verdicts) else 0)


if __name__ == "__main__":
    verify()
