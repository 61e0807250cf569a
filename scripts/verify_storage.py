"""Check every representation of every field: `python scripts/verify_storage.py env=nclone`."""

import sys

from omegaconf import DictConfig

from frugal_rl.report.storage import StorageOptions, storage_table, verify_storage
from frugal_rl.report.terminal import show
from frugal_rl.run.compose import build_run, main, options


@main("verify_storage")
def verify(cfg: DictConfig) -> None:
    """Print what each representation stores and how far it is off; exits 1 where one is wrong."""
    checks = verify_storage(build_run(cfg), options(cfg, StorageOptions))
    show(storage_table(checks))
    sys.exit(0 if all(c.passed for c in checks) else 1)


if __name__ == "__main__":
    verify()
