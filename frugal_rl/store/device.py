"""A rollout column that lives on the training device. Imports torch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from frugal_rl.observation.fields import EPISODE, Padding
from frugal_rl.store.columns import Column, newest

if TYPE_CHECKING:
    from frugal_rl.store.column_spec import ColumnSpec

WORDS = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}


class DeviceColumn(Column):
    """Rows as machine words [lead + T, N, W] on the device, so that every dtype can be indexed."""

    fills: ClassVar[bool] = False

    def __init__(self, spec: ColumnSpec, steps: int, num_envs: int, device: torch.device) -> None:
        self.spec = spec
        size = next(w for w in WORDS if spec.row_bytes % w == 0)
        shape = (spec.lead + steps, num_envs, spec.row_bytes // size)
        self.values = torch.zeros(shape, dtype=WORDS[size], device=device)
        self.dtype = torch.as_tensor(np.zeros(0, spec.dtype)).dtype

    def _words(self, rows: np.ndarray) -> torch.Tensor:
        """Rows [..., *shape] as words [..., W]."""
        lead = rows.shape[: rows.ndim - len(self.spec.shape)]
        flat = np.ascontiguousarray(rows).reshape(*lead, math.prod(self.spec.shape))
        word = self.values.element_size()
        kind = np.uint8 if word == 1 else np.dtype(f"i{word}")
        return torch.from_numpy(flat.view(np.uint8).view(kind))

    def write(self, t: int, shown: np.ndarray, age: np.ndarray | None) -> None:
        """Copy the newest row to step t, one transfer."""
        lead = self.spec.lead
        if t == 0 and lead:
            self._begin(shown, age)
        self.values[lead + t].copy_(self._words(newest(self.spec, shown, age)))

    def _begin(self, shown: np.ndarray, age: np.ndarray | None) -> None:
        lead = self.spec.lead
        past = self._words(shown[:, :lead])
        if self.spec.window != EPISODE:
            self.values[:lead].copy_(past.transpose(0, 1))
            return
        assert age is not None
        for n, a in enumerate(age):
            self.values[lead - a : lead, n] = past[n, :a].to(self.values.device)

    def gather(self, t: np.ndarray, n: np.ndarray, age: Any, out: Any) -> torch.Tensor:
        """Samples as tensors on the device."""
        device = self.values.device
        steps = torch.as_tensor(t, device=device) + self.spec.lead
        envs = torch.as_tensor(n, device=device)
        if self.spec.window == 1:
            return self._typed(self.values[steps, envs])
        ages = torch.as_tensor(age, device=device).reshape(-1, 1).long()
        k = self.spec.lead + 1
        j = torch.arange(k, device=device)
        at = steps[:, None] - (k - 1 - j)
        if self.spec.window == EPISODE:
            at = steps[:, None] - ages + j
            outside = j > ages
        else:
            outside = (k - 1 - j) > ages
        if self.spec.padding is Padding.repeat and self.spec.window != EPISODE:
            at = torch.maximum(at, steps[:, None] - ages)
            return self._typed(self.values[at, envs[:, None]])
        rows = self.values[at.clamp(0, len(self.values) - 1), envs[:, None]]
        return self._typed(rows.masked_fill_(outside[..., None], 0))

    def _typed(self, rows: torch.Tensor) -> torch.Tensor:
        lead = rows.shape[:-1]
        return rows.view(self.dtype).reshape(*lead, *self.spec.shape)

    @property
    def nbytes(self) -> int:
        """Bytes allocated on the device."""
        return self.values.numel() * self.values.element_size()
