"""From two words to an environment: the configuration that the command line would compose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from frugal_rl.errors import ConfigError
from frugal_rl.observation.encoding import Encoding
from frugal_rl.run.building import build, build_as
from frugal_rl.run.composing import compose_plain, plain
from nclone.config import NppConfig
from nclone.env import NppEnv

if TYPE_CHECKING:
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.vec_env.interface import VectorEnv


def make(memory: str = "lossless", seed: int | None = None, **options: Any) -> NppEnv:
    """One environment; `options` are those of `nclone.config.NppConfig`, choices as words.

    Raises:
        ConfigError: an option that there is none of, or a value that does not fit it.
    """
    config, _ = configured(memory, options)
    return config.make(seed)


def make_vec(num_envs: int, memory: str = "lossless", **options: Any) -> VectorEnv:
    """Many environments in one batch, their rows stored as the memory profile says."""
    config, profile = configured(memory, options)
    return config.make_vec(num_envs, encoding(config, profile), profile, None, "train")


def npp_env(
    config: NppConfig | None = None,
    seed: int | None = None,
    render_mode: str | None = None,
    **options: Any,
) -> NppEnv:
    """What `gymnasium.make("nclone/Npp-v0")` makes: the bundled levels where nothing is said.

    Options are those of `NppConfig`, choices as words; a whole `config` takes their place.
    """
    if config is not None and options:
        raise ConfigError(f"Give either config= or {', '.join(options)}=, not both.")
    return NppEnv(config or build_as(NppConfig, options, "env"), seed, render_mode)


def configured(memory: str, options: Mapping[str, Any]) -> tuple[NppConfig, MemoryProfile]:
    """What `env=nclone memory=<memory>` means, with some values of the environment replaced."""
    composed, _ = compose_plain("train", ["env=nclone", f"memory={memory}"])
    values = plain(composed)
    return build({**values["env"], **options}, "env"), build(values["memory"])


def encoding(config: NppConfig, memory: MemoryProfile) -> Encoding:
    """How the profile stores the environment's observation."""
    return Encoding.choose(
        config.spec(),
        memory.storage,
        memory.frame_stack,
        memory.internal_observations,
        config.fields,
    )
