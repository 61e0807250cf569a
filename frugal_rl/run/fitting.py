"""What fits a memory profile to an environment: overlays of sizes, and the agent that they want.

Hydra lets no overlay that is itself chosen by environment and profile choose a group, so the
overlay names its agent in `fit_agent`, and a word for it is added to the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from frugal_rl.errors import ConfigError
from frugal_rl.run.search_path import choices, is_group, values_of

Composer = Callable[[Sequence[str]], Mapping[str, Any]]
"""Composes words."""


def fitting_agent(cfg: Mapping[str, Any], overrides: Sequence[str]) -> str:
    """The word that chooses the agent of a composed overlay, unless one was typed."""
    wanted = cfg.get("fit_agent")
    typed = any(word.lstrip("+~").split("=")[0] == "agent" for word in overrides)
    return f"agent={wanted}" if wanted and not typed else ""


def fitting_words(overrides: Sequence[str], composed: Composer) -> list[str]:
    """`fitting_agent` of words that choose a memory profile, as a list of none or one.

    Where the words name environment and profile plainly, the overlay's file is read; else their
    groups are composed, which takes ten times as long.
    """
    chosen = [word for word in overrides if is_group(word.partition("=")[0])]
    named = {key: value for key, _, value in (word.partition("=") for word in chosen)}
    if "memory" not in named:
        return []
    plainly = [named.get(key, "") for key in ("env", "memory")]
    cfg = _overlay(*plainly) if all(map(str.isidentifier, plainly)) else composed(chosen)
    word = fitting_agent(cfg, overrides)
    return [word] if word else []


def _overlay(env: str, memory: str) -> Mapping[str, Any]:
    """The file of an environment's sizes under a profile; empty where there is none."""
    return values_of(f"memory/fit/{env}_{memory}")


def refuse_without_overlay(values: Mapping[str, Any]) -> None:
    """A profile that makes the problem smaller says nothing without the sizes for its environment.

    Raises:
        ConfigError: naming the profiles that fit.
    """
    memory, chosen = values.get("memory") or {}, values.get("choices") or {}
    if memory.get("label") != "capacity" or not chosen:
        return
    env, profile, overlays = chosen.get("env"), chosen.get("memory"), choices("memory/fit")
    if f"{env}_{profile}" in overlays:
        return
    labels = {name: _label(name) for name in sorted(choices("memory"))}
    fitting = [n for n, label in labels.items() if label != "capacity" or f"{env}_{n}" in overlays]
    raise ConfigError(
        f"memory={profile} makes the problem smaller, and conf/memory/fit has no sizes for "
        f"env={env}. Profiles that fit: {', '.join(fitting)}."
    )


def _label(profile: str) -> Any:
    """What a memory profile costs."""
    return (values_of(f"memory/{profile}").get("memory") or {}).get("label")
