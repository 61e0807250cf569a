"""Train one agent: `python scripts/train.py env=nclone memory=parallel`."""

try:
    import frugal_rl.first_words  # noqa: F401
except ImportError as missing:
    raise SystemExit(f"{missing}. Use .venv/bin/python (make train), or pip install .") from None

# isort: split
from omegaconf import DictConfig

from frugal_rl.doing import doing
from frugal_rl.garbage import loading_torch
from frugal_rl.memory.auto import prepare, refuse_hopeless
from frugal_rl.run.admission import admitted
from frugal_rl.run.cells import run_cell
from frugal_rl.run.command import main
from frugal_rl.run.compose import build_run
from frugal_rl.run.outcome import Outcome
from frugal_rl.run.preflight import check_chosen, check_resumed
from frugal_rl.run.probe import probe_update


@main("train", in_sweep=run_cell)
def train(cfg: DictConfig) -> Outcome:
    """Plan, then train; every option lives in conf/, `--help` lists them."""
    with doing("reading the configuration"):
        run = build_run(cfg)  # frozen dataclasses from here on
        check_resumed(run)
        check_chosen(run)
    if run.launch.size > 1 or run.launch.scheduler:
        return train_together(run)
    with doing("planning"):
        refuse_hopeless(run)  # before the run has a line in the ledger of this machine
    with admitted(run) as room:
        with doing("planning"):
            run, plan = prepare(run, probe_update)  # refuses what cannot fit before it is loaded
        room.settle(plan.ram_bytes)
        with loading_torch():
            from frugal_rl.run.session import train_planned
        return Outcome(train_planned(run, plan), [run.run_dir])


def train_together(run) -> Outcome:
    """Hand the run to a scheduler, start its processes on this machine, or be one of them."""
    with loading_torch():
        from frugal_rl.run.launch import launches, start_ranks
        from frugal_rl.run.session import train_rank
        from frugal_rl.run.slurm import status_of, submit, submits

    if submits(run):
        return Outcome(files=[submit(run, probe_update)])
    if launches(run):
        asked = start_ranks(run)
        return Outcome({"interrupted": asked}, [run.run_dir], status_of(run, asked))
    train_rank(run, probe_update)
    return Outcome()


if __name__ == "__main__":
    train()
