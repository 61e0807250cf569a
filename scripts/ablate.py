"""Each saving alone: `python scripts/ablate.py env=nclone base=baseline algo.total_steps=65536`."""

from omegaconf import DictConfig

from frugal_rl.report.ablation import AblationOptions, ablate
from frugal_rl.run.compose import build_run, main, options
from frugal_rl.run.digest import parameter_digest


@main("ablate")
def run_ablation(cfg: DictConfig) -> None:
    """Write the table "optimisation | label | bytes | peaks | speed | learning unchanged?"."""
    for path in ablate(build_run(cfg), options(cfg, AblationOptions), parameter_digest):
        print(path)


if __name__ == "__main__":
    run_ablation()
