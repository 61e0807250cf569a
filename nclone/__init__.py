"""N++ in one kernel call: a bit-exact simulator, its level format, graphs, rewards and pictures.

Names are loaded when they are first used, so that `import nclone` costs no compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from gymnasium import register

if TYPE_CHECKING:
    from nclone.errors import LevelError
    from nclone.levels.level import Level, load_level
    from nclone.quick_start import make, make_vec
    from nclone.sim.simulate import Trajectory, simulate
    from nclone.sim.world import World

_HOME = {
    "Level": "nclone.levels.level",
    "LevelError": "nclone.errors",
    "Trajectory": "nclone.sim.simulate",
    "World": "nclone.sim.world",
    "load_level": "nclone.levels.level",
    "make": "nclone.quick_start",
    "make_vec": "nclone.quick_start",
    "simulate": "nclone.sim.simulate",
}

__all__ = [
    "Level",
    "LevelError",
    "Trajectory",
    "World",
    "load_level",
    "make",
    "make_vec",
    "simulate",
]

register("nclone/Npp-v0", entry_point="nclone.quick_start:npp_env")


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'nclone' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
