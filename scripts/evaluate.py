"""Try a trained policy out: `python scripts/evaluate.py checkpoint=runs/...`."""

import frugal_rl.first_words  # noqa: F401

# isort: split
from omegaconf import DictConfig

from frugal_rl.doing import doing
from frugal_rl.run.command import main
from frugal_rl.run.compose import build_run, plain
from frugal_rl.run.outcome import Outcome


@main("evaluate")
def evaluate(cfg: DictConfig) -> Outcome:
    """Play the fixed evaluation seeds, random play beside them; or a tournament."""
    with doing("loading torch"):
        from frugal_rl.run.session import contest, evaluate_saved
    run = build_run(cfg)
    if cfg.tournament:
        return Outcome({"table": contest(plain(cfg)["checkpoint"], run)}, [run.run_dir])
    results = evaluate_saved(str(cfg.checkpoint), run)
    values = {player: result.metrics("eval") for player, result in results.items()}
    return Outcome({"checkpoint": str(cfg.checkpoint), **values}, [run.run_dir])


if __name__ == "__main__":
    evaluate()
