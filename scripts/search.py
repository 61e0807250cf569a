"""Search settings: `python scripts/search.py env=toy "space=['algo.n_epochs=range(1,9)']"`."""

try:
    import frugal_rl.first_words  # noqa: F401
except ImportError as missing:
    raise SystemExit(f"{missing}. Use .venv/bin/python (make train), or pip install .") from None

# isort: split
from omegaconf import DictConfig

from frugal_rl.run.command import main
from frugal_rl.run.compose import build_run, options
from frugal_rl.run.outcome import Outcome


@main("search")
def run_search(cfg: DictConfig) -> Outcome:
    """Run the trials that are missing; write the front of return against memory."""
    from frugal_rl.report.search import SearchOptions, search  # optuna, an extra

    outcome = search(build_run(cfg), options(cfg, SearchOptions))
    for path in outcome.files:
        print(path)
    return outcome


if __name__ == "__main__":
    run_search()
