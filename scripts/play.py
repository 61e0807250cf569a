"""Play, or watch a trained policy: `python scripts/play.py env=nclone checkpoint=runs/...`."""

from omegaconf import DictConfig

from frugal_rl.errors import ConfigError
from frugal_rl.run.compose import build_run, main, options
from frugal_rl.run.play import PlayOptions


@main("play")
def play(cfg: DictConfig) -> None:
    """Open a window, or film without one; print the path of every file that was written."""
    run = build_run(cfg)
    if not hasattr(run.env, "play"):
        raise ConfigError(f"env={run.env.name} cannot be played; env=nclone can.")
    for line in run.env.play(run, options(cfg, PlayOptions)):
        print(line)


if __name__ == "__main__":
    play()
