"""Whether a stranger's environment goes on from its state as if nothing had happened: by trial."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.vec_env.object_state import put_back, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gymnasium import spaces

TRIED_STEPS = 40
"""Steps before, and steps behind, the state that is tried."""


def why_not(make: Callable[[], Any], space: spaces.Space[Any]) -> str:
    """Why environments cannot be continued from their state; empty where they can.

    Of two new ones one is played, the other one takes its state, and both go on: all they show must
    be equal.
    """
    cores: list[Any] = []
    try:
        cores += [make(), make()]
        return _tried(cores, space)
    except Exception as error:  # whatever a stranger's objects raise when they are set
        return f"{type(error).__name__}: {error}"
    finally:
        for core in cores:
            getattr(core, "env", core).close()


def _tried(cores: Sequence[Any], space: spaces.Space[Any]) -> str:
    if not all(hasattr(core, "shown") and not core.tables for core in cores):
        return "they are none that env=gymnasium makes"
    played, fresh = cores
    space.seed(0)
    played.restart(1)
    fresh.restart(2)
    for _ in range(TRIED_STEPS):
        _step(played, space.sample())
    _step(fresh, space.sample())
    put_back(fresh, state_of(played))
    for _ in range(TRIED_STEPS):
        action = space.sample()
        if _step(played, action) != _step(fresh, action):
            return "after its state was put back it went on otherwise"
    return ""


def _step(core: Any, action: Any) -> list[Any]:
    """All that a step shows; an ended episode is followed by the next one."""
    action = action.item() if np.ndim(action) == 0 else action
    reward, terminated, truncated, _ = core.advance(action)
    seen = [reward, terminated, truncated, *(v.tobytes() for v in core.raw().values())]
    if terminated or truncated:
        core.restart()
        seen += [v.tobytes() for v in core.raw().values()]
    return seen
