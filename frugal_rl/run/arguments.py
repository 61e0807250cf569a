"""The words of a command line, before Hydra reads them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise

from frugal_rl.errors import ConfigError
from frugal_rl.report.speech import Mode
from frugal_rl.run.nearness import SURE
from frugal_rl.run.search_path import choices

OTHER_CONFIGURATION = {"--config-path", "-cp", "--config-name", "-cn"}
ASKING = {"--hydra-help", "--cfg", "-c", "--info", "-i", "--version"}
ASKING_TO_COMPLETE = ("-sc", "--shell-completion", "--shell_completion")
"""Words that ask Hydra something, instead of running the command."""
CONFIG_DIR = ("--config-dir", "-cd")
SWITCHES = {"-m", "--multirun", "-r", "--run", "--resolve"}
"""Words of Hydra's that no other word belongs to."""
WITH_WORD = {
    *OTHER_CONFIGURATION, *CONFIG_DIR, "--cfg", "-c", "--info", "-i", "--package", "-p",
    "--experimental-rerun", *ASKING_TO_COMPLETE,
}  # fmt: skip
WITHOUT_WORD = SWITCHES | {"--help", "-h", "--hydra-help", "--version", "--json", "--quiet"}
"""All flags of a command line, by whether a word belongs to them."""


SAID_OTHERWISE = {"env.spec": "env.spec_file"}
"""Keys by what people type for them."""


FOLDERS = ("hydra.run.dir=", "hydra.sweep.dir=")
"""Beginnings of words that say where a run lies: a command that is printed for it keeps them."""
OPEN = ("env.kwargs.",)
"""Beginnings of keys that no file can know: Hydra adds what follows only behind two plus signs."""


def in_our_words(arguments: Sequence[str]) -> list[str]:
    """The words with the keys that the configurations have."""
    split = (word.partition("=") for word in arguments)
    said = [SAID_OTHERWISE.get(key, key) + equals + value for key, equals, value in split]
    return [f"++{word}" if word.startswith(OPEN) and "=" in word else word for word in said]


def check_place() -> None:
    """Refuse to start in a folder that was deleted: nothing has a place beside it.

    Raises:
        ConfigError: it is gone.
    """
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise ConfigError(
            "The folder that this command is started in was deleted; change into one that is there."
        ) from error


def take_mode(arguments: list[str]) -> Mode:
    """How to speak; takes `--json` and `--quiet` out of the words, which Hydra does not know.

    Raises:
        ConfigError: both of them were typed.
    """
    wanted = [mode for mode in (Mode.json, Mode.quiet) if f"--{mode.value}" in arguments]
    if len(wanted) > 1:
        raise ConfigError("--json and --quiet cannot be had together; --json is quiet already.")
    arguments[:] = [word for word in arguments if word not in ("--json", "--quiet")]
    return wanted[0] if wanted else Mode.people


def switches_first(arguments: Sequence[str]) -> list[str]:
    """The words with those in front that stand for themselves.

    Hydra's parser takes overrides from one place only: it refuses those behind a switch among them.
    """
    first = [word for word in arguments if word in SWITCHES]
    return first + [word for word in arguments if word not in SWITCHES]


def sweeps(arguments: Sequence[str]) -> bool:
    """Whether several jobs are asked for."""
    return bool({"-m", "--multirun"} & set(arguments))


def asks(arguments: Sequence[str]) -> bool:
    """Whether help or the like is asked for."""
    return bool((ASKING | set(ASKING_TO_COMPLETE)) & set(arguments))


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Whether the command's own help is asked for."""
    return bool({"--help", "-h"} & set(arguments))


def typed_words(arguments: Sequence[str]) -> list[str]:
    """The overrides among the words; none where another configuration is named."""
    return [] if OTHER_CONFIGURATION & set(arguments) else overrides(arguments)


def overrides(arguments: Sequence[str]) -> list[str]:
    """The words that set, add or remove something."""
    return [a for a in arguments if (not a.startswith("-") and "=" in a) or a.startswith("~")]


def check_added(words: Sequence[str], groups: Collection[str]) -> None:
    """Refuse `+key=value` of no group: nothing reads what is added at the top.

    Raises:
        ConfigError: naming the key.
    """
    for word in words:
        key = word[1:].partition("=")[0].partition("@")[0]
        new = word.startswith("+") and not word.startswith("++") and "." not in key
        if new and key not in groups:
            raise ConfigError(f"{word} adds a key that nothing reads; is {key}=, without +, meant?")


