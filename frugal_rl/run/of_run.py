"""Words that a command about a saved run need not be told: they stand in the run's folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from frugal_rl.errors import DataError
from frugal_rl.run.search_path import choices
from frugal_rl.untrusted.files import read_text
from frugal_rl.untrusted.nested import parse_yaml

GROUPS = ("env", "agent", "algo", "vec")
RESOLVED = "cfg.resolved.yaml"


def groups_of_run(words: Sequence[str]) -> list[str]:
    """The groups of `checkpoint=RUN` whose values are changed, as `env=fighting`.

    `evaluate checkpoint=RUN env.opponent=cpu` is composed with the options of RUN's environment
    instead of those of the default one. Only choices that exist here are taken over.
    """
    typed = dict(word.lstrip("+").partition("=")[::2] for word in words)
    changed = {key.partition(".")[0] for key in typed if "." in key}
    wanted = [group for group in GROUPS if group in changed and group not in typed]
    if not (wanted and typed.get("checkpoint")):
        return []
    chosen = _choices(Path(typed["checkpoint"].strip("'\"")))
    named = {group: str(chosen.get(group)) for group in wanted}
    return [f"{group}={name}" for group, name in named.items() if name in choices(group)]


def _choices(path: Path) -> Mapping[str, Any]:
    """The choice of each group of a run; none where its folder does not tell."""
    for folder in (path, path.parent, path.parent.parent):
        if (folder / RESOLVED).is_file():
            try:
                values = parse_yaml(read_text(folder / RESOLVED))
            except DataError:
                return {}
            found = values.get("choices") if isinstance(values, dict) else None
            return found if isinstance(found, dict) else {}
    return {}
