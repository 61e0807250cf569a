"""Train one agent: `python scripts/train.py env=nclone memory=parallel`."""

from omegaconf import DictConfig

from frugal_rl.config import build_run, main


@main("train")
def train_script(cfg: DictConfig) -> None:
    """Plan, then train, then say where the results are. Every option lives in conf/."""
    run = build_run(cfg)  # frozen dataclasses from here on

    from frugal_rl.train.session import train_planned  # torch is imported only if it can fit

    train_planned(run)


if __name__ == "__main__":
    train_script()
