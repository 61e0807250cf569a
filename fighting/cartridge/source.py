"""A profile's file and where each of its values stands, so that every refusal names a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from frugal_rl.errors import ConfigError, DataError
from frugal_rl.untrusted.files import read_text
from frugal_rl.untrusted.nested import yaml_and_marks
from frugal_rl.untrusted.printing import printable

Keys = tuple[str | int, ...]
LONGEST_SHOWN = 200
"""Characters of an expression in its refusal."""


@dataclass(frozen=True)
class Source:
    """A file's name, its text, and the place (line, column, index, style) of each value."""

    name: str
    text: str = ""
    marks: Mapping[Keys, yaml.Node] = field(default_factory=dict)
    folder: Path = Path()

    def at(self, *keys: str | int) -> str:
        """`mine.yaml, line 12: memory.timer`; the line of the nearest key that is there."""
        line = ""
        for end in range(len(keys), -1, -1):
            if node := self.marks.get(keys[:end]):
                line = f", line {node.start_mark.line + 1}"
                break
        return f"{self.name}{line}{': ' if keys else ''}{spelled(keys)}"

    def within(self, keys: Keys, offset: int) -> str:
        """`mine.yaml, line 12, column 9: reward`: a place inside a text."""
        node = self.marks.get(keys)
        if not isinstance(node, yaml.ScalarNode):
            return f"{self.name}, column {offset + 1}: {spelled(keys)}"
        index = self._index(node, offset)
        line = self.text.count("\n", 0, index)
        column = index - (self.text.rfind("\n", 0, index) + 1)
        return f"{self.name}, line {line + 1}, column {column + 1}: {spelled(keys)}"

    def _index(self, node: yaml.ScalarNode, offset: int) -> int:
        """Where a text's character stands in the file; YAML folds lines, so letters are counted."""
        index = node.start_mark.index
        if node.style in ("|", ">"):
            index = self.text.index("\n", index)
        elif node.style in ("'", '"'):
            index += 1
        wanted = len("".join(node.value[:offset].split()))
        more = bool(node.value[offset:].strip())  # else the place is behind the last letter
        while index < len(self.text) and (wanted or (more and self.text[index].isspace())):
            wanted -= not self.text[index].isspace()
            index += 1
        return index


@dataclass(frozen=True)
class Text:
    """An expression as it stands in a profile."""

    text: str
    keys: Keys
    source: Source
    each: int = 0
    """Values that it gives, `n` counting from 0; 0: it gives one and knows no `n`."""

    def problem(self, words: str, offset: int = 0) -> ConfigError:
        """A refusal that names line and column and shows the expression."""
        shown = printable(" ".join(self.text.split()), LONGEST_SHOWN)
        return ConfigError(f"{self.source.within(self.keys, offset)}: {words}, in `{shown}`.")


def spelled(keys: Keys) -> str:
    """`start[2].until` for a place in nested values."""
    words = "".join(
        f"[{key}]" if isinstance(key, int) else f".{printable(str(key))}" for key in keys
    )
    return words.lstrip(".")


def read(path: Path) -> tuple[Any, Source]:
    """The content of a YAML file and where it stands.

    Raises:
        ConfigError: it is no valid YAML.
    """
    try:
        text = read_text(path)
        values, node = yaml_and_marks(text)
    except DataError as error:
        comma = ", " if str(error).startswith("line ") else ": "
        raise ConfigError(
            f"{path.name}{comma}{error}. Quote words that hold ':' or '#'."
        ) from error
    marks: dict[Keys, yaml.Node] = {}
    _mark(node, (), marks, path.name)
    return values, Source(path.name, text, marks, path.parent)


def _mark(node: yaml.Node | None, keys: Keys, marks: dict[Keys, yaml.Node], file: str) -> None:
    """Note where each value stands.

    Raises:
        ConfigError: a name that stands twice, of which YAML would keep the second.
    """
    if node is None:
        return
    marks[keys] = node
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            place = (*keys, str(key.value))
            if place in marks:
                line = key.start_mark.line + 1
                raise ConfigError(f"{file}, line {line}: {spelled(place)} stands twice; keep one.")
            _mark(value, place, marks, file)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            _mark(value, (*keys, number), marks, file)
