"""Try a trained policy out: `python scripts/evaluate.py checkpoint=runs/...`."""

from omegaconf import DictConfig

from frugal_rl.run.compose import build_run, main, plain
from frugal_rl.run.session import contest, evaluate_saved


@main("evaluate")
def evaluate(cfg: DictConfig) -> None:
    """Play the fixed evaluation seeds, random play beside them; or a tournament."""
    if cfg.tournament:
        contest(plain(cfg)["checkpoint"], build_run(cfg))
    else:
        evaluate_saved(str(cfg.checkpoint), build_run(cfg))


if __name__ == "__main__":
    evaluate()
