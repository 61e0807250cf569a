"""A spec with one representation chosen per field: what crosses the vector env and the rollout."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.observation.choices import FrameStack, Label, Storage
from frugal_rl.observation.codecs.bits import BitCodec
from frugal_rl.observation.codecs.codec import Codec, DenseCodec
from frugal_rl.observation.codecs.half import HalfCodec
from frugal_rl.observation.codecs.pooled import PooledCodec, RaggedCodec
from frugal_rl.observation.spec import (
    EPISODE,
    AnyField,
    Derived,
    ObservationSpec,
    Padding,
    Private,
    Static,
    Stored,
)
from frugal_rl.observation.tables import MAX_ID

BY_REFERENCE = {"interned", "derived"}
"""Representations that store nothing of the field itself."""


@dataclass(frozen=True)
class RowSpec:
    """One stored array: [*shape] dtype per step, shown as a window of `window` rows."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    low: float
    high: float
    codec: Codec
    window: int = 1
    padding: Padding = Padding.zero

    @property
    def nbytes(self) -> int:
        """Bytes of one row."""
        return math.prod(self.shape) * int(self.dtype.itemsize)


def offered(f: AnyField) -> dict[str, Codec | None]:
    """Representations of a field by name; None where nothing of it is stored."""
    if isinstance(f, Private):
        return {"dense": DenseCodec()}
    codecs: dict[str, Codec | None] = {"dense": DenseCodec()}
    dtype = np.dtype(f.dtype)
    if dtype == np.float32:
        codecs["half"] = HalfCodec()
    if dtype == np.bool_ and f.shape:
        codecs["bits"] = BitCodec(f.shape[-1])
    codecs |= {c.name: c for c in f.codecs}
    if isinstance(f, Static):
        codecs["interned"] = None
        if f.ragged and "ragged" not in codecs:
            codecs["ragged"] = RaggedCodec(codecs.get("half") or DenseCodec())
    if isinstance(f, Derived):
        codecs["derived"] = None
    return codecs


def default_representation(f: AnyField, storage: Storage) -> str:
    """The representation that a storage profile gives a field."""
    options = offered(f)
    exact = storage in (Storage.lossless, Storage.smallest)
    if exact and isinstance(f, Static | Derived):
        return "interned" if isinstance(f, Static) else "derived"
    if exact:
        names = [n for n, c in options.items() if c is not None and c.label is Label.lossless]
        best = min(names, key=lambda n: _stored_bytes(f, options[n]))
        return (
            "half"
            if storage is Storage.smallest and best == "dense" and "half" in options
            else best
        )
    if storage is Storage.sparse and "ragged" in options:
        return "ragged"
    return "half" if storage in (Storage.half, Storage.sparse) and "half" in options else "dense"


def _stored_bytes(f: AnyField, codec: Codec | None) -> float:
    shape, dtype = (codec or DenseCodec()).stored(f.shape, np.dtype(f.dtype))
    share = codec.expected_share if isinstance(codec, PooledCodec) else 1.0
    return float(math.prod(shape) * np.dtype(dtype).itemsize * share)


