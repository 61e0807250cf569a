"""What repeats in an environment: `python scripts/study.py env=gymnasium env.id=CartPole-v1`."""

try:
    import frugal_rl.first_words  # noqa: F401
except ImportError as missing:
    raise SystemExit(f"{missing}. Use .venv/bin/python (make train), or pip install .") from None

# isort: split
from dataclasses import asdict
from pathlib import Path

from omegaconf import DictConfig

from frugal_rl.report.study import StudyOptions, show_study
from frugal_rl.run.command import main
from frugal_rl.run.compose import build_run, options
from frugal_rl.run.outcome import Outcome
from frugal_rl.store.found.study import study


@main("study")
def find(cfg: DictConfig) -> Outcome:
    """Play at random, print what repeats field by field, write it to a file for env.spec."""
    chosen = options(cfg, StudyOptions)
    found = study(build_run(cfg).env.make(), chosen.steps)
    show_study(found)
    files = [Path(chosen.write)] if chosen.write else []
    for file in files:
        found.write(file)
    return Outcome({"fields": [asdict(field) for field in found.fields]}, files)


if __name__ == "__main__":
    find()
