"""`ragged` and `delta`: rows that the rollout keeps in a pool, as long as their content is.

Vector environments and the policy see the inner codec's rows of full size; only the rollout's
pool is smaller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from frugal_rl.observation.codecs.codec import Codec, DenseCodec
from frugal_rl.observation.found_form import FoundForm

if TYPE_CHECKING:
    from frugal_rl.observation.choices import Label


@dataclass(frozen=True)
class PooledCodec(Codec):
    """An inner codec whose rows are kept in a pool.

    `expected_share` of the full size is allocated at first; the pool grows where it must.
    """

    inner: Codec = field(default_factory=DenseCodec)
    expected_share: float = 0.125

    @property
    def label(self) -> Label:
        """What the inner codec costs."""
        return self.inner.label

    @property
    def rows(self) -> Codec:
        """The inner codec's."""
        return self.inner.rows

    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """Shape and dtype of the inner codec."""
        return self.inner.stored(shape, dtype)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """The inner codec's rows."""
        return self.inner.encode(values)

    def encode_into(self, values: np.ndarray, out: np.ndarray) -> None:
        """The inner codec's rows, into `out`."""
        self.inner.encode_into(values, out)

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """The inner codec's values."""
        return self.inner.decode(stored)

    def decode_into(self, stored: np.ndarray, out: np.ndarray) -> None:
        """The inner codec's values, into `out`."""
        self.inner.decode_into(stored, out)


@dataclass(frozen=True)
class RaggedCodec(PooledCodec):
    """Drops the zeros that pad a row's end."""

    name: ClassVar[str] = "ragged"
    pool: ClassVar[str] = "ragged"


@dataclass(frozen=True)
class DeltaCodec(PooledCodec):
    """Keeps what differs from a reference row: exclusive-or, then only what is not zero."""

    name: ClassVar[str] = "delta"
    pool: ClassVar[str] = "delta"


@dataclass(frozen=True)
class FoundCodec(PooledCodec):
    """Keeps rows in whatever form the rollout finds smallest for them; nothing is declared.

    A plan counts `expected_share`, which a study measures; without one, what was seen of such rows
    (`frugal_rl.memory.weight`), or rows as they are. A `form` is frozen: rollouts begin in it,
    and rows cross to the main process as what differs.
    """

    name: ClassVar[str] = "found"
    pool: ClassVar[str] = "found"
    expected_share: float = 0.99
    form: FoundForm | None = None
