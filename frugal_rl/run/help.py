"""What `--help` prints: groups with their choices, then every option with what its file says.

Read from `conf/` itself. Hydra's own listing copies its whole configuration once per group, three
quarters of the seconds that `--help` took.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from frugal_rl.errors import ConfigError
from frugal_rl.invocation import command_words
from frugal_rl.run.composing import check_choices, check_keys, compose_plain, plain
from frugal_rl.run.search_path import choices, conf_folders

WORDS = "[group=choice ...] [key=value ...] [-m] [--config-dir DIR] [--json | --quiet]"
GROUPS = ("agent", "algo", "env", "experiment", "hardware", "launch", "memory", "tracking", "vec")
ZOO = "  algo=zoo zoo.env=ID      an entry of RL Baselines3 Zoo; zoo.algo=, zoo.file=, zoo.without="
"""A choice that is no file: whole command lines are translated."""
KEY = re.compile(r"( *)([\w]+):( .*)?$")
COLUMN = 40
"""Where descriptions begin; after a longer option, on the next line."""


def help_text(about: str, config_name: str, words: Sequence[str]) -> str:
    """The help of one command, for the configuration that `words` compose.

    Raises:
        ConfigError: words that compose nothing.
    """
    check_choices(words)
    try:
        cfg, chosen = compose_plain(config_name, words)
    except ConfigError:
        check_keys(config_name, words)  # says more exactly which
        raise
    said = descriptions(config_name, chosen)
    lines = [about, "", f"usage: {shlex.join(command_words(config_name))} {WORDS}", ""]
    groups = {name: value for name, value in chosen.items() if name in GROUPS}
    if groups:
        lines += ["groups: GROUP=CHOICE takes all options of conf/GROUP/CHOICE.yaml"]
        lines += [_group(name, value) for name, value in sorted(groups.items())]
        lines += [ZOO, ""] if "algo" in groups else [""]
    lines += ["options: KEY=VALUE, as they stand for these choices"]
    for key, value in _leaves(plain(cfg, whole=False)):
        lines += _option(key, value, said.get(key, ""))
    if groups:
        lines += ["", "Other choices have other options: add a word, as in --help env=mine."]
    return "\n".join(lines) + "\n"


def _group(name: str, chosen: str | None) -> str:
    offered = sorted(choices(name))
    return f"  {f'{name}={chosen}'.replace('=None', '='):<24} {', '.join(offered)}"


def _option(key: str, value: Any, said: str) -> list[str]:
    """An option with what is said of it: on one line, or as wide as the terminal is."""
    word = f"  {key}={_shown(value)}"
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else len(said) + COLUMN
    rows = textwrap.wrap(said, max(width - COLUMN, COLUMN))
    first = [word] if len(word) > COLUMN - 2 or not rows else []
    lines = [f"{'':<{COLUMN}}{row}" for row in rows]
    if rows and not first:
        lines[0] = f"{word:<{COLUMN}}{rows[0]}"
    return [*first, *lines]


def _shown(value: Any) -> str:
    """A value as it is typed."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = str(value)
    return re.sub("[' ]", "", text) if isinstance(value, list) else text


def _leaves(values: Any, before: str = "") -> list[tuple[str, Any]]:
    """Options by dotted key; what names a class is left to the files."""
    found: list[tuple[str, Any]] = []
    for name, value in values.items():
        key = f"{before}{name}"
        if isinstance(value, dict) and value:
            found += _leaves(value, f"{key}.")
        elif name != "_target_":
            found.append((key, value))
    return found


def descriptions(config_name: str, chosen: Mapping[str, str | None]) -> dict[str, str]:
    """What the files of a configuration say of each option, by dotted key."""
    said: dict[str, str] = {}
    for path in _found(f"{config_name}.yaml"):
        said |= _comments(path.read_text(), "")
    for group, choice in chosen.items():
        for path in _found(f"{group}/{choice}.yaml"):
            text = path.read_text()
            whole = "@package _global_" in text.partition("\n")[0]
            said |= _comments(text, "" if whole else group.replace("/", ".") + ".")
    return said


def _found(name: str) -> list[Path]:
    return [conf / name for conf in conf_folders() if (conf / name).is_file()][:1]


def _comments(text: str, before: str) -> dict[str, str]:
    """The comment above each key; one at a file's very beginning is the file's own."""
    said: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    comment: list[str] = []
    lines = text.split("\n")
    while lines and lines[0].startswith("#"):
        lines.pop(0)
    for line in lines:
        if line.lstrip().startswith("#"):
            comment.append(line.strip(" #"))
            continue
        match = KEY.match(line)
        if match and not match[2].startswith("_"):
            depth = len(match[1])
            path = [(d, name) for d, name in path if d < depth] + [(depth, match[2])]
            said[before + ".".join(name for _, name in path)] = " ".join(comment)
        comment = []
    return said
