"""What one environment of a run holds beyond the first: bytes of several, by difference.

python -m frugal_rl.run.weigh < request.json

The first one loads libraries, which are no part of what the others cost.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from frugal_rl.errors import FrugalError
from frugal_rl.memory import usage
from frugal_rl.memory.allocator import give_back, pin_allocator
from frugal_rl.run.asked import asked_run, end_with
from frugal_rl.vec_env.ending import close_all

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

MOST_ENVS = 8
STEPS = 64
"""Of each environment: what it allocates when it is first stepped counts."""
SECONDS = 4.0
"""No further environment is made after these."""


def weigh(run: RunConfig) -> int:
    """Mean bytes of the environments after the first two."""
    pin_allocator()
    kept = [_played(run, 0), _played(run, 1)]
    began, before = time.monotonic(), held_now()
    while len(kept) < MOST_ENVS + 2 and (len(kept) < 3 or time.monotonic() - began < SECONDS):
        kept.append(_played(run, len(kept)))
    grown = max(0, held_now() - before) // (len(kept) - 2)
    close_all(kept)
    return grown


def _played(run: RunConfig, seed: int) -> Any:
    """An environment that has been played at random for a moment."""
    env, until = run.env.make(seed), time.monotonic() + SECONDS
    env.reset(seed=seed)
    env.action_space.seed(seed)
    with suppress(
        Exception, SystemExit
    ):  # one that refuses an action at random is as large as before it
        for _ in range(STEPS):
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                env.reset()
            if time.monotonic() > until:
                break
    return env


def held_now() -> int:
    """Bytes of this process and its children, without what its allocator keeps free."""
    give_back()
    return usage.held_bytes(usage.of_tree())


def main() -> None:
    """Read the request, print the answer as one line of JSON; null where it cannot be made."""
    try:
        run = asked_run()
        answer = {"bytes": weigh(run)}
    except FrugalError:
        answer = None
    print(json.dumps(answer))


if __name__ == "__main__":
    end_with(main)
