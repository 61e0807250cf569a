"""What every representation of a field offers, and the plainest: `dense`, as the space declares.

A codec is one file, which imports no torch, so that workers stay small; its torch half lies beside
it in `<codec>_torch.py` as `decode(codec, stored)` and is imported when a decoder first asks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from frugal_rl.observation.choices import Label

if TYPE_CHECKING:
    from frugal_rl.observation.found_form import FoundForm


@dataclass(frozen=True)
class Codec(ABC):
    """How one field is represented in a stored row.

    Leading axes are batch axes: `encode` maps [..., *shape] to [..., *stored shape]. Zeros are
    stored as zero bytes, so that the zeros before an episode's first row decode to zeros.

    `pool` says how the rollout keeps rows whose stored length varies ("ragged" or "delta").
    `twin` names the torch half as "package.module:function", called with codec and tensor; without
    one, rows are decoded by NumPy on the CPU.
    """

    name: ClassVar[str]
    pool: ClassVar[str] = ""
    twin: ClassVar[str] = ""

    @property
    def label(self) -> Label:
        """What the codec costs."""
        return Label.lossless

    @property
    def rows(self) -> Codec:
        """The codec of the rows that travel: another one where this only says how they are kept."""
        return self

    @property
    def form(self) -> FoundForm | None:
        """What a study froze of how rows are kept; None where nothing is."""
        return None

    @abstractmethod
    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """Shape and dtype of the stored row of a field with this shape and dtype."""

    @abstractmethod
    def encode(self, values: np.ndarray) -> np.ndarray:
        """Values to their stored form; raises `EncodingError` for what it cannot hold."""

    @abstractmethod
    def decode(self, stored: np.ndarray) -> np.ndarray:
        """The stored form back to values."""

    def encode_into(self, values: np.ndarray, out: np.ndarray) -> None:
        """As `encode`, written into `out`."""
        out[...] = self.encode(values)

    def decode_into(self, stored: np.ndarray, out: np.ndarray) -> None:
        """As `decode`, written into `out`."""
        out[...] = self.decode(stored)

    def bounds(
        self, low: float, high: float, dtype: np.dtype[Any], stored: np.dtype[Any]
    ) -> tuple[float, float]:
        """The range of stored values: the field's own for numbers kept as they are."""
        if np.issubdtype(stored, np.integer) and stored != dtype:
            return float(np.iinfo(stored).min), float(np.iinfo(stored).max)
        return low, high


@dataclass(frozen=True)
class DenseCodec(Codec):
    """The dtype and shape that the space declares. Lossless."""

    name: ClassVar[str] = "dense"
    twin: ClassVar[str] = "frugal_rl.observation.codecs.dense_torch:decode"

    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """The same shape and dtype."""
        return shape, dtype

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Unchanged."""
        return values

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """Unchanged."""
        return stored