@dataclass(frozen=True)
class Encoding:
    """How a run stores each field of a spec. Made by `Encoding.choose`.

    Example:
        >>> from frugal_rl.testing.toy import TOY_SPEC
        >>> Encoding.choose(TOY_SPEC).choice["action_mask"]
        'bits'
    """

    spec: ObservationSpec
    choice: Mapping[str, str]
    frame_stack: FrameStack = FrameStack.once
    internal: bool = False
    rows: tuple[RowSpec, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(self._rows()))

    @classmethod
    def choose(
        cls,
        spec: ObservationSpec,
        storage: Storage = Storage.lossless,
        frame_stack: FrameStack = FrameStack.once,
        internal: bool = False,
        fields: Mapping[str, str] | None = None,
    ) -> Encoding:
        """The storage profile's default for each field, with `fields` overriding by name.

        Raises:
            ConfigError: an unknown field, or a representation that it does not offer.
        """
        overrides = {name: wanted for name, wanted in (fields or {}).items() if wanted}
        unknown = set(overrides) - set(spec.by_name)
        if unknown:
            raise ConfigError(
                f"env.fields names {sorted(unknown)}, which this observation does not have. "
                f"It has {sorted(spec.by_name)}."
            )
        choice = {}
        for f in spec.fields:
            wanted = overrides.get(f.name) or default_representation(f, storage)
            if wanted not in offered(f):
                raise ConfigError(
                    f"env.fields.{f.name}={wanted} is not possible; "
                    f"this field offers {', '.join(offered(f))}."
                )
            choice[f.name] = wanted
        return cls(spec, choice, frame_stack, internal)

    def _rows(self) -> list[RowSpec]:
        """Rows in order of declaration: ids first, then whatever is stored itself."""
        needed = self._needed()
        rows = [
            RowSpec(name, (), np.dtype(np.int32), 0, MAX_ID - 1, DenseCodec())
            for name in self.spec.id_rows()
            if name in needed
        ]
        for f in self.spec.fields:
            stored = self.choice[f.name] not in BY_REFERENCE
            if f.name in needed and stored:
                rows.append(self._row(f))
        return rows

    def _needed(self) -> set[str]:
        """Names that must be known to the decoder: observed ones and, transitively, sources."""
        todo = [f.name for f in self.spec.observed()]
        if self.internal:
            todo += [f.name for f in self.spec.fields if isinstance(f, Private)]
        needed: set[str] = set()
        while todo:
            name = todo.pop()
            if name in needed:
                continue
            needed.add(name)
            todo.extend(self._behind(name))
        return needed

    def _behind(self, name: str) -> tuple[str, ...]:
        """What a field by reference is computed from, one step back; nothing for other names."""
        f = self.spec.by_name.get(name)
        if isinstance(f, Static) and self.choice[name] == "interned":
            return (f"{f.table}_id",)
        if isinstance(f, Derived) and self.choice[name] == "derived":
            return f.sources
        return ()

    def is_float_row(self, name: str) -> bool:
        """Whether a field's stored row is what it shows, in float32."""
        row, dtype = self.by_name.get(name), np.dtype(np.float32)
        shown = np.dtype(self.spec.by_name[name].dtype)
        return row is not None and self.choice[name] == "dense" and row.dtype == shown == dtype

    def origins(self, name: str) -> tuple[str, ...]:
        """The rows that decide what a field shows: its own, or all that it is computed from."""
        behind = self._behind(name)
        found = [origin for source in behind for origin in self.origins(source)] or [name]
        return tuple(dict.fromkeys(found))

    def _row(self, f: AnyField) -> RowSpec:
        codec = offered(f)[self.choice[f.name]] or DenseCodec()
        window = f.window if isinstance(f, Stored) else 1
        padding = f.padding if isinstance(f, Stored) else Padding.zero
        shape, dtype = codec.stored(f.shape, np.dtype(f.dtype))
        low, high = codec.bounds(f.low, f.high, np.dtype(f.dtype), np.dtype(dtype))
        return RowSpec(f.name, shape, np.dtype(dtype), low, high, codec, window, padding)

    @property
    def by_name(self) -> dict[str, RowSpec]:
        """Rows by name."""
        return {r.name: r for r in self.rows}

    def check_readable(self, name: str) -> None:
        """Refuse a field that a network reads and that is neither stored nor computed.

        Raises:
            ConfigError: naming the words that make it readable.
        """
        if self._readable(name):
            return
        f = self.spec.by_name[name]
        derivable = isinstance(f, Derived) and all(map(self._readable, f.sources))
        derive = f"env.fields.{name}=derived or " if derivable else ""
        raise ConfigError(
            f"The network reads '{name}', which env.obs does not show and which does not follow "
            f"from what is stored. Choose {derive}memory=lossless, an env.obs that shows it, or "
            "another agent."
        )

    def _readable(self, name: str) -> bool:
        """Whether a field or an id is stored, or found through what is stored."""
        if name in self.by_name:
            return True
        by_reference = self.choice.get(name) in BY_REFERENCE
        return by_reference and all(map(self._readable, self._behind(name)))

    @property
    def windowed(self) -> tuple[RowSpec, ...]:
        """Rows that the policy sees with history."""
        return tuple(r for r in self.rows if r.window != 1)

    def policy_space(self, episode_steps: int = 0) -> spaces.Dict:
        """The stored types as the policy receives them: windows in front, and their `age`.

        A row with window k is [k, *shape]; with `EPISODE`, [episode_steps + 1, *shape], as an
        episode of S steps has S + 1 observations. `age` [1] int32 counts the steps since the
        episode began and is there only where a window is.
        """
        boxes: dict[str, spaces.Space[Any]] = {}
        for r in self.rows:
            k = episode_steps + 1 if r.window == EPISODE else r.window
            shape = r.shape if r.window == 1 else (k, *r.shape)
            boxes[r.name] = spaces.Box(r.low, r.high, shape, r.dtype.type)
        if self.windowed:
            boxes["age"] = spaces.Box(0, 2**31 - 1, (1,), np.int32)
        return spaces.Dict(boxes)

    @property
    def row_bytes(self) -> int:
        """Bytes that one transition stores (windows once, or copied, as chosen)."""
        copies = self.frame_stack is FrameStack.copies
        return sum(r.nbytes * (r.window if copies and r.window > 1 else 1) for r in self.rows)
