"""How small an environment's rows are kept that nothing is declared of: a moment of random play.

    python -m frugal_rl.run.play_rollout < request.json

Where something is compiled for it, everything is that a store may call: a tiny run is too short to
meet most of it, and compiled where a run trains it would leave 66 MiB that no plan knows of.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from frugal_rl.errors import FrugalError
from frugal_rl.run.asked import asked_run
from frugal_rl.run.compiling import told_compiling
from frugal_rl.store.found.study import study
from frugal_rl.store.found.trial import load_kernels
from frugal_rl.vec_env.ending import close_all

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

STEPS = 64
"""What is whole at first counts as one row in so many; a longer rollout takes less."""


def shares(run: RunConfig) -> dict[str, float]:
    """Of the size of its rows, what each field of random play takes."""
    env = run.env.make(run.seed)
    try:
        fields = study(env, STEPS, run.seed).fields
    finally:
        close_all([env])
    return {f.name: f.found_bytes / f.dense_bytes for f in fields if f.dense_bytes}


def main() -> None:
    """Read the request, print shares by field as one line of JSON; null where it cannot be made."""
    with told_compiling() as compiling:
        try:
            answer = shares(asked_run())
        except FrugalError:
            answer = None
        if compiling.count:
            load_kernels()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
