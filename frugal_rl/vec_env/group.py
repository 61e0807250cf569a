"""What all backends of single environments share: places, encoding, episode statistics."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from gymnasium import spaces

from frugal_rl.errors import DataError
from frugal_rl.observation.codecs.pooled import FoundCodec
from frugal_rl.observation.encoder import Encoder, needed_raw
from frugal_rl.observation.numbering import number_again, numbered
from frugal_rl.vec_env.backend import EnvMaker, reuses
from frugal_rl.vec_env.ending import close_all, program_ended
from frugal_rl.vec_env.foreign import as_raw
from frugal_rl.vec_env.interface import EndedEpisodes, Rows, Step, VectorEnv, env_seeds
from frugal_rl.vec_env.resumable import why_not
from frugal_rl.vec_env.single import IdMap, Places, Report, Singles, Stats
from frugal_rl.vec_env.wire import Wire, wires_of

if TYPE_CHECKING:
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.tables import Tables

Layout = dict[str, tuple[tuple[int, ...], np.dtype[Any]]]
"""Shape and dtype by name, of N environments' arrays."""


def trial(env: EnvMaker) -> str:
    """Why environments cannot be continued from their state; empty where they can."""
    return why_not(lambda: as_raw(env.make(), env.spec()), env.action_space())


def layout_of(env: EnvMaker, num_envs: int, encoding: Encoding) -> tuple[Layout, Tables]:
    """The arrays that N environments write into, found by starting one; and its empty tables."""
    core = as_raw(env.make(), env.spec())
    try:
        core.restart(0)
        raw = core.raw()
    except SystemExit as end:
        raise program_ended(end, "in the very first reset, with seed 0") from end
    except Exception as error:
        error.add_note("In the very first reset, with seed 0.")
        raise
    fields = {n: np.asarray(raw[n]) for n in needed_raw(encoding, raw)}
    layout = {f"raw/{n}": ((num_envs, *v.shape), v.dtype) for n, v in fields.items()}
    layout |= {f"final/{n}": ((num_envs, *v.shape), v.dtype) for n, v in fields.items()}
    space = env.action_space()
    action = np.asarray(space.sample())
    layout["reward"] = ((num_envs,), np.dtype(np.float32))
    layout["terminated"] = layout["truncated"] = ((num_envs,), np.dtype(np.bool_))
    layout["actions"] = ((num_envs, *action.shape), action.dtype)
    tables: Tables = core.tables.empty()
    close_all([getattr(core, "env", core)])
    return layout, tables


def places_of(arrays: dict[str, np.ndarray]) -> Places:
    """Arrays by the layout's names, as places."""
    return Places(
        {n.removeprefix("raw/"): a for n, a in arrays.items() if n.startswith("raw/")},
        {n.removeprefix("final/"): a for n, a in arrays.items() if n.startswith("final/")},
        arrays["reward"],
        arrays["terminated"],
        arrays["truncated"],
        arrays["actions"],
    )


def singles_of(env: EnvMaker, count: int, places: Places, first: int = 0) -> Singles:
    """`count` environments that write into `places`, the first of them number `first`."""
    envs, spec = [env.make() for _ in range(count)], env.spec()
    return Singles(envs, [as_raw(one, spec) for one in envs], spec, places, first)


