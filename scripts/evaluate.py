"""Try a trained policy out: `python scripts/evaluate.py checkpoint=runs/...`."""

try:
    import frugal_rl.first_words  # noqa: F401
except ImportError as missing:
    raise SystemExit(f"{missing}. Use .venv/bin/python (make train), or pip install .") from None

# isort: split
from omegaconf import DictConfig

from frugal_rl.errors import ConfigError
from frugal_rl.garbage import loading_torch
from frugal_rl.run.command import main
from frugal_rl.run.compose import build_run, options
from frugal_rl.run.outcome import Outcome
from frugal_rl.run.tools import OPPONENTS, EvaluateOptions, must_offer


@main("evaluate")
def evaluate(cfg: DictConfig) -> Outcome:
    """Play the fixed evaluation seeds, random play beside them; or a tournament."""
    run, asked = build_run(cfg), options(cfg, EvaluateOptions)
    if asked.tournament:
        must_offer(run.env, "tournament", OPPONENTS)
    with loading_torch():
        from frugal_rl.run.session import contest, evaluate_saved
    if asked.tournament:
        return Outcome({"table": contest(asked.checkpoint, run)}, [run.run_dir])
    if not isinstance(asked.checkpoint, str):
        raise ConfigError("Several checkpoints are for tournament=true; name one.")
    results = evaluate_saved(asked.checkpoint, run)
    values = {player: result.metrics("eval") for player, result in results.items()}
    return Outcome({"checkpoint": asked.checkpoint, **values}, [run.run_dir])


if __name__ == "__main__":
    evaluate()
