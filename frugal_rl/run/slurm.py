"""A run handed to Slurm: one job whose every machine starts the processes of its share."""

from __future__ import annotations

import math
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from frugal_rl.errors import ConfigError, LaunchError
from frugal_rl.memory.auto import prepare
from frugal_rl.report.files import JOB, write_text
from frugal_rl.report.terminal import say
from frugal_rl.run.admission import MARGIN
from frugal_rl.run.launch import rank_words
from frugal_rl.run.shares import share_of

if TYPE_CHECKING:
    from frugal_rl.memory.plan import Plan
    from frugal_rl.memory.probe import ProbeUpdate
    from frugal_rl.run.config import RunConfig

REQUEUE = 75
"""Exit status of a run that was asked to stop before its end: it wants to go on."""
LEAST_MINUTES = 5
"""Slurm warns two to three minutes before the end: a shorter job would save, and be started again,
without having learned anything."""


def submits(run: RunConfig) -> bool:
    """Whether this process is to hand the run to Slurm; on its machines the meeting is named."""
    return run.launch.scheduler == "slurm" and not run.launch.meet


def submit(run: RunConfig, probe: ProbeUpdate | None) -> Path:
    """Plan, write the job into the run folder and submit it; returns its file.

    Raises:
        MemoryBudgetError: one process's share does not fit its part of a machine.
        ConfigError: there is no Slurm here, or the job is too short to train in.
        LaunchError: Slurm refuses the job.
    """
    if shutil.which("sbatch") is None:
        raise ConfigError(
            "launch=slurm hands the run to Slurm, and there is no sbatch on this machine. Start it "
            "where Slurm is, or use launch=torchrun here."
        )
    check_time(run)
    plan = prepare(share_of(run), probe)[1]
    job = Path(run.run_dir).absolute() / JOB
    write_text(job, job_text(run, plan))
    done = subprocess.run(["sbatch", str(job)], capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        raise LaunchError(f"sbatch refuses {job}: {said[:300]}")
    say(f"{done.stdout.strip()}: {job}")
    return job


def check_time(run: RunConfig) -> None:
    """Refuse a job that is warned of its end before it trains.

    Raises:
        ConfigError: it is too short.
    """
    if run.launch.minutes < LEAST_MINUTES:
        raise ConfigError(
            f"launch.minutes={run.launch.minutes} is too short: Slurm warns up to three minutes "
            "before the end, and the run saves and starts again. Use launch.minutes="
            f"{LEAST_MINUTES} or more."
        )


def job_text(run: RunConfig, plan: Plan) -> str:
    """The batch script: what the plan needs per machine, and the command on each of them."""
    launch, at = run.launch, Path(run.run_dir).absolute()
    gib = math.ceil(MARGIN * plan.ram_bytes * launch.processes / 2**30)
    asked = {
        "job-name": f"{run.env.name}-{run.memory.profile}",
        "nodes": launch.nodes,
        "ntasks-per-node": 1,
        "cpus-per-task": run.hardware.cores or launch.processes,
        "mem": f"{gib}G",
        "gpus-per-node": launch.processes if plan.vram_bytes else "",
        "time": launch.minutes,
        "partition": launch.partition,
        "account": launch.account,
        "signal": "USR1@120",
        "requeue": None,
        "output": at / "slurm-%j.out",
        "open-mode": "append",
    }
    given = {k: "" if v is None else "=" + shlex.quote(str(v)) for k, v in asked.items() if v != ""}
    lines = [f"#SBATCH --{name}{word}" for name, word in given.items()]
    command = shlex.join([sys.executable, *rank_words(run)])
    body = BODY.format(cwd=shlex.quote(str(Path.cwd())), command=command, again=REQUEUE)
    return "\n".join(["#!/bin/bash", *lines, body])


BODY = """cd {cwd}
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun {command} "launch.meet=$first:$((20000 + SLURM_JOB_ID % 20000))"
status=$?
if [ $status -eq {again} ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit $status
"""
"""A run that was warned ends with 75 when it has saved; Slurm starts it again, where it goes on."""


def status_of(run: RunConfig, interrupted: bool) -> int:
    """The exit status of a run: inside a Slurm job one that was stopped early asks for more.

    Without `launch.restarts` it could not go on in its own folder, and does not ask.
    """
    again = run.launch.scheduler == "slurm" and run.launch.restarts > 0
    return REQUEUE if interrupted and again else 0
