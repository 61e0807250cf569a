"""What the kernels read of some samples: plain numbers, and each picture that is new, once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from frugal_rl.learn.compiled.fields import NO_PLACES, Fields
from frugal_rl.learn.compiled.kept_pixels import KeptPixels
from frugal_rl.learn.compiled.layers import linear_pictures
from frugal_rl.observation.repeated_rows import RowNumbers
from frugal_rl.store.drawn_rows import DrawnRows

if TYPE_CHECKING:
    from frugal_rl.learn.networks import Embedding
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.observation.decoder import Decoder
    from frugal_rl.store.rollout import RolloutBuffer

Rows = Mapping[str, Tensor]
NONE = np.empty((0, 0), np.float32)
FIELD_BYTES = 1
"""What tells apart the rows of two picture fields."""


@dataclass(frozen=True)
class Inputs:
    """What the kernels read of B samples.

    count     B
    plain     float32: all that is no picture
    mask      [B, m] uint8, or [B, 0]
    pictures  for each field [D, pixels] float32: those that are not known yet, all different
    index     [B, fields] int32: the number of each sample's picture, counted over all fields
    known     pictures of earlier samples, which have the first numbers
    """

    count: int
    plain: Fields
    mask: np.ndarray
    pictures: tuple[np.ndarray, ...]
    index: np.ndarray
    known: int


class InputReader:
    """Stored rows -> `Inputs`, for one policy.

    Numbers the pictures since it was told to forget; which were decoded before changes no bit.
    """

    def __init__(self, policy: FrugalPolicy, decoder: Decoder) -> None:
        network: Any = policy.network
        self.decoder, self.mask_name = decoder, policy.mask_name
        self.embedding: Embedding = network.embedding
        encoding, space = decoder.encoding, cast(spaces.Dict, policy.observation_space)
        self.origins = {name: encoding.origins(name) for name in self.embedding.pictures}
        self.stored = {name: row_bytes(row) for name, row in space.items()}
        widths = [sum(self.stored[row] for row in rows) for rows in self.origins.values()]
        self.numbers = RowNumbers(max(widths, default=0) + FIELD_BYTES)
        self.kept = [
            KeptPixels(self.numbers.shape[0], linear.in_features)
            for linear in linear_pictures(network)
        ]
        self.version = decoder.static.version
        self.direct = {name for name in self.embedding.sizes if encoding.is_float_row(name)}

    def gathered(self, rollout: RolloutBuffer) -> int:
        """Bytes of a sample that are copied out of a rollout, those of pictures aside."""
        lying, sizes = DrawnRows(rollout, NO_PLACES), self.embedding.sizes
        names = {name for name in sizes if name not in self.direct or lying.stored(name) is None}
        if self.mask_name is not None:
            names.add(self.mask_name)
        shown = self.decoder.encoding.spec.observation_space
        rows = {row for name in names for row in self.decoder.encoding.origins(name)}
        return sum(row_bytes(shown[name]) for name in names) + sum(self.stored[row] for row in rows)

    def forget(self) -> None:
        """Take no picture for known any more; what was decoded stays while its tables do."""
        if not self.origins:
            return
        self.numbers.forget()
        version = self.decoder.static.version
        if version != self.version:
            self.version = version
            for kept in self.kept:
                kept.forget()

    @property
    def nbytes(self) -> int:
        """Bytes allocated between minibatches."""
        return self.numbers.nbytes + sum(kept.nbytes for kept in self.kept)

    @property
    def known(self) -> int:
        """Pictures of all fields that were read since."""
        return self.numbers.used

    def __call__(self, rows: Rows) -> Inputs:
        """Rows [B, ...] as the policy receives them."""
        fields = self.decoder(rows)
        drawn = rows if isinstance(rows, DrawnRows) else None
        count, known = len(next(iter(rows.values())) if drawn is None else drawn.at), self.known
        plain = self._plain(rows, fields)
        index = np.empty((count, len(self.origins)), np.int32)
        pictures = []
        for k, (name, origins) in enumerate(self.origins.items()):
            seen = {origin: rows[origin] for origin in origins}
            field = np.full((count, 1), k, np.uint8)
            first = self.known
            index[:, k], new = self.numbers.of(field, *(row.numpy() for row in seen.values()))
            fresh = self.numbers.read(first, self.known)
            decode = partial(self._pixels, name, seen, new)
            pictures.append(self.kept[k].of(fresh, decode) if len(new) else NONE)
        return Inputs(count, plain, self._mask(fields, count), tuple(pictures), index, known)

    def _pixels(self, name: str, seen: Rows, new: np.ndarray, which: np.ndarray) -> np.ndarray:
        """The pictures [D, pixels] of some of the new rows."""
        at = torch.from_numpy(new[which])
        only = {origin: row[at] for origin, row in seen.items()}
        pixels: np.ndarray = self.embedding.pixels_of(self.decoder(only), name).numpy()
        return pixels

    def _plain(self, rows: Rows, fields: Rows) -> Fields:
        """All fields that are no pictures; float rows where they lie."""
        drawn = rows if isinstance(rows, DrawnRows) else None
        plain = Fields() if drawn is None else Fields(drawn.at)
        for name, size in self.embedding.sizes.items():
            direct = name in self.direct
            stored = drawn.stored(name) if drawn is not None and direct else None
            if stored is not None:
                plain.add(stored, size, drawn=True)
            else:
                own = rows[name] if direct else self.embedding.numbers_of(fields, name)
                plain.add(own.numpy(), size)
        return plain

    def _mask(self, fields: Mapping[str, Tensor], count: int) -> np.ndarray:
        name = self.mask_name
        if name is None:
            return np.zeros((count, 0), np.uint8)
        mask: np.ndarray = fields[name].reshape(count, -1).contiguous().view(torch.uint8).numpy()
        return mask


def row_bytes(space: spaces.Space[Any]) -> int:
    """Bytes of one row in policy form."""
    box = cast(spaces.Box, space)
    return math.prod(box.shape) * int(box.dtype.itemsize)
