"""Write problems to files: `python scripts/generate.py env=mine count=3 folder=deposits`."""

from omegaconf import DictConfig

from frugal_rl.errors import ConfigError
from frugal_rl.run.compose import build_run, main


@main("generate")
def generate(cfg: DictConfig) -> None:
    """Print the path of every file that was written."""
    env = build_run(cfg).env
    if not hasattr(env, "generate"):
        raise ConfigError(f"env={env.name} has no generator.")
    for path in env.generate(str(cfg.folder), int(cfg.count), int(cfg.seed)):
        print(path)


if __name__ == "__main__":
    generate()
