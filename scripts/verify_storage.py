"""Check every representation of every field: `python scripts/verify_storage.py env=nclone`."""

try:
    import frugal_rl.first_words  # noqa: F401
except ImportError as missing:
    raise SystemExit(f"{missing}. Use .venv/bin/python (make train), or pip install .") from None

# isort: split
from dataclasses import asdict

from omegaconf import DictConfig

from frugal_rl.report.storage import StorageOptions, storage_table, verify_storage
from frugal_rl.report.terminal import show
from frugal_rl.run.command import main
from frugal_rl.run.compose import build_run, options
from frugal_rl.run.outcome import Outcome


@main("verify_storage")
def verify(cfg: DictConfig) -> Outcome:
    """Print what each representation stores and how far it is off; exits 1 where one is wrong."""
    checks = verify_storage(build_run(cfg), options(cfg, StorageOptions))
    show(storage_table(checks))
    passed = all(c.passed for c in checks)
    return Outcome({"checks": [asdict(c) for c in checks]}, status=int(not passed))


if __name__ == "__main__":
    verify()
