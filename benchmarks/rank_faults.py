"""Processes of a run are killed at random times; the run goes on, and resumes on fewer processes.

    python benchmarks/rank_faults.py [--kills 5] [--steps 131072] [--seed 0] [--out FOLDER]

1. A run of four processes with `launch.restarts`: so many times one of them, drawn at random, is
   ended by SIGKILL at a random time. It must end by itself with all its steps.
2. Its checkpoint is gone on with by four, twice: bit for bit the same. Then by two, then by one.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import torch

from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.launch import own_ranks_of

SIZES = (
    "env=toy agent=mlp algo.num_envs=16 algo.n_steps=32 algo.batch_size=256 tracking=disabled "
    "hardware.threads=1 evaluation.episodes=4 checkpoint_every_steps=512 sweep.ledger=''"
).split()


def command(folder: Path, processes: int, steps: int, *words: str) -> list[str]:
    """One run on so many processes."""
    many = ["launch=torchrun", f"launch.processes={processes}"] if processes > 1 else []
    own = [f"algo.total_steps={steps}", f"hydra.run.dir={folder}"]
    return [sys.executable, "scripts/train.py", *SIZES, *many, *own, *words]


def reached(folder: Path) -> int:
    """Steps of the newest checkpoint; 0 before there is one."""
    try:
        return int(load_checkpoint(folder)["num_steps"])
    except Exception:  # none yet, or just being replaced
        return 0


def disturbed(folder: Path, kills: int, steps: int) -> list[str]:
    """Train while processes are killed; what the launcher said about it."""
    words = command(folder, 4, steps, f"launch.restarts={kills + 1}", "launch.timeout_s=60")
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    file = folder / "checkpoints" / "last.pt"
    for _ in range(kills):
        seen = file.stat().st_mtime_ns if file.is_file() else 0
        while run.poll() is None and (not file.is_file() or file.stat().st_mtime_ns == seen):
            time.sleep(0.05)  # it has made headway since the last kill
        time.sleep(random.uniform(0, 3))
        ranks = own_ranks_of(psutil.Process(run.pid)) if run.poll() is None else []
        if ranks:
            victim = random.randrange(len(ranks))
            psutil.Process(ranks[victim]).send_signal(signal.SIGKILL)
            print(
                f"killed number {victim} of {len(ranks)} at {reached(folder):,} steps", flush=True
            )
    said, _ = run.communicate()
    print(f"status {run.returncode}, {reached(folder):,} steps", flush=True)
    return [line for line in said.splitlines() if "SIGKILL" in line or "Resumed" in line]


def resumed(folder: Path, before: Path, processes: int, steps: int) -> dict[str, torch.Tensor]:
    """Weights of a run that goes on with another's checkpoint."""
    words = command(folder, processes, steps, f"resume={before}")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    said = next(
        (line for line in done.stdout.splitlines() if "Resumed" in line), done.stderr[-500:]
    )
    content = load_checkpoint(folder)
    print(
        f"{processes} processes: status {done.returncode}, {content['num_steps']:,} steps: {said}"
    )
    weights: dict[str, torch.Tensor] = content["learner"]["policy"]
    return weights


def main() -> None:
    """Kills, then fewer and fewer processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--steps", type=int, default=131_072)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/rank_faults"))
    given = parser.parse_args()
    random.seed(given.seed)
    shutil.rmtree(given.out, ignore_errors=True)
    out = given.out.absolute()
    for line in disturbed(out / "four", given.kills, given.steps):
        print(line)
    begun = out / "four"
    a, b = (resumed(out / name, begun, 4, given.steps + 2048) for name in ("again", "twin"))
    same = all(torch.equal(a[name], b[name]) for name in a)
    print(f"on four processes twice: {'bit for bit the same' if same else 'DIFFERENT'}")
    resumed(out / "two", out / "again", 2, given.steps + 4096)
    resumed(out / "one", out / "two", 1, given.steps + 6144)


if __name__ == "__main__":
    main()
