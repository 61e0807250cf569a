"""Whether a stranger's environment goes on from its state as if nothing had happened: by trial."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.vec_env.ending import close_all
from frugal_rl.vec_env.object_state import names_its_state, put_back, state_of

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
        cores.append(make())
        if names_its_state(cores[0]):
            return ""
        cores.append(make())
        return _tried(cores, space)
    except (
        Exception,
        SystemExit,
    ) as error:  # whatever a stranger's objects raise when they are set
        return f"{type(error).__name__}: {error}"
    finally:
        close_all(getattr(core, "env", core) for core in cores)


def _tried(cores: Sequence[Any], space: spaces.Space[Any]) -> str:
    played, fresh = cores
    space.seed(0)
    played.restart(1)
    for _ in range(TRIED_STEPS):
        _step(played, space.sample())
    put_back(fresh, state_of(played), seed=2)
    for _ in range(TRIED_STEPS):
        action = space.sample()
        if _step(played, action) != _step(fresh, action):
            return "after its state was put back it went on otherwise"
    return ""


def _step(core: Any, action: Any) -> list[Any]:
    """All that a step shows; an ended episode is followed by the next one."""
    action = action.item() if np.ndim(action) == 0 else action
    reward, terminated, truncated, _ = core.advance(action)
    seen = [reward, terminated, truncated, *_shown(core)]
    if terminated or truncated:
        core.restart()
        seen += _shown(core)
    return seen


def _shown(core: Any) -> list[bytes]:
    """Bytes of an observation, static rows by their content: each environment numbers its own."""
    raw = {name: np.asarray(value) for name, value in core.raw().items()}
    rows = [table.row(int(raw.pop(f"{name}_id"))) for name, table in core.tables.items()]
    return [v.tobytes() for fields in (raw, *rows) for v in fields.values()]
