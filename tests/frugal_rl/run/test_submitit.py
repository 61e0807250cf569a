"""Ranks and sweeps that submitit's local executor starts (extra `slurm`)."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from frugal_rl.run.cells import End, cells_in
from frugal_rl.run.checkpoints import load_checkpoint

submitit = pytest.importorskip("submitit", reason="the extra `slurm` is not installed")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
SIZES = ["env=toy", "agent=mlp", "tracking=disabled", "algo.num_envs=8", "algo.n_steps=16"]
SIZES += ["algo.batch_size=64", "algo.total_steps=256", "evaluation.episodes=2"]


def test_two_tasks_of_a_job_train_one_run(tmp_path):
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    many = ["launch=torchrun", "launch.nodes=2", "launch.processes=1"]
    where = [f"launch.meet=localhost:{port}", f"hydra.run.dir={tmp_path / 'run'}"]
    command = [sys.executable, "scripts/train.py", *SIZES, *many, *where]
    executor = submitit.LocalExecutor(folder=tmp_path / "jobs")
    executor.update_parameters(tasks_per_node=2, timeout_min=5)

    job = executor.submit(subprocess.run, command, cwd=ROOT, check=True)

    assert [done.returncode for done in job.results()] == [0, 0]
    content = load_checkpoint(tmp_path / "run")
    assert content["num_steps"] == 256
    assert len(content["ranks"]) == 1


def test_a_sweep_whose_jobs_are_runs_of_two_processes(tmp_path):
    swept = ["-m", "seed=0,1", "launch=torchrun", "hydra/launcher=submitit_local"]
    words = [*swept, *SIZES, f"hydra.sweep.dir={tmp_path}", "hydra.launcher.timeout_min=5"]
    command = [sys.executable, "scripts/train.py", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert [cell.end for _, cell in cells_in(tmp_path)] == [End.finished] * 2
