"""N++ in one kernel call: a bit-exact simulator, its level format, graphs, rewards and pictures.

Names are loaded when they are first used, so that `import nclone` costs no compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gymnasium import register

if TYPE_CHECKING:
    from frugal_rl.vec_env.interface import VectorEnv
    from nclone.env import NppEnv
    from nclone.errors import LevelError
    from nclone.levels.level import Level, load_level
    from nclone.sim.simulate import Trajectory, simulate
    from nclone.sim.world import World

_HOME = {
    "Level": "nclone.levels.level",
    "LevelError": "nclone.errors",
    "Trajectory": "nclone.sim.simulate",
    "World": "nclone.sim.world",
    "load_level": "nclone.levels.level",
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

register("nclone/Npp-v0", entry_point="nclone.env:NppEnv")


def make(memory: str = "lossless", seed: int | None = None, **options: Any) -> NppEnv:
    """One environment; `options` are the values of `nclone.config.NppConfig`."""
    from nclone.quick_start import configured

    config, _ = configured(memory, options)
    return config.make(seed)


def make_vec(num_envs: int, memory: str = "lossless", **options: Any) -> VectorEnv:
    """Many environments in one batch, their rows stored as the memory profile says."""
    from nclone.quick_start import configured, encoding

    config, profile = configured(memory, options)
    return config.make_vec(num_envs, encoding(config, profile), profile, None, "train")


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'nclone' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
