"""Frugal RL: plan what a run will hold, store only what changes, rebuild the rest bit for bit.

What is listed in `__all__` is public and kept stable; everything else is free to move. Names are
looked up when they are first used, so that importing the package imports neither torch nor Hydra.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from frugal_rl.after_import import after_import
from frugal_rl.former_names import FormerNames

if TYPE_CHECKING:
    from frugal_rl.errors import MemoryBudgetError
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.spec import Derived, ObservationSpec, Private, Static, Stored
    from frugal_rl.run.library import evaluate, load_policy, train
    from frugal_rl.run.planning import compose, make_vec, plan
    from frugal_rl.store.found.array import FoundArray
    from frugal_rl.store.found.study import study
    from frugal_rl.store.replay import DictReplayBuffer, HerReplayBuffer, ReplayBuffer
    from frugal_rl.store.rollout import RolloutBuffer
    from frugal_rl.testing.env import check_env

__version__ = "0.1.0"

__all__ = [
    "Derived",
    "DictReplayBuffer",
    "Encoding",
    "FoundArray",
    "HerReplayBuffer",
    "MemoryBudgetError",
    "ObservationSpec",
    "Private",
    "ReplayBuffer",
    "RolloutBuffer",
    "Static",
    "Stored",
    "check_env",
    "compose",
    "evaluate",
    "load_policy",
    "make_vec",
    "plan",
    "study",
    "train",
]

_ROOMS = {
    "frugal_rl.errors": ("MemoryBudgetError",),
    "frugal_rl.observation.encoding": ("Encoding",),
    "frugal_rl.observation.spec": ("Derived", "ObservationSpec", "Private", "Static", "Stored"),
    "frugal_rl.run.library": ("evaluate", "load_policy", "train"),
    "frugal_rl.run.planning": ("compose", "make_vec", "plan"),
    "frugal_rl.store.found.array": ("FoundArray",),
    "frugal_rl.store.found.study": ("study",),
    "frugal_rl.store.replay": ("DictReplayBuffer", "HerReplayBuffer", "ReplayBuffer"),
    "frugal_rl.store.rollout": ("RolloutBuffer",),
    "frugal_rl.testing.env": ("check_env",),
}
sys.meta_path.append(FormerNames())
after_import("numba.core.caching", lambda: import_module("frugal_rl.kernel_files"))
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first used."""
    if name not in _ROOM_OF:
        raise AttributeError(f"frugal_rl has no '{name}'; it offers {', '.join(__all__)}.")
    value = getattr(import_module(_ROOM_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted([*__all__, "__version__"])
