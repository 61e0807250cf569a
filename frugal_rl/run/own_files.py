"""What is wrong with configuration files of the user's own, in words that name the file.

Hydra reads them unchecked and reports what it stumbles over, seldom where.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from frugal_rl.errors import DataError
from frugal_rl.run.nearness import in_one_line
from frugal_rl.run.search_path import further, is_group
from frugal_rl.untrusted.files import read_text
from frugal_rl.untrusted.nested import parse_yaml
from frugal_rl.untrusted.printing import shown

UNREADABLE = (yaml.YAMLError, UnicodeDecodeError)
"""What reading such a file raises."""
MISSING = re.compile(r"Interpolation key '(?P<name>[^']+)' not found")
REMEDIES = {
    "is no UTF-8 text": " Save it as UTF-8.",
    "'\\t'": " YAML is indented with blanks, never with tabs.",
}
"""What to do, by a piece of what is wrong."""
KIND = "_target_: package.module.Class"


def fault_in_words(words: Sequence[str], error: str) -> str:
    """What is wrong with the user's file that kept these words from being composed; else the error.

    Args:
        words: of the command line.
        error: what Hydra said.
    """
    said = in_one_line(error.partition("\n\n")[0])
    chosen = [word.lstrip("+").partition("=")[::2] for word in words]
    files = {g: path for g, name in chosen if is_group(g) and (path := own_file(g, name))}
    faults = (fault_of(group, path, said) for group, path in files.items())
    return next(filter(None, faults), said)


def own_file(group: str, name: str) -> Path | None:
    """The user's file of a choice; None where it is one of ours, or there is none."""
    places = (conf / group / f"{name}.yaml" for conf in further())
    return next((path for path in places if path.is_file()), None)


def fault_of(group: str, path: Path, said: str) -> str | None:
    """What is wrong with a file that could not be composed; None where it is not this file."""
    try:
        text = read_text(path)
        values = parse_yaml(text)
    except DataError as error:
        words = str(error) if shown(path) in str(error) else f"{shown(path)}: {error}."
        return words + next((todo for piece, todo in REMEDIES.items() if piece in words), "")
    if not isinstance(values, dict):
        return f"{shown(path)} holds no options. Its first line is {KIND}"
    if f"In '{group}/{path.stem}'" in said:
        return f"{shown(path)}: its defaults name a file that is not there. {said}"
    missing = MISSING.search(said)
    if missing and f"${{{missing['name']}}}" in text:
        return f"{shown(path)}: ${{{missing['name']}}} leads nowhere; name a key that there is."
    if missing and missing["name"].partition(".")[0] == group:
        return f"{shown(path)} has no line '{missing['name'].partition('.')[2]}: ...'; add one."
    return None
