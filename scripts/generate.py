"""Write problems to files: `python scripts/generate.py env=mine count=3 folder=deposits`."""

try:
    import frugal_rl.first_words  # noqa: F401
except ImportError as missing:
    raise SystemExit(f"{missing}. Use .venv/bin/python (make train), or pip install .") from None

# isort: split
from omegaconf import DictConfig

from frugal_rl.run.command import main
from frugal_rl.run.compose import build_run, options
from frugal_rl.run.outcome import Outcome
from frugal_rl.run.tools import GenerateOptions, needed


@main("generate")
def generate(cfg: DictConfig) -> Outcome:
    """Print the path of every file that was written."""
    run, asked = build_run(cfg), options(cfg, GenerateOptions)
    tool = needed(run.env, "generate", "env=nclone and env=mine can write problems.")
    paths = []
    for path in tool(run, asked.folder, asked.count, asked.seed):
        print(path)
        paths.append(path)
    return Outcome(files=paths)


if __name__ == "__main__":
    generate()
