"""The kernels that Python calls: acting, a minibatch's gradient, Adam.

The first two contain other files' functions, and Numba's cache looks at the time stamp of one file
only: they capture a number that changes with any of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from frugal_rl.learn.compiled.activations import FAST
from frugal_rl.learn.compiled.losses import categorical_loss, gaussian_loss, value_loss
from frugal_rl.learn.compiled.passes import OUT, backward, fill, forward, view

kernel = njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)


def source_stamp() -> int:
    """A number that changes with any source file of the engine."""
    texts = (path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return int.from_bytes(hashlib.blake2b(b"".join(texts), digest_size=7).digest(), "little")


def _build_infer(stamp: int) -> Callable[..., None]:
    """Acting; `stamp` becomes a part of the kernel's cache key."""

    @kernel
    def infer(
        flat: Any,
        layers: Any,
        buffers: Any,
        inputs: Any,
        x: Any,
        arena: Any,
        scratch: Any,
        block: Any,
        logits: Any,
        values: Any,
    ) -> None:
        """X [B, ...] -> logits [B, n] and values [B], which the last two layers give."""
        for first in range(0, x.shape[0] if stamp >= 0 else 0, block):
            m = min(block, x.shape[0] - first)
            fill(x, first, inputs, buffers, arena, block, m)
            forward(flat, layers, buffers, arena, block, m, scratch)
            z = view(arena, buffers, layers[-2, OUT], block, m)
            v = view(arena, buffers, layers[-1, OUT], block, m)
            for i in range(m):
                values[first + i] = v[i, 0]
                for j in range(z.shape[1]):
                    logits[first + i, j] = z[i, j]

    return infer


def _build_differentiate(stamp: int) -> Callable[..., None]:
    """Learning; `stamp` becomes a part of the kernel's cache key."""

    @kernel
    def differentiate(
        first: Any,
        last: Any,
        flat: Any,
        layers: Any,
        buffers: Any,
        inputs: Any,
        x: Any,
        mask: Any,
        actions: Any,
        old: Any,
        groups: Any,
        log_std: Any,
        terms: Any,
        arena: Any,
        deltas: Any,
        scratch: Any,
        block: Any,
        gradient: Any,
        log_ratio: Any,
        sums: Any,
    ) -> None:
        """Gradient of PPO's loss over samples `first` to `last` of a minibatch; its parts' sums.

        x          [B, ...] float32; mask [B, n] uint8, or [B, 0]; actions [B, a] float32
        old        [4, B] float32: log-probabilities, values, advantages, returns
        groups     [g + 1] int64: bounds of each choice's logits
        log_std    int64: the place of the deviations' logarithms in `flat`; -1 for choices
        terms      [5] float32: clip range, that of values or -1, ent_coef, vf_coef, 1 / B
        gradient   [P] float32, log_ratio [B] float32, sums [3] float64 are written
        """
        gradient[:] = 0
        sums[:] = 0
        for start in range(first, last if stamp >= 0 else 0, block):
            m = min(block, last - start)
            fill(x, start, inputs, buffers, arena, block, m)
            forward(flat, layers, buffers, arena, block, m, scratch)
            z = view(arena, buffers, layers[-2, OUT], block, m)
            dz = view(deltas, buffers, layers[-2, OUT], block, m)
            if log_std >= 0:
                gaussian_loss(
                    z, actions, old, start, flat, log_std, terms, dz, gradient, log_ratio, sums
                )
            else:
                categorical_loss(z, mask, actions, old, start, groups, terms, dz, log_ratio, sums)
            v = view(arena, buffers, layers[-1, OUT], block, m)
            value_loss(v, old, start, terms, view(deltas, buffers, layers[-1, OUT], block, m), sums)
            backward(flat, layers, buffers, arena, deltas, block, m, gradient, scratch)

    return differentiate


infer, differentiate = _build_infer(source_stamp()), _build_differentiate(source_stamp())


@kernel
def clipped_adam(flat: Any, gradient: Any, mean: Any, square: Any, most: Any, rates: Any) -> Any:
    """Clip the gradient's norm to `most`, then Adam, all in place; returns the norm before.

    rates  [6] float32: 1 - beta1, beta2, 1 - beta2, sqrt of the second bias correction, epsilon,
           learning rate over the first bias correction
    """
    total = np.float32(0)
    for j in range(gradient.size):
        total += gradient[j] * gradient[j]
    norm = np.sqrt(total)
    share = most / (norm + np.float32(1e-6))
    share = np.float32(1) if share > np.float32(1) else share
    for j in range(flat.size):
        g = gradient[j] * share
        gradient[j] = g
        mean[j] += rates[0] * (g - mean[j])
        square[j] = rates[1] * square[j] + rates[2] * g * g
        flat[j] -= rates[5] * mean[j] / (np.sqrt(square[j]) / rates[3] + rates[4])
    return norm
