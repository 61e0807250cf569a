"""What a plan needs to know of an environment that says too little: found out once, by processes.

An environment is weighed, its workers are, and its rows are looked at. Where that fails, plans go
without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frugal_rl.memory.found_rows import is_found
from frugal_rl.memory.once import find_once
from frugal_rl.memory.weight import rows_name, weight_name, workers_name
from frugal_rl.store.layout import columns_of

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

WEIGH_SECONDS = 120.0
"""An environment that takes longer to be made ten times is planned without its weight."""
PLAY_SECONDS = 300.0
"""One that takes longer to be played for a moment is planned with its rows as they are."""


def weigh_environment(run: RunConfig) -> None:
    """Measure once, in a process of its own, an environment that says nothing of its size."""
    if getattr(type(run.env), "weighed", False):
        name = weight_name(run.env)
        find_once(name, "frugal_rl.run.weigh", run, "Weighing the environment", WEIGH_SECONDS)


def weigh_workers(run: RunConfig) -> None:
    """Measure once, in a process of its own, workers that load what no constant tells."""
    if run.vec.stepping().weighed:
        name, module = workers_name(run), "frugal_rl.run.workers_process"
        find_once(name, module, run, "Weighing a worker process", WEIGH_SECONDS)


def look_at_rows(run: RunConfig) -> None:
    """Play at random once, in a process of its own, where nothing is declared of a rollout's rows.

    It compiles what a store may call, too.
    """
    if any(map(is_found, columns_of(run.encoding()))) and not hasattr(run.algo, "replay_class"):
        name, module = rows_name(run), "frugal_rl.run.play_rollout"
        find_once(name, module, run, "Playing at random", PLAY_SECONDS)
