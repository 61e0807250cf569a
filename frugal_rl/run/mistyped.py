"""What is said of words that cannot be meant as they are typed: how they are written here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from frugal_rl.errors import ConfigError
from frugal_rl.run.elsewhere import NO_OPTION, hint_for, registered
from frugal_rl.run.nearness import ELSEWHERE, SURE, nearest, nearest_key
from frugal_rl.run.search_path import choices, further, is_group, values_of

MOST_HAVING = 2
"""So many choices are named that have an option."""
NUMBER = re.compile(r"-?0,\d{2,}|-?\d{1,3}(,000)+")
"""A number as it is written elsewhere: a comma before its decimals, or between thousands."""


def check_taken_once(overrides: Sequence[str]) -> None:
    """Refuse a group that is chosen twice: only the last one would count.

    Raises:
        ConfigError: naming both.
    """
    seen: dict[str, str] = {}
    for word in overrides:
        group, equals, _ = word.lstrip("+").partition("=")
        if equals and is_group(group) and seen.setdefault(group, word) != word:
            raise ConfigError(f"{group} is chosen twice: {seen[group]} and {word}; leave one out.")


def check_swept(word: str, interval: bool, matches: bool) -> None:
    """Refuse values that no sweep goes through: it would do nothing, or end in a traceback.

    Args:
        word: as it was typed.
        interval: whether it is `key=interval(...)`.
        matches: whether it is `key=glob(...)`, which matches the choices of a group.

    Raises:
        ConfigError: with how values are named.
    """
    key = word.partition("=")[0]
    if interval:
        raise ConfigError(f"{word} is for a search, not for a sweep; name values: {key}=A,B.")
    if matches and not is_group(key):
        raise ConfigError(f"{word} matches choices, and {key} has none; name values: {key}=A,B.")


def mend(word: str) -> str:
    """What to do about a word that Hydra cannot read."""
    key, _, value = word.partition("=")
    if value.startswith("~"):
        return f"a shell replaces ~ at the beginning of a word only; write {key}=$HOME{value[1:]}"
    if value.startswith("="):
        return f"one equals sign is enough: {key}={value.lstrip('=')}"
    if " " in key or re.search(r" \S+=", value):
        return "it holds several words; leave out the quotes around them"
    return (
        "close its brackets and quotes, leave no comma at its end, and quote a value that holds "
        "blanks or signs, as in key=\"'a b'\""
    )


def meant(group: str, name: str, offered: set[str]) -> str:
    """A hint for a choice that there is not; people type a file's path, too."""
    path = Path(name)
    if path.suffix == ".yaml" and path.stem not in offered and path.is_file():
        return (
            "a choice is a file's name without its ending: "
            f"--config-dir {path.parent.parent} {group}={path.stem}"
        )
    inside = next((conf for conf in further() if (conf / f"{name}.yaml").is_file()), None)
    if inside is not None and inside.name == group:
        return f"{name}.yaml lies in {inside}; the folder above it is meant: {inside.parent}"
    if group == "env" and re.search(r"-v\d+$", name):
        return f"a Gymnasium id is written env=gymnasium env.id={name}"
    word = path.stem if path.suffix == ".yaml" else name
    hint = hint_for(group, word)
    if group == "env" and not get_close_matches(word.lower(), offered, n=1, cutoff=SURE):
        hint = registered(word)
    return hint or nearest(word, offered)


def absent(name: str, known: set[str]) -> str:
    """A hint for a key that is not there: the choices of its group that have it, or the nearest."""
    if re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+", name):
        return "a variable of the shell stands before the command"
    if hint := NO_OPTION.get(name.rpartition(".")[2]):
        return hint
    group, _, key = name.partition(".")
    own = f"{group}.{ELSEWHERE.get(key)}"
    if own in known:
        return f"did you mean '{own}'?"
    having = [choice for choice in sorted(choices(group)) if key in values_of(f"{group}/{choice}")]
    if having:
        words = [f"{group}={choice}" for choice in having[:MOST_HAVING]]
        return f"{' and '.join(words)} {'have' if len(words) > 1 else 'has'} it"
    return nearest_key(name, known)


def several_values(word: str) -> str:
    """Of a word with commas, where one value is wanted."""
    key, _, value = word.partition("=")
    number = f" A number is written {_written(value)}." if NUMBER.fullmatch(value) else ""
    return (
        f"{word} names several values. Add -m to run a job for each, or write {key}=[{value}] for "
        f"one list.{number}"
    )


def _written(number: str) -> str:
    """The same as it is written here."""
    return number.replace(",", "." if number.lstrip("-").startswith("0,") else "")


def one_only(word: str, group: str, names: Sequence[Any]) -> str:
    """Of a list, where one choice is wanted."""
    return (
        f"{word} is a list, and a run takes one {group}. Choose one, or write -m "
        f"{group}={','.join(map(str, names))} for a job with each."
    )
