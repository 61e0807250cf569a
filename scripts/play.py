"""Play, or watch a trained policy: `python scripts/play.py env=nclone checkpoint=runs/...`."""

from omegaconf import DictConfig

from frugal_rl.run.compose import build_run, main, options
from frugal_rl.run.play import PlayOptions
from frugal_rl.run.tools import needed


@main("play")
def play(cfg: DictConfig) -> None:
    """Open a window, or film without one; print the path of every file that was written."""
    run = build_run(cfg)
    tool = needed(run.env, "play", "env=nclone and env=fighting can be played.")
    for line in tool(run, options(cfg, PlayOptions)):
        print(line)


if __name__ == "__main__":
    play()
