"""One entry of a hyperparameter file: found by environment, its values taken one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from frugal_rl.errors import ConfigError, DataError
from frugal_rl.invocation import program
from frugal_rl.run.nearness import nearest
from frugal_rl.run.zoo.expressions import read_expression
from frugal_rl.untrusted.files import read_text
from frugal_rl.untrusted.nested import parse_yaml
from frugal_rl.untrusted.odd import refused
from frugal_rl.untrusted.printing import printable, shown

ATARI = re.compile(r"ALE/.+-v\d|.+NoFrameskip-v\d")
"""Ids that a file's entry `atari` is for."""
PACKAGE = "rl_zoo3"


@dataclass
class Entry:
    """What is still to be taken of an entry; `where` names it in messages."""

    where: str
    values: dict[str, Any]
    without: frozenset[str] = frozenset()
    """Names inside of values that are left out, `policy_kwargs.ortho_init`."""
    newest: str = ""
    """The key that was taken last."""

    def take(self, key: str, default: Any = None) -> Any:
        """A value, once."""
        self.newest = key
        value = self.values.pop(key, default)
        return default if value is None else value

    def arguments(self, key: str) -> dict[str, Any]:
        """A value that is a mapping, or a text that says one."""
        value = self.take(key, {})
        if isinstance(value, str):
            try:
                value = read_expression(value)
            except DataError as error:
                raise self.refusal(key, printable(str(error)), "") from error
        if not isinstance(value, Mapping):
            raise self.refusal(key, f"{printable(str(value))} holds no names", "")
        return {k: v for k, v in value.items() if f"{key}.{k}" not in self.without}

    def refusal(self, key: str, why: str, remedy: str) -> ConfigError:
        """The line that refuses a value."""
        leave = f"leave it out with zoo.without=[{key}]"
        said = f"{printable(key)}: {printable(why)}"
        return ConfigError(f"{self.where} sets {said}; {remedy or leave}.")

    def odd_values_told(self) -> AbstractContextManager[None]:
        """Whatever a value of another kind runs into names its key.

        Raises:
            ConfigError: in the place of any other error.
        """

        def refusal(error: Exception) -> ConfigError:
            return self.refusal(self.newest, f"{type(error).__name__} ({error})", "")

        return refused(refusal)


def find_entry(file: str, algorithm: str, env: str, without: Sequence[str]) -> Entry:
    """The entry for an environment, less the keys that are left out.

    Raises:
        ConfigError: there is no such file or entry.
    """
    path = Path(file) if file else published(algorithm)
    text = read_text(path)
    try:
        entries = parse_yaml(text)
    except DataError as error:
        raise DataError(f"zoo.file={shown(path)}: {error}.") from error
    if not isinstance(entries, dict):
        raise DataError(f"zoo.file={shown(path)} has no entries by environment.")
    key = env if env in entries or not ATARI.fullmatch(env) else "atari"
    values = entries.get(key)
    if not isinstance(values, dict):
        names = [str(k) for k, v in entries.items() if isinstance(v, dict)]
        raise ConfigError(f"{shown(path)} has no entry for zoo.env={env}; {nearest(env, names)}")
    absent = sorted({w for w in without if w.partition(".")[0] not in values})
    if absent:
        raise ConfigError(f"zoo.without={absent} names what '{key}' in {shown(path)} does not set.")
    left = {str(k): v for k, v in values.items() if k not in without}
    return Entry(f"'{key}' in {printable(path.name)}", left, frozenset(without))


def published(algorithm: str) -> Path:
    """The file that the installed package brings.

    Raises:
        ConfigError: it is not installed, or brings none.
    """
    spec = find_spec(PACKAGE)
    places = [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []
    for place in (folder for package in places for folder in (package, package.parent)):
        file = place / "hyperparams" / f"{algorithm}.yml"
        if file.is_file():
            return file
    raise ConfigError(
        f"algo=zoo reads {algorithm}.yml of the package rl_zoo3, which is not here: "
        f"{program('pip', 'install', 'rl_zoo3')}, or name a file of your own: "
        f"zoo.file=hyperparams/{algorithm}.yml."
    )