def typed_folders(arguments: Sequence[str]) -> list[str]:
    """The folders that `--config-dir` names: behind a blank or an equals sign."""
    behind = [b for a, b in pairwise(arguments) if a in CONFIG_DIR]
    joined = [a.partition("=")[2] for a in arguments if a.startswith("--config-dir=")]
    return [*behind, *joined]


def check_form(arguments: Sequence[str]) -> None:
    """Refuse words that are neither an option of Hydra's nor an override.

    Raises:
        ConfigError: saying how an override is written.
    """
    if arguments and arguments[-1] in CONFIG_DIR:
        raise ConfigError(f"{arguments[-1]} names no folder; write {arguments[-1]} FOLDER.")
    behind_flag = {b for a, b in pairwise(arguments) if a in WITH_WORD}
    behind, before = dict(pairwise(arguments)), {b: a for a, b in pairwise(arguments)}
    for word in arguments:
        if word in FOLDERS:
            raise ConfigError(f"{word} is empty; name a folder, or leave it out.")
        _check_flag(word, behind)
        if word in behind_flag or word.startswith(("-", "~")):
            continue
        if word.startswith("=") and word != "=":
            raise ConfigError(f"{word} is no override, which are written key=value.")
        if "=" not in word:
            key, _, value = word.partition(":")
            after = behind.get(word, "")
            value = value or ("true" if word in SWITCHED else "")
            if after == "=":  # blanks around the sign
                value = behind.get("=", "")
            elif word in NOT_FLAGS and after and "=" not in after:
                value = after
            hint = f"{key}={value}" if value else f"{word}=VALUE"
            if word in ("help", "?"):
                hint = "--help"
            first = before.get(word, "")
            if first.endswith("=") and first != "=":  # a blank behind the sign
                hint = first + word
            several = "=" in first and not first.endswith("=")
            if not (value or several or first.endswith("=")):
                hint = _choice(word) or hint
            blank = " Quote a value that holds blanks." if several and not value else ""
            if first.startswith(LISTS):
                blank = f" A list is written {first.replace('=', '=[', 1)},{word}]."
            raise ConfigError(f"{word} is no override, which are written key=value: {hint}?{blank}")


def _choice(word: str) -> str:
    """The override that chooses what a word alone names; empty where it names nothing."""
    if re.search(r"-v\d+$", word):
        return f"env=gymnasium env.id={word}"
    if word.endswith((".pt", ".zip")):
        return f"checkpoint={word}"
    if "/" in word:
        return f"checkpoint={word} or runs=[{word}]"
    return next((f"{group}={word}" for group in OF_A_RUN if word in choices(group)), "")


def _check_flag(word: str, behind: Mapping[str, str]) -> None:
    """Refuse a flag that is none, with what it may mean: another one, or an override."""
    flag, equals, value = word.partition("=")
    if not word.startswith("-") or flag in WITH_WORD:
        return
    if flag in WITHOUT_WORD:
        if equals:
            raise ConfigError(f"{flag} takes no value; write {flag} alone.")
        return
    near = get_close_matches(flag, WITH_WORD | WITHOUT_WORD, n=1, cutoff=SURE)
    if near:
        raise ConfigError(f"{word} is no option; did you mean '{near[0]}'?")
    key, after = flag.lstrip("-").replace("-", "_"), behind.get(word, "")
    value = value or ("" if "=" in after or after.startswith("-") else after)
    raise ConfigError(f"{word} is no option; write {key}={value}")


LISTS = ("runs=", "plugins=", "env.levels=", "checkpoint=")
"""Beginnings of words behind which people leave blanks between several values."""
SWITCHED = ("compare", "debug", "tournament", "visualization")
"""Keys that take true or false, which people type alone."""
OF_A_RUN = ("env", "agent", "algo", "memory", "experiment")
"""Groups whose choices people type alone, in this order."""
NOT_FLAGS = ("agent", "algo", "env", "memory", "vec", "seed", "experiment", "resume", "checkpoint")
"""Keys that people type as if they were flags."""


def check_letters(typed: Sequence[str]) -> None:
    """Refuse letters that Python could not read: under the locale C without its UTF-8 mode.

    Raises:
        ConfigError: naming the first word that has some, and the locale's remedy.
    """
    for word in typed:
        if any("\udc80" <= letter <= "\udcff" for letter in word):
            read, known = os.fsencode(word).decode(errors="replace"), sys.getfilesystemencoding()
            raise ConfigError(
                f"{read} holds letters that Python does not read here, where text is {known}: set "
                "PYTHONUTF8=1 or LC_ALL=C.UTF-8."
            )
