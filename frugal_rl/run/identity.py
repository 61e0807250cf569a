"""What must be equal for a checkpoint to continue a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from frugal_rl.errors import CheckpointError
from frugal_rl.run.renamed import ADDED, current_values
from frugal_rl.untrusted.printing import printable, shown

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

MAY_DIFFER = {"algo.total_steps", "env.kept"}
"""A resumed run may go further; what is kept between runs changes nothing."""


FIRST = ("env.name", "env._target_", "agent._target_", "algo._target_")
"""What says most where several values differ: another problem has other settings all over."""


def identity(run: RunConfig) -> dict[str, Any]:
    """Problem, network, algorithm and stored form, as plain values."""
    encoding = run.encoding()
    return {
        "made_of": made_of(run.env),
        "env": plain(run.env),
        "agent": plain(run.agent),
        "algo": plain(run.algo),
        "storage": {"fields": dict(encoding.choice), "stack": encoding.frame_stack.value},
    }


def made_of(env: Any) -> dict[str, str]:
    """Hashes, by name, of the files that an environment plays and no option changes."""
    return dict(getattr(env, "made_of", {}))


def check_same_files(env: Any, saved: Any, path: str) -> None:
    """Refuse a checkpoint of an environment that is made of other files.

    saved  the checkpoint's `identity`; None, or one without files, where it knows none

    Raises:
        CheckpointError: naming the first file that differs.
    """
    then = saved.get("made_of", {}) if isinstance(saved, Mapping) else {}
    for name, now in made_of(env).items():
        was = then.get(name) if isinstance(then, Mapping) else None
        if was != now:
            raise CheckpointError(
                f"{shown(path)} was trained on another {name} "
                f"({printable(str(was or 'an older one'))}), here it is {now}: train again, or use "
                "the version of the project it belongs to."
            )


def check_same_run(run: RunConfig, saved: Mapping[str, Any], path: str) -> None:
    """Refuse a checkpoint of another problem, network, algorithm or stored form.

    Raises:
        CheckpointError: naming the first value that differs.
    """
    check_same_files(run.env, saved, path)
    now = dict(flatten(identity(run)))
    older = {key: value for key, value in ADDED.items() if key in now}
    then = older | dict(flatten(current_values(saved)))
    for key in sorted(now.keys() | then.keys(), key=_weight):
        if now.get(key) != then.get(key) and key not in MAY_DIFFER:
            raise CheckpointError(
                f"{shown(path)} was trained with {printable(key)}={printable(str(then.get(key)))}, "
                f"this run has {now.get(key)}. Give the overrides of the saved run, or start a new "
                "run without resume."
            )


def _weight(key: str) -> tuple[int, str]:
    """Where a key stands among those that differ."""
    return FIRST.index(key) if key in FIRST else len(FIRST), key


def plain(value: Any) -> Any:
    """A dataclass as nested plain values, each with its class's name."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        values = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"_target_": type(value).__qualname__, **values}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value if isinstance(value, bool | int | float | str | None) else repr(value)


def flatten(values: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested mappings as dotted keys."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from flatten(value, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, values
