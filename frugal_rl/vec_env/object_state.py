"""The state of a stranger's simulator: the values that its objects hold, as plain values and back.

Objects become nodes of a list, their attributes references to other nodes, so that what two of them
share stays shared. Put back, values go into the objects that a fresh simulator has at their place;
objects that it lacks are made anew, of classes of its own packages, and no code of theirs is
called. What is no value (modules, functions, classes, spaces, windows, native objects) stays as the
fresh simulator has it; Atari's and MuJoCo's native states are asked for. Whether that was all is
found out by trial (`frugal_rl.vec_env.resumable`), not assumed.
"""

from __future__ import annotations

import enum
import random
import sys
import types
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

MOST_NODES = 100_000
"""Values above which an environment counts as not copyable."""
MOST_BYTES = 4 << 20
"""The same for the bytes of its arrays: a checkpoint holds them once per environment."""
ABSENT = object()
KEPT_KINDS = (
    type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType,
    spaces.Space, EnvSpec,
)  # fmt: skip
SEQUENCES: dict[str, type] = {k.__name__: k for k in (list, tuple, set, frozenset, deque)}
Node = list[Any]


class Capture:
    """Nodes of everything that is reached from an object."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.nbytes = 0
        self._places: dict[int, int] = {}
        self._alive: list[Any] = []
        """Objects stay while their ids are compared."""

    def add(self, value: Any) -> int:
        """The number of a value's node."""
        known = self._places.get(id(value))
        if known is not None:
            return known
        place = len(self.nodes)
        if place >= MOST_NODES:
            raise NotImplementedError(f"It holds more than {MOST_NODES:,} values.")
        self._places[id(value)] = place
        self._alive.append(value)
        self.nodes.append([])
        self.nodes[place] = self._node(value)
        return place

    def _node(self, value: Any) -> Node:
        if value is None or type(value) in (bool, int, str, bytes):
            return ["value", value]
        if type(value) is float:
            return ["float", value.hex()]
        if isinstance(value, np.ndarray | np.generic):
            if value.dtype.hasobject or value.dtype.fields:
                return ["kept"]
            kind = "array" if isinstance(value, np.ndarray) else "scalar"
            self.nbytes += value.nbytes
            if self.nbytes >= MOST_BYTES:
                raise NotImplementedError(f"Its arrays hold {MOST_BYTES >> 20} MiB or more.")
            return [kind, value.dtype.str, list(value.shape), value.tobytes()]
        if isinstance(value, enum.Enum):
            return ["enum", class_name(type(value)), value.name]
        if type(value) in SEQUENCES.values():
            return [type(value).__name__, [self.add(item) for item in value]]
        if isinstance(value, dict):
            pairs = [[self.add(k), self.add(v)] for k, v in value.items()]
            return ["dict", class_name(type(value)), pairs]
        return self._object(value)

    def _object(self, value: Any) -> Node:
        for kind, (read, _) in generators().items():
            if isinstance(value, kind):
                return ["random", self.add(read(value))]
        native = NATIVE.get(class_name(type(value)))
        if native is not None:
            return ["native", native[0](value)]
        attributes = attributes_of(value)
        if isinstance(value, KEPT_KINDS) or attributes is None:
            return ["kept"]
        return [
            "object",
            class_name(type(value)),
            [[name, self.add(inner)] for name, inner in attributes.items()],
        ]


