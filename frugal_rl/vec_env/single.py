"""One environment among many: stepped, restarted, and its raw fields written into its place."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.vec_env.ending import close_all, program_ended
from frugal_rl.vec_env.object_state import put_back, state_of
from frugal_rl.vec_env.wire import Message, Wire, wires_of

if TYPE_CHECKING:
    from frugal_rl.observation.spec import ObservationSpec
    from frugal_rl.observation.tables import Tables

Stats = dict[str, float]
NewRows = list[tuple[int, str, int, Hashable, dict[str, np.ndarray]]]
"""Static rows met for the first time: environment, table, its own id, key, content."""


@dataclass
class Places:
    """Where N environments write: one array per attribute, in memory or in a shared block.

    raw        name -> [N, *shape]   the observation after the step
    final      name -> [N, *shape]   the last one of an episode that a limit ended
    reward     [N] float32; terminated, truncated [N] bool; actions [N, ...]
    """

    raw: dict[str, np.ndarray]
    final: dict[str, np.ndarray]
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    actions: np.ndarray

    def part(self, first: int, end: int) -> Places:
        """The places of environments [first, end); views."""
        return Places(
            {name: values[first:end] for name, values in self.raw.items()},
            {name: values[first:end] for name, values in self.final.items()},
            self.reward[first:end],
            self.terminated[first:end],
            self.truncated[first:end],
            self.actions[first:end],
        )


@dataclass
class Report:
    """What does not fit fixed places: statistics of ended episodes by place, new static rows."""

    stats: dict[int, Stats] = field(default_factory=dict)
    new_rows: NewRows = field(default_factory=list)
    rows: list[Message] = field(default_factory=list)
    """Of fields that cross as differences, in the order in which they are to be read."""

    def __bool__(self) -> bool:
        return bool(self.stats or self.new_rows or self.rows)


class Singles:
    """Some single environments and their places; the same code in every backend.

    With `tells_ends` the last observation of every episode is told, not only of those cut by a
    limit.

    An environment offers `raw()` (raw fields, unbatched) and `tables`; one that does not is read
    through its full observation, its static fields found by content. One that also offers
    `restart` and `advance` (as `SpecEnv` does) is spared computing full observations.
    """

    def __init__(
        self,
        envs: list[Any],
        cores: list[Any],
        spec: ObservationSpec,
        places: Places,
        first: int = 0,
    ) -> None:
        self.envs, self.cores, self.first = envs, cores, first
        self.seeds: list[int] = []
        self.tells_ends = False
        self.places = places
        self.returns = np.zeros(len(envs))
        self.lengths = np.zeros(len(envs), np.int64)
        self.told = [dict.fromkeys(core.tables, 0) for core in self.cores]
        crossing = {n: f for n, f in wires_of(spec).items() if n not in places.raw}
        kinds = {f.name: (f.shape, np.dtype(f.dtype)) for f in spec.fields}
        self.wires = [{n: Wire(*kinds[n], form) for n, form in crossing.items()} for _ in envs]

    def reset(self, seeds: list[int]) -> Report:
        """Start all episodes."""
        self.seeds, report = list(seeds), Report()
        for i, (core, seed) in enumerate(zip(self.cores, seeds, strict=True)):
            try:
                core.restart(seed)
                self._begun(i, report)
            except SystemExit as end:
                raise self._ended(end, i, "in its first reset") from end
            except Exception as error:
                self._name(error, i, "in its first reset")
                raise
        report.new_rows = self._new_rows()
        return report

    def state(self) -> list[Any]:
        """Environments, and how far their episodes are."""
        counted = zip(self.returns.tolist(), self.lengths.tolist(), self.seeds, strict=True)
        return [[state_of(core), *counts] for core, counts in zip(self.cores, counted, strict=True)]

    def load(self, states: list[Any]) -> Report:
        """Continue from `state()`; shows what was shown last."""
        report, self.seeds = Report(), [int(seed) for *_, seed in states]
        for i, (nodes, total, length, seed) in enumerate(states):
            put_back(self.cores[i], nodes, seed)
            self.returns[i], self.lengths[i] = total, length
            self.told[i] = dict.fromkeys(self.cores[i].tables, 0)
            self._show(i, report)
        report.new_rows = self._new_rows()
        return report

    def step(self, first: int = 0, end: int | None = None) -> Report:
        """One action each for environments [first, end); ended episodes begin anew."""
        report = Report()
        for i in range(first, len(self.cores) if end is None else end):
            self._step(i, report)
        report.new_rows = self._new_rows(first, end)
        return report

    def _step(self, i: int, report: Report) -> None:
        core, places = self.cores[i], self.places
        action = places.actions[i]
        try:
            reward, terminated, truncated, info = core.advance(
                action.item() if action.ndim == 0 else action
            )
            stats = _stats(info or {}) if terminated or truncated else {}
        except SystemExit as end:
            raise self._ended(end, i, self._at(i)) from end
        except Exception as error:
            self._name(error, i, self._at(i))
            raise
        places.reward[i] = reward
        places.terminated[i] = terminated
        places.truncated[i] = truncated and not terminated
        self.returns[i] += places.reward[i]
        self.lengths[i] += 1
        if not (terminated or truncated):
            self._show(i, report)
            return
        if places.truncated[i] or self.tells_ends:
            self._show(i, report, final=True)
        own = {"return": float(self.returns[i]), "length": float(self.lengths[i])}
        report.stats[i] = own | stats
        self._restart(i)
        self._begun(i, report)

    def close(self) -> None:
        """Close all environments and let go of them, so that what they hold ends before Python."""
        close_all(self.envs)
        self.envs, self.cores = [], []

    def _restart(self, i: int) -> None:
        try:
            self.cores[i].restart()
        except SystemExit as end:
            raise self._ended(end, i, f"in its reset after {self.lengths[i]} steps") from end
        except Exception as error:
            self._name(error, i, f"in its reset after {self.lengths[i]} steps")
            raise

    def _at(self, i: int) -> str:
        return f"step {self.lengths[i]} of its episode, action {self.places.actions[i].tolist()}"

    def _ended(self, end: SystemExit, i: int, where: str) -> Exception:
        """The error of an environment that ends the program, named."""
        error = program_ended(end, "while it was played")
        self._name(error, i, where)
        return error

    def _name(self, error: Exception, i: int, where: str) -> None:
        """Tell which environment an error is of."""
        error.add_note(f"Environment {self.first + i}, begun with seed {self.seeds[i]}, {where}.")

    def _begun(self, i: int, report: Report) -> None:
        self.returns[i] = 0
        self.lengths[i] = 0
        self._show(i, report)

    def _show(self, i: int, report: Report, final: bool = False) -> None:
        """Write what an environment observes now into its places, and what crosses otherwise."""
        raw = self.cores[i].raw()
        _write(raw, self.places.final if final else self.places.raw, i)
        for name, wire in self.wires[i].items():
            report.rows.append((i, name, final, wire.pack(raw[name])))

    def _new_rows(self, first: int = 0, end: int | None = None) -> NewRows:
        """Rows that the environments' own tables have gained since they were last told."""
        new: NewRows = []
        for i in range(first, len(self.cores) if end is None else end):
            for name, table in self.cores[i].tables.items():
                for own in range(self.told[i][name], len(table)):
                    content = {n: v.copy() for n, v in table.row(own).items()}
                    new.append((i, name, own, table.keys[own], content))
                self.told[i][name] = len(table)
        return new


