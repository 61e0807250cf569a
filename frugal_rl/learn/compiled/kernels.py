"""The kernels that Python calls: acting, pictures' gradient, the order of parameters, Adam.

The first two, and `learning.learn`, contain other files' functions, and Numba's cache looks at the
time stamp of one file only: they capture a number that changes with any of them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from frugal_rl.learn.compiled.activations import FAST, inlined
from frugal_rl.learn.compiled.fields import fill
from frugal_rl.learn.compiled.losses import (
    ENTROPY,
    ENTROPY_COEFFICIENT,
    LEAST,
    POLICY,
    SHARE,
    VALUE,
    VALUE_COEFFICIENT,
)
from frugal_rl.learn.compiled.packing import FROM, INPUTS, LENGTH, OUTPUTS, OWN, PLACE, TO
from frugal_rl.learn.compiled.passes import IN, backward, forward, matrix, view

kernel = njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)


def source_stamp() -> int:
    """A number that changes with any source file of the engine."""
    texts = (path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return int.from_bytes(hashlib.blake2b(b"".join(texts), digest_size=7).digest(), "little")


def _build_infer(stamp: int) -> Callable[..., None]:
    """Forward alone; `stamp` becomes a part of the kernel's cache key."""

    @kernel
    def infer(
        first: Any,
        last: Any,
        weights: Any,
        net: Any,
        x: Any,
        shared: Any,
        index: Any,
        arena: Any,
        block: Any,
        out: Any,
    ) -> None:
        """Samples `first` to `last` of the fields X -> rows of out [B, n]: what `net` ends with."""
        layers, buffers, ends = net
        for start in range(first, last if stamp >= 0 else 0, block):
            m = min(block, last - start)
            fill(x, start, view(arena, buffers, layers[0, IN], block, m))
            forward(weights, layers, buffers, arena, (block, m, start), shared, index)
            column = 0
            for e in range(ends.size):
                z = view(arena, buffers, ends[e], block, m)
                for i in range(m):
                    for j in range(z.shape[1]):
                        out[start + i, column + j] = z[i, j]
                column += z.shape[1]

    return infer


def _build_go_back(stamp: int) -> Callable[..., None]:
    """Learning of pictures; `stamp` becomes a part of the kernel's cache key."""

    @kernel
    def go_back(
        first: Any,
        last: Any,
        weights: Any,
        net: Any,
        arena: Any,
        deltas: Any,
        scratch: Any,
        index: Any,
        shared_gradients: Any,
        above: Any,
        gradient: Any,
    ) -> None:
        """Add the gradient of distinct pictures, whose activations `infer` left in `arena`.

        shared_gradients  [threads, D, s] float32; pictures `first` to `last` begin `above` further
        gradient          [P] float32 is added to
        """
        layers, buffers, ends = net
        m = last - first if stamp >= 0 else 0
        delta = view(deltas, buffers, ends[0], m, m)
        for i in range(m):
            for j in range(delta.shape[1]):
                delta[i, j] = shared_gradients[0, above + first + i, j]
            for t in range(1, shared_gradients.shape[0]):
                for j in range(delta.shape[1]):
                    delta[i, j] += shared_gradients[t, above + first + i, j]
        rows, back = (m, m, first), (gradient, shared_gradients[0], index)
        backward(weights, layers, buffers, arena, deltas, rows, back, scratch)

    return go_back


infer, go_back = _build_infer(source_stamp()), _build_go_back(source_stamp())


@kernel
def choose(
    outputs: Any, mask: Any, groups: Any, noise: Any, actions: Any, log_prob: Any, values: Any
) -> None:
    """Draw each choice of each sample, as torch.multinomial does from the same noise.

    outputs   [B, n + 1] float32: logits, not masked, and the value; mask [B, n] uint8, or [B, 0]
    noise     [B, n] float32, exponential: the action is the one with the most probability / noise
    actions   [B, g] int64, log_prob [B] and values [B] float32 are written
    """
    for i in range(outputs.shape[0]):
        values[i] = outputs[i, outputs.shape[1] - 1]
        log_prob[i] = 0
        for g in range(groups.size - 1):
            low, high = groups[g], groups[g + 1]
            top = LEAST
            for j in range(low, high):
                z = LEAST if mask.shape[1] and mask[i, j] == 0 else outputs[i, j]
                outputs[i, j] = z
                top = top if z <= top else z
            total, best, chosen = np.float32(0), np.float32(-1), low
            for j in range(low, high):
                chance = np.float32(math.exp(outputs[i, j] - top))
                total += chance
                if chance / noise[i, j] > best:
                    best, chosen = chance / noise[i, j], j
            actions[i, g] = chosen - low
            log_prob[i] += outputs[i, chosen] - top - np.float32(math.log(total))


