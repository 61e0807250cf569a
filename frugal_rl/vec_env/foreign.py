"""Environments that know nothing of this project: their static fields are found by content."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np

from frugal_rl.observation.spec import Derived, ObservationSpec, Static, Stored
from frugal_rl.observation.tables import StaticTable, TableField, Tables


class ForeignEnv:
    """A plain Gymnasium environment, its raw fields taken from its full observation.

    Contents of a table's static fields are interned by their BLAKE2b digest. A windowed field
    gives its newest row, also where the environment shows that one alone.
    """

    def __init__(self, env: Any, spec: ObservationSpec) -> None:
        self.env = env
        self.spec_fields = spec
        self.tables = tables_of(spec)
        self.shown: dict[str, np.ndarray] = {}

    def restart(self, seed: int | None = None) -> None:
        """Start an episode."""
        self.shown, _ = self.env.reset(seed=seed)

    def advance(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        """Take one action: reward, terminated, truncated, info."""
        self.shown, reward, terminated, truncated, info = self.env.step(action)
        return float(reward), terminated, truncated, info

    def raw(self) -> dict[str, np.ndarray]:
        """Raw fields of the current observation, ids of static contents included."""
        raw: dict[str, np.ndarray] = {}
        for f in self.spec_fields.fields:
            if f.name not in self.shown or isinstance(f, Static):
                continue
            value = np.asarray(self.shown[f.name], f.dtype)
            windowed = isinstance(f, Stored) and f.window != 1 and value.shape != f.shape
            raw[f.name] = value[-1] if windowed and not isinstance(f, Derived) else value
        for name, table in self.tables.items():
            rows = {n: np.asarray(self.shown[n], t.dtype) for n, t in table.fields.items()}
            raw[f"{name}_id"] = np.array(intern_by_content(table, rows), np.int32)
        return raw


class WrappedEnv:
    """An environment that offers `raw` and `tables`, stepped through the wrappers around it."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.raw = env.unwrapped.raw
        self.tables: Tables = env.unwrapped.tables

    def restart(self, seed: int | None = None) -> None:
        """Start an episode."""
        self.env.reset(seed=seed)

    def advance(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        """Take one action: reward, terminated, truncated, info."""
        _, reward, terminated, truncated, info = self.env.step(action)
        return float(reward), terminated, truncated, info


def as_raw(env: Any, spec: ObservationSpec) -> Any:
    """An object with `restart`, `advance`, `raw` and `tables`, whatever the environment offers."""
    core = env.unwrapped
    if not (hasattr(core, "raw") and hasattr(core, "tables")):
        return ForeignEnv(env, spec)
    direct = core is env and hasattr(core, "restart") and hasattr(core, "advance")
    return env if direct else WrappedEnv(env)


def tables_of(spec: ObservationSpec) -> Tables:
    """Empty tables for the static fields of a spec, every row of full size."""
    fields: dict[str, list[TableField]] = {}
    for f in spec.fields:
        if isinstance(f, Static):
            fields.setdefault(f.table, []).append(TableField(f.name, f.shape, f.dtype))
    return Tables({name: StaticTable(name, tuple(group)) for name, group in fields.items()})


def intern_by_content(table: StaticTable, rows: dict[str, np.ndarray]) -> int:
    """The id of these contents: equal bytes give equal ids."""
    digest = blake2b(digest_size=16)
    for name in table.fields:
        digest.update(np.ascontiguousarray(rows[name]).view(np.uint8).data)
    return table.intern(digest.digest(), lambda: rows)
