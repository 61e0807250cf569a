"""The four kinds of field that an observation is declared of.

`Stored` changes every step, `Static` is the same for a whole level, mine or cartridge, `Derived` is
computed from the others, `Private` never reaches the policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

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
    scaled: bool = True
    """Networks divide whole numbers by their bound; False hands them over as they are."""

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