@inlined
def run(numbers: Any, first: Any, count: Any) -> Any:
    """So many of the numbers."""
    return numbers[first : first + count]


@kernel
def pack(flat: Any, runs: Any, turns: Any, packed: Any, turned: Any) -> None:
    """The policy's parameters in the engine's order; what no run covers stays as it is."""
    for r in range(runs.shape[0]):
        count = runs[r, LENGTH]
        source, into = run(flat, runs[r, FROM], count), run(packed, runs[r, TO], count)
        for j in range(count):
            into[j] = source[j]
    for m in range(turns.shape[0]):
        outputs, inputs = turns[m, OUTPUTS], turns[m, INPUTS]
        plain = matrix(packed, turns[m, OWN], outputs, inputs)
        other = matrix(turned, turns[m, PLACE], inputs, outputs)
        for j in range(outputs):
            for k in range(inputs):
                other[k, j] = plain[j, k]


@kernel
def gather(gradients: Any, runs: Any, gradient: Any, sums: Any, numbers: Any, losses: Any) -> None:
    """What the threads found, together.

    gradients  [T, P] float32 of parameters in the engine's order
    gradient   float32: their sum in the policy's order is written
    sums       [T, 3] float64 of the losses of all samples; numbers as `engine.in_kernel` gives them
    losses     [4] float32 are written: the means of policy, value, entropy and in total
    """
    for r in range(runs.shape[0]):
        count = runs[r, LENGTH]
        into = run(gradient, runs[r, FROM], count)
        found = run(gradients[0], runs[r, TO], count)
        for j in range(count):
            into[j] = found[j]
        for t in range(1, gradients.shape[0]):
            found = run(gradients[t], runs[r, TO], count)
            for j in range(count):
                into[j] += found[j]
    means = np.zeros(3)
    for t in range(sums.shape[0]):
        for k in range(means.size):
            means[k] += sums[t, k] * numbers[SHARE]
    entropy = numbers[ENTROPY_COEFFICIENT] * means[ENTROPY]
    losses[0], losses[1], losses[2] = means[POLICY], means[VALUE], means[ENTROPY]
    losses[3] = means[POLICY] + entropy + numbers[VALUE_COEFFICIENT] * means[VALUE]


@kernel
def normalise(values: Any) -> None:
    """Zero mean and unit deviation (of n - 1), in place; values [B] float32, one stays as it is."""
    count = values.size
    if count < 2:
        return
    total, squares = 0.0, 0.0
    for b in range(count):
        total += values[b]
    mean = total / count
    for b in range(count):
        squares += (values[b] - mean) ** 2
    middle = np.float32(mean)
    deviation = np.float32(math.sqrt(squares / (count - 1))) + np.float32(1e-8)
    for b in range(count):
        values[b] = (values[b] - middle) / deviation


@kernel
def clipped_adam(
    flat: Any, gradient: Any, mean: Any, square: Any, largest: Any, rates: Any
) -> None:
    """Clip the gradient's norm, then Adam, all in place.

    largest  [] float32 is raised to the norm before, or becomes NaN as that is
    rates    [7] float32: 1 - beta1, beta2, 1 - beta2, sqrt of the second bias correction, epsilon,
             learning rate over the first bias correction, the largest norm that is not clipped
    """
    total = np.float32(0)
    for j in range(gradient.size):
        total += gradient[j] * gradient[j]
    norm = np.sqrt(total)
    if norm > largest[()] or norm != norm:
        largest[()] = norm
    share = rates[6] / (norm + np.float32(1e-6))
    share = np.float32(1) if share > np.float32(1) else share
    for j in range(flat.size):
        g = gradient[j] * share
        gradient[j] = g
        mean[j] += rates[0] * (g - mean[j])
        square[j] = rates[1] * square[j] + rates[2] * g * g
        flat[j] -= rates[5] * mean[j] / (np.sqrt(square[j]) / rates[3] + rates[4])