class GroupEnv(VectorEnv):
    """N single environments; a backend decides where and when they run.

    Where they run in other processes (`crosses`), frozen fields arrive in reports, as what differs.
    """

    crosses: ClassVar[bool] = False

    def __init__(
        self, env: EnvMaker, num_envs: int, encoding: Encoding, memory: MemoryProfile
    ) -> None:
        self.num_envs, self._maker = num_envs, env
        self._why_not: str | None = None
        self._wires: dict[str, list[Wire]] = {}
        self.encoding = encoding
        self.action_space: spaces.Space[Any] = env.action_space()
        self.layout, self.tables = layout_of(env, num_envs, encoding)
        arrived = self._crossing() if self.crosses else {}
        self.places = places_of(self._allocate() | arrived)
        self._ids = IdMap(self.tables, num_envs)
        self._encoder = Encoder(encoding, self.tables, num_envs, reuses(memory))
        self._every = np.arange(num_envs)

    def _crossing(self) -> dict[str, np.ndarray]:
        """Take frozen fields out of the layout; arrays of our own for what arrives of them."""
        kept = {r.name for r in self.encoding.rows if isinstance(r.codec, FoundCodec)}
        arrived: dict[str, np.ndarray] = {}
        for name, form in wires_of(self.encoding.spec).items():
            if name in kept and f"raw/{name}" in self.layout:
                shape, dtype = self.layout.pop(f"raw/{name}")
                del self.layout[f"final/{name}"]
                arrived |= {f"{at}/{name}": np.zeros(shape, dtype) for at in ("raw", "final")}
                self._wires[name] = [Wire(shape[1:], dtype, form) for _ in range(self.num_envs)]
        return arrived

    def _take(self, first: int, report: Report) -> None:
        """Read what arrived of frozen fields, once."""
        for place, name, final, message in report.rows:
            into = self.places.final if final else self.places.raw
            into[name][first + place] = self._wires[name][first + place].unpack(message)
        report.rows = []

    def _allocate(self) -> dict[str, np.ndarray]:
        return {name: np.zeros(shape, dtype) for name, (shape, dtype) in self.layout.items()}

    @abstractmethod
    def _reset(self, seeds: list[int]) -> list[tuple[int, Report]]:
        """Start all; reports with the first environment that each is about."""

    @abstractmethod
    def _step(self) -> list[tuple[int, Report]]:
        """Advance all by `places.actions`; reports as above."""

    def reset(self, seed: int) -> Rows:
        """Start N new episodes."""
        self._learn(self._reset(env_seeds(self.num_envs, seed)))
        return self._rows()

    def step(self, actions: np.ndarray) -> Step:
        """One action each; ended episodes begin anew."""
        places = self.places
        places.actions[...] = np.asarray(actions).reshape(places.actions.shape)
        stats = self._learn(self._step())
        done = places.terminated | places.truncated
        index = np.flatnonzero(done if self.tells_ends else places.truncated)
        final_rows: Rows = {}
        if len(index):
            final = {name: values[index] for name, values in places.final.items()}
            final_rows = self._encoder.encode(self._ids.shared(final, index), lasting=True)
        ended = _ended(stats) if stats else None
        return Step(self._rows(), places.reward, done, places.truncated, index, final_rows, ended)

    def state(self) -> dict[str, Any]:
        """All environments, where a trial told that theirs can be put back."""
        if self._why_not is None:
            self._why_not = self._tried()
        if self._why_not:
            raise NotImplementedError(f"They cannot be copied: {self._why_not}.")
        return {"environments": self._states()}

    def _tried(self) -> str:
        """The trial: why environments like these cannot be continued, or nothing."""
        return trial(self._maker)

    def load(self, state: dict[str, Any]) -> Rows:
        """Continue from `state()`."""
        states = state["environments"]
        if len(states) != self.num_envs:
            raise DataError(f"{len(states)} environments were saved, these are {self.num_envs}.")
        self._learn(self._load(states))
        return self._rows()

    def numbering(self) -> Any:
        """The tables' rows: each environment numbers its own anew."""
        return numbered(self.tables)

    def number_again(self, kept: Any) -> None:
        """Put the tables' rows in that order."""
        if kept is not None or self.tables:
            self._ids.renumber(number_again(self.tables, kept))

    def _states(self) -> list[Any]:
        """Of each environment what `Singles.state` tells."""
        raise NotImplementedError(f"{type(self).__name__} does not ask its workers for them.")

    def _load(self, states: list[Any]) -> list[tuple[int, Report]]:
        """Put them back; reports as in `_reset`."""
        raise NotImplementedError(f"{type(self).__name__} does not give them to its workers.")

    def _rows(self) -> Rows:
        return self._encoder.encode(self._ids.shared(self.places.raw, self._every))

    def _learn(self, reports: list[tuple[int, Report]]) -> dict[int, Stats]:
        """Intern what was met, in order of environments; the statistics of ended episodes."""
        stats: dict[int, Stats] = {}
        for first, report in reports:
            self._take(first, report)
            self._ids.learn(first, report.new_rows)
            stats |= {first + place: values for place, values in report.stats.items()}
        return stats

    def parts(self) -> dict[str, int]:
        """Bytes of places, tables and coded rows; simulators are not counted here."""
        places = sum(int(np.prod(shape)) * dtype.itemsize for shape, dtype in self.layout.values())
        for name, ends in self._wires.items():
            places += int(self.places.raw[name].nbytes + self.places.final[name].nbytes)
            places += sum(int(end.last.nbytes) for end in ends)
        return {
            "places": places,
            "static tables": self.tables.nbytes,
            "rows": self._encoder.nbytes,
        }


def _ended(stats: dict[int, Stats]) -> EndedEpisodes:
    """One array per statistic; those that an episode did not give are NaN."""
    names = dict.fromkeys(name for values in stats.values() for name in values)
    index = np.array(sorted(stats), np.int64)
    table = {n: np.array([stats[i].get(n, np.nan) for i in index]) for n in names}
    return EndedEpisodes(index, table)
