"""`scripts/plan.py why="rollout: frame"`: a part's formula, its code, and what changes it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields, replace
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from frugal_rl.errors import ConfigError
from frugal_rl.memory.advice import alike
from frugal_rl.memory.honour import typed_form, unread
from frugal_rl.memory.part import Part, human
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.memory.savings import SAVINGS, readers_of
from frugal_rl.observation.encoding import offered
from frugal_rl.run.nearness import nearest

if TYPE_CHECKING:
    from frugal_rl.memory.plan import Plan
    from frugal_rl.run.config import RunConfig

COLUMN = "rollout: "


@dataclass(frozen=True)
class Effect:
    """What one override makes of a part; None where the part is gone."""

    word: str
    label: str
    bytes_: int | None


def part_named(plan: Plan, name: str) -> Part:
    """The part of a name.

    Raises:
        ConfigError: there is none; names the nearest.
    """
    found = {part.name: part for part in plan.parts}
    if name not in found:
        near = [part for part in found if part.startswith(name)] or found
        raise ConfigError(f"why={name} is no part of this plan; {_any_of(name, near)}")
    return found[name]


def _any_of(name: str, parts: Collection[str]) -> str:
    """The nearest part; all of them where several begin as it was typed."""
    if len(parts) > 1 and all(part.startswith(name) for part in parts):
        return f"choose from {', '.join(sorted(parts))}"
    return nearest(name, parts)


def effects(run: RunConfig, plan: Plan, name: str) -> list[Effect]:
    """What each other value of a switch, or of the part's own field, makes of the part."""
    here = _size(part_named(plan, name))
    found = []
    for word, varied in [*_switched(run), *_represented(run, name)]:
        try:
            tried = alike(varied, plan)
        except ConfigError:  # a combination that this environment refuses
            continue
        part = next((p for p in tried.parts if p.name == name), None)
        size = None if part is None else _size(part)
        if size != here:
            found.append(Effect(word, _label(word), size))
    return sorted(found, key=lambda e: -1 if e.bytes_ is None else e.bytes_)


def _size(part: Part) -> int:
    return part.ram_bytes + part.vram_bytes


def _switched(run: RunConfig) -> Iterator[tuple[str, RunConfig]]:
    """The run with one switch of its profile changed, where something reads the value."""
    for field in fields(MemoryProfile):
        now = getattr(run.memory, field.name)
        for value in _others(now) if readers_of(field.name) else ():
            varied = replace(run, memory=replace(run.memory, **{field.name: value}))
            if field.name not in {lost.switch for lost in unread(varied)}:
                yield f"memory.{field.name}={typed_form(value)}", varied


def _others(value: Any) -> list[Any]:
    """The values that a switch could have instead."""
    if isinstance(value, Enum):
        return [member for member in type(value) if member is not value]
    return [not value] if isinstance(value, bool) else []


def _represented(run: RunConfig, name: str) -> Iterator[tuple[str, RunConfig]]:
    """The run with the column's field in each other representation that it offers."""
    by_name = run.env.spec().by_name
    field_name = name.removeprefix(COLUMN)
    if not name.startswith(COLUMN) or field_name not in by_name:
        return
    for word in offered(by_name[field_name]):
        env: Any = replace(run.env, fields={**run.env.fields, field_name: word})  # type: ignore[type-var]
        yield f"env.fields.{field_name}={word}", replace(run, env=env)


def _label(word: str) -> str:
    """What the table of savings says of an override; nothing where it is none of them."""
    return next((s.label.value for s in SAVINGS if word in s.words), "")


def code_line(source: str) -> str:
    """`module:name` as `path:line`, without importing the module; empty where it is not found."""
    module, _, qualified = source.partition(":")
    found = find_spec(module) if module else None
    if found is None or not found.origin:
        return ""
    path = Path(found.origin)
    node: Any = ast.parse(path.read_text())
    for name in qualified.split("."):
        node = next((n for n in ast.walk(node) if getattr(n, "name", None) == name), node)
    root = path.parents[len(module.split(".")) - 1]
    if path.name == "__init__.py":
        root = root.parent
    return f"{path.relative_to(root)}:{getattr(node, 'lineno', 1)}"


def why_view(run: RunConfig, plan: Plan, name: str) -> Group:
    """Formula, code line and phases of a part, and the effect of each switch on it."""
    part = part_named(plan, name)
    phases = ", ".join(sorted(p.value for p in part.phases))
    rows = {
        "part": f"{part.name} ({part.kind.value}, {part.confidence.value})",
        "bytes": f"{_size(part):,} ({human(_size(part))})"
        + (" on the accelerator" if part.vram_bytes and not part.ram_bytes else ""),
        "formula": part.formula,
        "allocated by": code_line(part.source) or "not said",
        "alive in": phases,
    }
    told = [Text(f"{key:13} {value}") for key, value in rows.items()]
    return Group(*told, _effects_table(part, effects(run, plan, name)))


def _effects_table(part: Part, found: list[Effect]) -> Table | Text:
    """Override | label | bytes then | change."""
    if not found:
        return Text("No switch of the memory profile changes this part.")
    table = Table(title="what each switch makes of it", title_justify="left")
    table.add_column("override", no_wrap=True)
    table.add_column("label")
    table.add_column("bytes", justify="right")
    table.add_column("change", justify="right")
    for effect in found:
        size = 0 if effect.bytes_ is None else effect.bytes_
        change = f"{size - _size(part):+,}"
        table.add_row(
            effect.word, effect.label, "gone" if effect.bytes_ is None else f"{size:,}", change
        )
    return table
