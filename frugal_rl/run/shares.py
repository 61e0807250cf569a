"""What each process does and holds of a run that several train together: arithmetic alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from frugal_rl.errors import ConfigError
from frugal_rl.learn.ranks import Ranks
from frugal_rl.memory.choices import AUTO
from frugal_rl.memory.machine import PartGib, find_limit
from frugal_rl.vec_env.episodes import Episodes

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

    Composer = Callable[[Sequence[str]], RunConfig]

SEED_STEP = 7_919
"""Between the seeds of two ranks; a prime, so that neighbouring seeds of a sweep stay apart."""


def share_of(run: RunConfig) -> RunConfig:
    """What each process will hold of a run on this machine, with its part of the memory.

    Its variants are shares, too: of the whole run that the words compose.
    """
    launch = run.launch
    if launch.size == 1:
        return run
    limit = find_limit(run.memory.budget_gib, run.hardware.ram_gib)
    memory = run.memory
    if launch.processes > 1:
        memory = replace(memory, budget_gib=PartGib.of(limit, launch.processes))
    own = replace(shard(run, Ranks(0, launch.size)), memory=memory)
    split = run.algo.num_envs // own.algo.num_envs
    return replace(own, split=split, composer=_shares_of(run.composer))


def _shares_of(compose: Composer | None) -> Composer | None:
    return None if compose is None else lambda words: share_of(compose(words))


def shard(run: RunConfig, ranks: Ranks) -> RunConfig:
    """What one rank does of a run: its share of environments and minibatch, a seed of its own.

    Raises:
        ConfigError: the sizes cannot be split evenly, or the algorithm runs on one process only.
    """
    if ranks.size == 1:
        return run
    if run.memory.profile == AUTO:
        raise ConfigError("memory=auto plans one process; name a profile with launch=torchrun.")
    algo: Any = run.algo
    if not hasattr(algo, "shared"):
        raise ConfigError(
            f"{type(algo).__name__} trains in one process, and this run has {ranks.size}; use "
            "launch=single, or an algorithm that splits its work: algo=ppo, cloned_ppo, evolution."
        )
    if isinstance(run.vec, Episodes):
        raise ConfigError(
            "vec=episodes collects whole episodes, of which each process would have another number "
            "of steps; use launch=single, or another vec= with launch=torchrun."
        )
    seed = run.seed + SEED_STEP * ranks.rank
    vec = own_workers(run.vec, run.launch.processes)
    return replace(run, algo=algo.shared(ranks), seed=seed, vec=vec)


def own_workers(vec: Any, processes: int) -> Any:
    """Environments whose workers or threads are one per core, by default, of this part of them."""
    cores = max(1, (os.cpu_count() or 1) // processes)
    left_open = [name for name in ("workers", "threads") if getattr(vec, name, None) == 0]
    return replace(vec, **dict.fromkeys(left_open, cores)) if left_open else vec
