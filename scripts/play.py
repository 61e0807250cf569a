"""Play, or watch a trained policy: `python scripts/play.py env=nclone checkpoint=runs/...`."""

try:
    import frugal_rl.first_words  # noqa: F401
except ImportError as missing:
    raise SystemExit(f"{missing}. Use .venv/bin/python (make train), or pip install .") from None

# isort: split
from omegaconf import DictConfig

from frugal_rl.run.command import main
from frugal_rl.run.compose import build_run, options
from frugal_rl.run.outcome import Outcome
from frugal_rl.run.play import PlayOptions
from frugal_rl.run.tools import needed, tool


@main("play")
def play(cfg: DictConfig) -> Outcome:
    """Open a window, or film without one; print the path of every file that was written."""
    run = build_run(cfg)
    asked = options(cfg, PlayOptions)
    watch = tool(run.env, "watch") if asked.checkpoint else None
    show = watch or needed(run.env, "play", "env=nclone and env=fighting can be played.")
    lines = []
    for line in show(run, asked):
        print(line)
        lines.append(line)
    return Outcome({"written": lines})


if __name__ == "__main__":
    play()
