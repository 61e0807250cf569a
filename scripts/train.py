"""Train one agent: `python scripts/train.py env=nclone memory=parallel`."""

from omegaconf import DictConfig

from frugal_rl.memory.auto import prepare
from frugal_rl.run.compose import build_run, main
from frugal_rl.run.probe import probe_update


@main("train")
def train(cfg: DictConfig) -> None:
    """Plan, then train; every option lives in conf/, `--help` lists them."""
    run = build_run(cfg)  # frozen dataclasses from here on
    if run.launch.size > 1:
        train_together(run)
        return
    run, plan = prepare(run, probe_update)  # refuses what cannot fit before torch is imported

    from frugal_rl.run.session import train_planned

    train_planned(run, plan)


def train_together(run) -> None:
    """Start the processes of a data-parallel run, or be one of them."""
    from frugal_rl.run.launch import launches, start_ranks
    from frugal_rl.run.session import train_rank

    if launches(run):
        start_ranks(run)
    else:
        train_rank(run, probe_update)


if __name__ == "__main__":
    train()
