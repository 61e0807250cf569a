"""One run over several processes of this machine: torchrun starts the same command in each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from frugal_rl.errors import ConfigError
from frugal_rl.learn.on_policy_config import OnPolicyConfig
from frugal_rl.learn.ranks import Ranks, started_by_torchrun
from frugal_rl.memory.auto import AUTO
from frugal_rl.memory.machine import GIB, find_limit
from frugal_rl.run.compose import folder
from frugal_rl.run.config import RunConfig

SEED_STEP = 7_919
"""Between the seeds of two ranks; a prime, so that neighbouring seeds of a sweep stay apart."""


def launches(run: RunConfig) -> bool:
    """Whether this process is to start those that train, instead of training itself."""
    return run.launch.processes > 1 and not started_by_torchrun()


def share_of(run: RunConfig) -> RunConfig:
    """What each process will hold of a run on this machine, with its part of the memory."""
    count = run.launch.processes
    if count == 1:
        return run
    limit = find_limit(run.memory.budget_gib, run.hardware.ram_gib).ram_bytes / count
    memory = replace(run.memory, budget_gib=limit / GIB)
    return replace(shard(run, Ranks(0, count)), memory=memory)


def start_ranks(run: RunConfig) -> int:
    """Run `launch.processes` of this command under torchrun; returns its exit status."""
    return subprocess.run(ranks_command(run), check=False).returncode


def ranks_command(run: RunConfig) -> list[str]:
    """The command that starts all processes, in the run folder that this one chose."""
    launch, script = run.launch, str(folder("scripts") / "train.py")
    beside = ["--config-dir", run.config_dir] if run.config_dir else []
    return [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node", str(launch.processes), "--max-restarts", str(launch.restarts)),
        *(script, *beside, *run.overrides, *_same_folder(run)),
    ]


def _same_folder(run: RunConfig) -> Sequence[str]:
    return [f"hydra.run.dir={run.run_dir}", "hydra.output_subdir=null"]


def shard(run: RunConfig, ranks: Ranks) -> RunConfig:
    """What one rank does of a run: its share of environments and minibatch, a seed of its own.

    Raises:
        ConfigError: the sizes cannot be split evenly, or the algorithm runs on one process only.
    """
    if ranks.size == 1:
        return run
    if run.memory.profile == AUTO:
        raise ConfigError("memory=auto plans one process; name a profile with launch=torchrun.")
    if not isinstance(run.algo, OnPolicyConfig) or run.algo.reward_normalisation:
        raise ConfigError(
            f"launch.processes={ranks.size} splits algo=ppo without algo.reward_normalisation; "
            "use launch=single for this run."
        )
    algo: Any = replace(
        run.algo,
        num_envs=ranks.share(run.algo.num_envs, "algo.num_envs"),
        batch_size=ranks.share(run.algo.batch_size, "algo.batch_size"),
    )
    return replace(run, algo=algo, seed=run.seed + SEED_STEP * ranks.rank)