def _write(raw: Mapping[str, np.ndarray], into: Mapping[str, np.ndarray], i: int) -> None:
    for name, values in into.items():
        values[i] = raw[name]


def _stats(info: Mapping[str, Any]) -> Stats:
    """What an episode's last `info` tells: `success` (0 where it is no number) and `stats`."""
    success = _number(info.get("success", info.get("is_success", False)))
    told = info.get("stats", {})
    named = told.items() if isinstance(told, Mapping) else ()
    found = {str(name): _number(value) for name, value in named}
    return {"success": success or 0.0} | {k: v for k, v in found.items() if v is not None}


def _number(value: Any) -> float | None:
    """A number of a stranger's `info`; None for what is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


class IdMap:
    """Turns the ids of single environments' own tables into those of the shared ones."""

    def __init__(self, tables: Tables, num_envs: int) -> None:
        self.tables = tables
        self._maps = {name: np.zeros((num_envs, 1), np.int32) for name in tables}

    def learn(self, first: int, new_rows: NewRows) -> None:
        """Intern the rows that environments from `first` on have met, in the order they came."""
        for place, name, own, key, content in new_rows:
            ids = self._maps[name]
            if own >= ids.shape[1]:
                ids = self._maps[name] = np.pad(ids, ((0, 0), (0, ids.shape[1])))
            ids[first + place, own] = self.tables[name].intern(key, content.copy)

    def renumber(self, moved: Mapping[str, np.ndarray]) -> None:
        """The shared rows have got other ids: of each table the new ones [len] by the old."""
        for name, now in moved.items():
            if len(now):
                self._maps[name] = now[self._maps[name]]

    def shared(self, raw: Mapping[str, np.ndarray], envs: np.ndarray) -> dict[str, np.ndarray]:
        """Raw fields with shared ids; `envs` [n] names the environment of each row."""
        ids = {
            f"{n}_id": m[envs, raw[f"{n}_id"]] for n, m in self._maps.items() if f"{n}_id" in raw
        }
        return {**raw, **ids}
