"""An observation, declared once, field by field; everything else is computed from it.

Four kinds of field: `Stored` changes every step, `Static` is the same for a whole level, mine or
cartridge, `Derived` is computed from the others, `Private` never reaches the policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from frugal_rl.errors import ConfigError

if TYPE_CHECKING:
    from frugal_rl.observation.codecs.codec import Codec
    from frugal_rl.observation.tables import Tables

EPISODE = -1
"""A window of `EPISODE` shows all rows since the episode began."""

Arrays = Mapping[str, np.ndarray]
Derive = Callable[[Arrays, "Tables"], np.ndarray]
DeriveInto = Callable[[Arrays, "Tables", np.ndarray], None]


class Padding(Enum):
    """What a window shows before the first row of an episode."""

    zero = "zero"
    repeat = "repeat"


@dataclass(frozen=True)
class Field:
    """What every field declares: name, shape and dtype as observed, range, meaning."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    low: float = 0.0
    high: float = 1.0
    doc: str = ""
    observed: bool = True
    """False marks a field that only derived fields read."""

    @property
    def nbytes(self) -> int:
        """Bytes of one observed value."""
        return math.prod(self.shape) * int(np.dtype(self.dtype).itemsize)

    def box(self) -> spaces.Box:
        """The Gymnasium space of the observed value."""
        return spaces.Box(self.low, self.high, self.shape, np.dtype(self.dtype).type)


@dataclass(frozen=True)
class Stored(Field):
    """A field that changes every step.

    `codecs` are the representations it offers beside `dense`. With `window` = k the observation
    shows the last k rows, ``[k, *shape]``, oldest first.

    Example:
        >>> Stored("frame", (84, 84), np.uint8, 0, 255, window=4).observed_shape
        (4, 84, 84)
    """

    codecs: tuple[Codec, ...] = ()
    window: int = 1
    padding: Padding = Padding.zero

    @property
    def observed_shape(self) -> tuple[int, ...]:
        """Shape with the window in front; `shape` where there is none."""
        return self.shape if self.window == 1 else (self.window, *self.shape)


@dataclass(frozen=True)
class Static(Field):
    """A field that is the same for all steps with the same id in `table`.

    `ragged` marks a field whose first axis is padded: its true length differs from row to row.

    Example:
        >>> Static("walls", (5, 5), np.uint8, table="map").nbytes
        25
    """

    table: str = ""
    ragged: bool = False
    codecs: tuple[Codec, ...] = ()


@dataclass(frozen=True)
class Derived(Field):
    """A field computed from others while decoding.

    `derive(sources, tables)` maps batched source arrays to the batched field; `twin` names its
    torch twin as "package.module:function", called with tensors and the decoder's tables.
    `derive_into(sources, tables, out)` writes the same into memory that is kept between draws.

    Example:
        >>> far = lambda sources, tables: sources["place"] > 9
        >>> Derived("far", (1,), np.bool_, sources=("place",), derive=far).sources
        ('place',)
    """

    sources: tuple[str, ...] = ()
    derive: Derive | None = None
    derive_into: DeriveInto | None = None
    twin: str = ""
    codecs: tuple[Codec, ...] = ()


@dataclass(frozen=True)
class Private(Field):
    """A field used by rewards or rendering only; stored only by `memory.internal_observations`.

    Example:
        >>> Private("distance", (1,), np.float32).nbytes
        4
    """


AnyField = Stored | Static | Derived | Private


@dataclass(frozen=True)
class ObservationSpec:
    """All fields of an environment's observation.

    `action_mask` names the boolean field that masks actions, if there is one.

    Example:
        >>> spec = ObservationSpec((Stored("speed", (2,), np.float32, -1, 1),))
        >>> spec.observation_space["speed"].shape
        (2,)
    """

    fields: tuple[AnyField, ...]
    action_mask: str | None = None
    by_name: Mapping[str, AnyField] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_name = {f.name: f for f in self.fields}
        if len(by_name) != len(self.fields):
            raise ConfigError("Two fields of the observation share one name.")
        object.__setattr__(self, "by_name", by_name)
        for f in self.fields:
            for source in f.sources if isinstance(f, Derived) else ():
                if source not in by_name and source not in self.id_rows():
                    raise ConfigError(
                        f"Derived field '{f.name}' reads '{source}', which is not there."
                    )

    def id_rows(self) -> dict[str, str]:
        """Names of the id rows, `<table>_id` -> table."""
        return {f"{f.table}_id": f.table for f in self.fields if isinstance(f, Static)}

    def observed(self) -> tuple[Stored | Static | Derived, ...]:
        """The fields that the policy may read, in order of declaration."""
        return tuple(f for f in self.fields if not isinstance(f, Private) and f.observed)

    @property
    def observation_space(self) -> spaces.Dict:
        """What a plain Gymnasium user sees."""
        boxes: dict[str, spaces.Space[Any]] = {}
        for f in self.observed():
            box = f.box()
            if isinstance(f, Stored) and f.window > 1:
                box = spaces.Box(f.low, f.high, f.observed_shape, np.dtype(f.dtype).type)
            boxes[f.name] = box
        return spaces.Dict(boxes)