class Restore:
    """Values of nodes, put into the objects of a fresh simulator where it has them."""

    def __init__(self, nodes: list[Node], env: Any) -> None:
        self.nodes, self._made = nodes, dict[int, Any]()
        packages = {type(part).__module__.partition(".")[0] for part in chain_of(env)}
        self._trusted = packages | {"collections", "gymnasium"}

    def put(self, place: int, present: Any = ABSENT) -> Any:
        """The value of a node; `present` is what the fresh simulator has at its place."""
        if place not in self._made:
            node = self.nodes[place]
            self._made[place] = getattr(self, f"_{node[0]}")(place, present, *node[1:])
        return self._made[place]

    def _value(self, place: int, present: Any, value: Any) -> Any:
        return value

    def _float(self, place: int, present: Any, text: str) -> float:
        return float.fromhex(text)

    def _array(self, place: int, present: Any, dtype: str, shape: list[int], raw: bytes) -> Any:
        values = np.frombuffer(raw, np.dtype(dtype)).reshape(shape)
        same = isinstance(present, np.ndarray) and present.shape == values.shape
        if same and present.dtype == values.dtype and present.flags.writeable:
            present[...] = values  # others may look at this memory
            return present
        return values.copy()

    def _scalar(self, place: int, present: Any, dtype: str, shape: list[int], raw: bytes) -> Any:
        return np.frombuffer(raw, np.dtype(dtype))[0]

    def _enum(self, place: int, present: Any, name: str, member: str) -> Any:
        kind = type(present) if class_name(type(present)) == name else self._class(name)
        return kind[member]

    def _list(self, place: int, present: Any, items: list[int]) -> list[Any]:
        kept: list[Any] = present if isinstance(present, list) else []
        self._made[place], before = kept, list(kept)
        before += [ABSENT] * (len(items) - len(before))
        kept[:] = [self.put(i, before[k]) for k, i in enumerate(items)]
        return kept

    def _deque(self, place: int, present: Any, items: list[int]) -> deque[Any]:
        kept: deque[Any] = present if isinstance(present, deque) else deque()
        values = [self.put(i) for i in items]
        kept.clear()
        kept.extend(values)
        return kept

    def _tuple(self, place: int, present: Any, items: list[int]) -> tuple[Any, ...]:
        fits = isinstance(present, tuple) and len(present) == len(items)
        before = present if fits else [ABSENT] * len(items)
        return tuple(self.put(i, before[k]) for k, i in enumerate(items))

    def _set(self, place: int, present: Any, items: list[int]) -> set[Any]:
        return {self.put(i) for i in items}

    def _frozenset(self, place: int, present: Any, items: list[int]) -> frozenset[Any]:
        return frozenset(self.put(i) for i in items)

    def _dict(self, place: int, present: Any, name: str, pairs: list[list[int]]) -> Any:
        same = isinstance(present, dict) and class_name(type(present)) == name
        kept: Any = present if same else self._empty_dict(name)
        self._made[place], before = kept, dict(kept)
        values = {}
        for k, v in pairs:
            key = self.put(k)
            values[key] = self.put(v, before.get(key, ABSENT))
        kept.clear()
        kept.update(values)
        return kept

    def _empty_dict(self, name: str) -> Any:
        kind = self._class(name)
        if not issubclass(kind, dict):
            raise NotImplementedError(f"{name} is no dictionary.")
        return kind.__new__(kind)

    def _random(self, place: int, present: Any, state: int) -> Any:
        for kind, (_, write) in generators().items():
            if isinstance(present, kind):
                write(present, self.put(state))
                return present
        raise NotImplementedError("A generator of random numbers has no place.")

    def _native(self, place: int, present: Any, raw: bytes) -> Any:
        NATIVE[class_name(type(present))][1](present, raw)
        return present

    def _kept(self, place: int, present: Any) -> Any:
        if present is ABSENT:
            raise NotImplementedError("What a fresh environment lacks is no plain value.")
        return present

    def _object(self, place: int, present: Any, name: str, attributes: list[Any]) -> Any:
        made = present
        if present is ABSENT or class_name(type(present)) != name:
            made = object.__new__(self._class(name))
        self._made[place] = made
        before = attributes_of(made) or {}
        for attribute, inner in attributes:
            value = self.put(inner, before.get(attribute, ABSENT))
            if before.get(attribute, ABSENT) is not value:
                object.__setattr__(made, attribute, value)
        for attribute in before.keys() - {a for a, _ in attributes}:
            object.__delattr__(made, attribute)
        return made

    def _class(self, name: str) -> Any:
        """A class of the simulator's own packages that is imported already."""
        module, _, path = name.partition(":")
        if name == "builtins:dict":
            return dict
        found: Any = sys.modules.get(module) if module.split(".")[0] in self._trusted else None
        for part in path.split("."):
            found = getattr(found, part, None)
        if not isinstance(found, type) or class_name(found) != name:
            raise NotImplementedError(f"{name} is no class of the environment's packages.")
        return found


