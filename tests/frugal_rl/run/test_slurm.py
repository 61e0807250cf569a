"""A run over several machines as one Slurm job, on a Slurm of a few shell lines."""

import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from frugal_rl.errors import ConfigError, LaunchError
from frugal_rl.memory.plan import draw_up
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.slurm import REQUEUE, job_text, status_of, submit, submits

ROOT = Path(__file__).resolve().parents[3]
SBATCH = """#!/bin/bash
echo Submitted batch job 7
if [ -n "$REFUSES" ]; then echo "sbatch: error: invalid partition" >&2; exit 1; fi
if [ -n "$RUNS" ]; then SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n bash "$1"; fi
"""
SRUN = """#!/bin/bash
for _ in 1 2; do "$@" & done
for job in $(jobs -p); do wait $job || status=$?; done
exit $status
"""
SCONTROL = """#!/bin/bash
if [ "$1" = requeue ]; then touch "$REQUEUED"; else echo localhost; fi
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Commands of Slurm, first on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("srun", SRUN), ("scontrol", SCONTROL)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return monkeypatch


def run_in(folder, *words):
    run = compose_run(["env=toy", "launch=slurm", "launch.nodes=8", *words])
    return replace(run, run_dir=str(folder))


def test_without_slurm_one_line_refuses(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")

    with pytest.raises(ConfigError, match=r"no sbatch on this machine.*launch=torchrun here"):
        submit(run_in(tmp_path), None)


def test_the_job_asks_for_what_the_plan_needs_and_starts_each_machine(tmp_path, slurm, capsys):
    run = run_in(tmp_path, "launch.processes=4", "launch.partition=small", "hardware.cores=16")

    text = submit(run, None).read_text()

    asked = {line.removeprefix("#SBATCH --") for line in text.splitlines() if "SBATCH" in line}
    assert {"nodes=8", "ntasks-per-node=1", "cpus-per-task=16", "partition=small"} <= asked
    assert {"mem=3G", "signal=USR1@120", "requeue", "time=60"} <= asked
    assert not any(a.startswith(("account", "gpus")) for a in asked)
    assert "launch.nodes=8 launch.processes=4" in text
    assert f"hydra.run.dir={tmp_path}" in text
    assert "Submitted batch job 7" in capsys.readouterr().out


def test_a_job_that_slurm_refuses_is_told_in_its_words(tmp_path, slurm):
    slurm.setenv("REFUSES", "1")

    with pytest.raises(LaunchError, match="sbatch: error: invalid partition"):
        submit(run_in(tmp_path), None)


def test_on_the_machines_the_run_is_started_not_submitted(tmp_path):
    run = run_in(tmp_path)
    there = replace(run, launch=replace(run.launch, meet="first:29400"))

    assert submits(run)
    assert not submits(there)
    assert status_of(there, interrupted=True) == REQUEUE
    assert status_of(there, interrupted=False) == 0
    alone = replace(there, launch=replace(there.launch, restarts=0))
    assert status_of(alone, interrupted=True) == 0  # it could not go on in its own folder


def test_a_job_that_is_warned_before_it_trains_is_refused(tmp_path, slurm):
    """It saved at once and asked Slurm to start it again, without end."""
    with pytest.raises(ConfigError, match=r"launch\.minutes=3 is too short.*launch\.minutes=5 or"):
        submit(run_in(tmp_path, "launch.minutes=3"), None)
    assert not list(tmp_path.glob("*.sh"))


def test_gpus_are_asked_for_where_the_plan_has_some(tmp_path):

    words = ["hardware.device=cuda", "hardware.vram_gib=80", "launch.processes=8"]
    run = run_in(tmp_path, *words, "algo.num_envs=128")

    assert "#SBATCH --gpus-per-node=8\n" in job_text(run, draw_up(run))


def test_a_folder_with_blanks_is_one_word_of_the_job(tmp_path):
    run = run_in(tmp_path / "my run", "launch.partition=gpu")

    lines = job_text(run, draw_up(run)).splitlines()

    asked = [shlex.split(line.removeprefix("#SBATCH ")) for line in lines if "#SBATCH" in line]
    assert all(len(words) == 1 for words in asked)
    assert [f"--output={tmp_path}/my run/slurm-%j.out"] in asked
    assert "#SBATCH --partition=gpu" in lines


@pytest.mark.slow
def test_two_machines_of_a_job_train_one_run(tmp_path, slurm):
    slurm.setenv("RUNS", "1")
    slurm.setenv("REQUEUED", str(tmp_path / "requeued"))
    words = ["env=toy", "tracking=disabled", "launch=slurm", "launch.nodes=2", "algo.num_envs=8"]
    words += ["algo.n_steps=16", "algo.batch_size=64", "algo.total_steps=256"]
    words += ["evaluation.episodes=2", f"hydra.run.dir={tmp_path / 'run'}"]

    done = subprocess.run(
        [sys.executable, "scripts/train.py", *words], cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    content = load_checkpoint(tmp_path / "run")
    assert content["num_steps"] == 256
    assert len(content["ranks"]) == 1
    assert not (tmp_path / "requeued").exists()
