"""From two words to an environment: the configuration that the command line would compose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.encoding import Encoding
from frugal_rl.run.building import build
from frugal_rl.run.compose import compose_plain, plain
from nclone.config import NppConfig


def configured(memory: str, options: Mapping[str, Any]) -> tuple[NppConfig, MemoryProfile]:
    """What `env=nclone memory=<memory>` means, with some values of the environment replaced."""
    composed, _ = compose_plain("train", ["env=nclone", f"memory={memory}"])
    values = plain(composed)
    return replace(build(values["env"]), **options), build(values["memory"])


def encoding(config: NppConfig, memory: MemoryProfile) -> Encoding:
    """How the profile stores the environment's observation."""
    return Encoding.choose(
        config.spec(), memory.storage, memory.frame_stack, memory.internal_observations,
        config.fields,
    )  # fmt: skip