def state_of(core: Any) -> list[Node]:
    """The values of an environment and of all that it holds, or those that it names itself."""
    capture = Capture()
    capture.add(core.state() if names_its_state(core) else _held(core))
    return capture.nodes


def put_back(core: Any, nodes: list[Node], seed: int) -> None:
    """Continue a new environment from `state_of` another; `seed` begins what values go into."""
    if names_its_state(core):
        core.load(Restore(nodes, core).put(0))
        return
    core.restart(seed)
    present = _held(core)
    _, shown = Restore(nodes, present[0]).put(0, present)
    if shown is not None:
        core.shown = shown


def names_its_state(core: Any) -> bool:
    """Whether it has `state()` and `load(state)` of its own, as every `GameEnv` has."""
    return callable(getattr(core, "state", None)) and callable(getattr(core, "load", None))


def _held(core: Any) -> list[Any]:
    """The environment itself, and what it showed last where that is all we read of it."""
    return [getattr(core, "env", core), getattr(core, "shown", None)]


def class_name(kind: type) -> str:
    """Module and name."""
    module = getattr(kind, "__module__", "?")  # wrapped C++ classes may have none
    return f"{module}:{kind.__qualname__}"


def chain_of(root: Any) -> list[Any]:
    """An environment and those that it wraps."""
    chain = [root]
    while (inner := getattr(chain[-1], "__dict__", {}).get("env")) is not None:
        chain.append(inner)
    return chain


def attributes_of(value: Any) -> dict[str, Any] | None:
    """Attributes by name, slots too; None for native objects, which show none."""
    slots = [n for k in type(value).__mro__ for n in _slots(k) if hasattr(value, n)]
    if not hasattr(value, "__dict__") and not slots:
        return None
    return {**getattr(value, "__dict__", {}), **{n: getattr(value, n) for n in slots}}


def _slots(kind: type) -> list[str]:
    given = kind.__dict__.get("__slots__", ())
    names = (given,) if isinstance(given, str) else given
    return [n for n in names if n not in ("__dict__", "__weakref__") and not n.startswith("__")]


def generators() -> dict[type, tuple[Callable[[Any], Any], Callable[[Any, Any], None]]]:
    """Generators of random numbers: how their state is read and set."""

    def set_bits(generator: Any, state: Any) -> None:
        generator.bit_generator.state = state

    return {
        np.random.Generator: (lambda g: g.bit_generator.state, set_bits),
        np.random.RandomState: (lambda g: g.get_state(), lambda g, s: g.set_state(s)),
        random.Random: (lambda g: g.getstate(), lambda g, s: g.setstate(s)),
    }


def _read_atari(ale: Any) -> bytes:
    raw: bytes = ale.cloneSystemState().__getstate__()
    return raw


def _write_atari(ale: Any, raw: bytes) -> None:
    kind: Any = type(ale.cloneSystemState())
    state = kind.__new__(kind)
    state.__setstate__(raw)
    ale.restoreSystemState(state)


def _mujoco(data: Any) -> tuple[Any, int, np.ndarray]:
    mujoco = sys.modules["mujoco"]
    kind = int(mujoco.mjtState.mjSTATE_INTEGRATION)
    return mujoco, kind, np.zeros(mujoco.mj_stateSize(data.model, kind))


def _read_mujoco(data: Any) -> bytes:
    mujoco, kind, values = _mujoco(data)
    mujoco.mj_getState(data.model, data, values, kind)
    return values.tobytes()


def _write_mujoco(data: Any, raw: bytes) -> None:
    mujoco, kind, values = _mujoco(data)
    values[:] = np.frombuffer(raw)
    mujoco.mj_setState(data.model, data, values, kind)
    mujoco.mj_forward(data.model, data)


NATIVE: dict[str, tuple[Callable[[Any], bytes], Callable[[Any, bytes], None]]] = {
    "ale_py._ale_py:ALEInterface": (_read_atari, _write_atari),
    "mujoco._structs:MjData": (_read_mujoco, _write_mujoco),
}
"""Native simulators that offer their state: how it is read and set."""
