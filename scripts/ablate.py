"""Each saving alone: `python scripts/ablate.py env=nclone base=baseline algo.total_steps=65536`."""

try:
    import frugal_rl.first_words  # noqa: F401
except ImportError as missing:
    raise SystemExit(f"{missing}. Use .venv/bin/python (make train), or pip install .") from None

# isort: split
from omegaconf import DictConfig

from frugal_rl.report.ablation import AblationOptions, ablate
from frugal_rl.run.command import main
from frugal_rl.run.compose import build_run, options
from frugal_rl.run.digest import parameter_digest
from frugal_rl.run.outcome import Outcome


@main("ablate")
def run_ablation(cfg: DictConfig) -> Outcome:
    """Write the table "optimisation | label | bytes | peaks | speed | learning unchanged?"."""
    paths = ablate(build_run(cfg), options(cfg, AblationOptions), parameter_digest)
    for path in paths:
        print(path)
    return Outcome(files=paths)


if __name__ == "__main__":
    run_ablation()
