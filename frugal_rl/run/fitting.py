"""The agent that a memory profile's overlay wants, for an environment that was made smaller.

Hydra lets no overlay that is itself chosen by environment and profile choose a group, so the
overlay names its agent in `fit_agent`, and a word for it is added to the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from omegaconf import DictConfig, OmegaConf

from frugal_rl.run.search_path import conf_folders, is_group

Composer = Callable[[Sequence[str]], DictConfig]
"""Composes words."""


def fitting_agent(cfg: DictConfig, overrides: Sequence[str]) -> str:
    """The word that chooses the agent of a composed overlay, unless one was typed."""
    wanted = OmegaConf.select(cfg, "fit_agent")
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


def _overlay(env: str, memory: str) -> DictConfig:
    """The file of an environment's sizes under a profile; empty where there is none."""
    paths = (conf / "memory" / "fit" / f"{env}_{memory}.yaml" for conf in conf_folders())
    found = next((path for path in paths if path.is_file()), None)
    return DictConfig(OmegaConf.load(found) if found else {})
