"""Variants of a run that differ in its memory only: a tenth of the time of composing them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from frugal_rl.run.search_path import choices, values_of

SWITCH = "memory."
Values = dict[str, Any]
Read = Callable[[Sequence[str]], Values]
"""The keys of words and their values."""


def with_other_memory(
    values: Mapping[str, Any], typed: Sequence[str], words: Sequence[str], read: Read
) -> Values | None:
    """The plain values that other words compose, or None where they change more than the memory.

    Switches are put in the place of those that were composed. So is a profile, if it and the one
    before set nothing else, and if nothing but typed words changed what the one before sets.

    Args:
        values: what was composed.
        typed: the words that it was composed of.
        words: those of the variant.
        read: what Hydra reads of words.
    """
    chosen = dict(values.get("choices") or {})
    made = {f"{group}={choice}" for group, choice in chosen.items()}
    new = [word for word in words if word not in typed and word not in made]
    keys = {word.partition("=")[0] for word in new}
    gone = {word.partition("=")[0] for word in typed if word not in words}
    if not all(key == "memory" or key.startswith(SWITCH) for key in keys) or gone - keys:
        return None
    if "memory" not in keys:
        return {**values, "memory": dict(values.get("memory") or {}) | _switches(new, read)}
    name = next(word.partition("=")[2] for word in new if word.startswith("memory="))
    before, after = (_profile(chosen.get("env"), n) for n in (chosen.get("memory"), name))
    if not (before and after) or before | _switches(typed, read) != values.get("memory"):
        return None
    chosen |= {"memory": name, "memory/fit": f"{chosen['env']}_{name}"}
    return {**values, "memory": after | _switches(words, read), "choices": chosen}


def _switches(words: Sequence[str], read: Read) -> Values:
    """The values that words give to switches of the profile."""
    given = read([word for word in words if word.startswith(SWITCH)])
    return {key.removeprefix(SWITCH): value for key, value in given.items()}


def _profile(env: Any, name: Any) -> Values:
    """What a profile sets; empty where that is not the memory alone, or depends on more."""
    return {} if f"{env}_{name}" in choices("memory/fit") else _alone(str(name))


def _alone(name: str) -> Values:
    file = values_of(f"memory/{name}")
    parts = file.get("defaults", ["_self_"])
    if file.keys() - {"defaults", "memory"} or "_self_" not in parts:
        return {}
    values: Values = {}
    for part in parts:
        more = file.get("memory") if part == "_self_" else _alone(str(part))
        if not (more and isinstance(more, dict)):
            return {}
        values |= more
    return {} if "${" in str(values) else values
