"""The kernel that learns: a minibatch's gradient, or steps by several of them in one call.

Between minibatches Python takes 0.2 to 0.6 ms, out of a cache that the kernel has emptied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

from frugal_rl.learn.compiled.activations import FAST
from frugal_rl.learn.compiled.fields import fill
from frugal_rl.learn.compiled.kernels import (
    clipped_adam,
    gather,
    kernel,
    normalise,
    pack,
    source_stamp,
)
from frugal_rl.learn.compiled.losses import (
    ADVANTAGES,
    categorical_loss,
    gaussian_loss,
    value_loss,
)
from frugal_rl.learn.compiled.meeting import meet
from frugal_rl.learn.compiled.passes import IN, backward, forward, view

part = njit(error_model="numpy", fastmath=FAST, inline="always")
"""Compiled with the kernel, and not before on its own: 5 s of the first run."""


@part
def differentiate(
    share: Any,
    weights: Any,
    net: Any,
    x: Any,
    mask: Any,
    pictures: Any,
    actions: Any,
    old: Any,
    choice: Any,
    terms: Any,
    room: Any,
    block: Any,
    gradient: Any,
    log_ratio: Any,
    sums: Any,
) -> None:
    """Gradient of PPO's loss over some samples of a minibatch, and the sums of its parts.

    share      the first of the samples and the one behind the last
    weights    parameters in the engine's order [P] float32, and those that are turned [W]
    net        layers, buffers and ends of a `layers.Table`
    x          `Fields.kernel`; mask [B, n] uint8, or [B, 0]; actions [B, a] float32
    pictures   [D, s] float32: what distinct ones give; [B, k] int32: which of them; the gradient
               of the first, which is written
    old        [4, B] float32: log-probabilities, values, advantages, returns
    choice     [g + 1] int64: bounds of each choice's logits; int64: the place of the deviations'
               logarithms in the parameters, -1 for choices
    terms      [5] float32: clip range, that of values or -1, ent_coef, vf_coef, 1 / B
    room       a lane's arena, deltas and scratch
    gradient   [P] float32, log_ratio [B] float32 and sums [3] float64 are written
    """
    (first, last), (layers, buffers, ends), (packed, _) = share, net, weights
    shared, index, shared_gradient = pictures
    (groups, log_std), (arena, deltas, scratch) = choice, room
    gradient[:] = 0
    shared_gradient[:] = 0
    sums[:] = 0
    for start in range(first, last, block):
        m = min(block, last - start)
        fill(x, start, view(arena, buffers, layers[0, IN], block, m))
        forward(weights, layers, buffers, arena, (block, m, start), shared, index)
        z = view(arena, buffers, ends[0], block, m)
        dz = view(deltas, buffers, ends[0], block, m)
        if log_std >= 0:
            gaussian_loss(
                z, actions, old, start, packed, log_std, terms, dz, gradient, log_ratio, sums
            )
        else:
            categorical_loss(z, mask, actions, old, start, groups, terms, dz, log_ratio, sums)
        v = view(arena, buffers, ends[1], block, m)
        value_loss(v, old, start, terms, view(deltas, buffers, ends[1], block, m), sums)
        rows, back = (block, m, start), (gradient, shared_gradient, index)
        backward(weights, layers, buffers, arena, deltas, rows, back, scratch)


@part
def step(gradients: Any, weights: Any, order: Any, adam: Any, rates: Any, told: Any) -> None:
    """From the threads' gradients to the next weights; `told` are sums, terms and losses."""
    (runs, turns), (sums, terms, losses) = order, told
    flat, gradient, mean, square, largest = adam
    gather(gradients, runs, gradient, sums, terms, losses)
    clipped_adam(flat, gradient, mean, square, largest, rates)
    pack(flat, runs, turns, weights[0], weights[1])


def _build_learn(stamp: int) -> Callable[..., None]:
    """One of T threads; takes what `differentiate`, `gather`, `pack` and `clipped_adam` take.

    With rates all meet after their shares of each of M minibatches of B samples, and the first one
    steps; where one does not come, none goes on. Without, M is 1 and none steps. `stamp` becomes a
    part of the kernel's cache key.

    x           `Fields.kernel` of M * B samples; mask [M * B, n] uint8, or [M * B, 0]
    actions     [M, B, a] float32; old [M, 4, B] float32, normalised here where asked for
    order       runs and turns
    adam        flat, gradient, mean, square, largest; rates [M, 7] float32, or [0, 7]
    gradients   [T, P], log_ratio [M, B] float32, sums [T, 3] float64, losses [M, 4] are written
    """

    @kernel
    def learn(
        thread: Any,
        meeting: Any,
        share: Any,
        weights: Any,
        net: Any,
        x: Any,
        mask: Any,
        pictures: Any,
        actions: Any,
        old: Any,
        choice: Any,
        terms: Any,
        normalises: Any,
        room: Any,
        block: Any,
        gradients: Any,
        order: Any,
        adam: Any,
        rates: Any,
        log_ratio: Any,
        sums: Any,
        losses: Any,
    ) -> None:
        """See `_build_learn`."""
        (table, places, _), (shared, index, back) = x, pictures
        threads, (count, _, size) = gradients.shape[0], old.shape
        come = threads
        if normalises:
            for k in range(thread, count, threads):
                normalise(old[k, ADVANTAGES])
            meet(meeting, come)
            come += threads
        for k in range(count if stamp >= 0 else 0):
            begin, end = k * size, (k + 1) * size
            differentiate(
                share,
                weights,
                net,
                (table, places, begin),
                mask[begin:end],
                (shared, index[begin:end], back),
                actions[k],
                old[k],
                choice,
                terms,
                room,
                block,
                gradients[thread],
                log_ratio[k],
                sums[thread],
            )
            if rates.shape[0]:
                if meet(meeting, come) and thread == 0:
                    step(gradients, weights, order, adam, rates[k], (sums, terms, losses[k]))
                if not meet(meeting, come + threads):
                    return
                come += 2 * threads

    return learn


learn = _build_learn(source_stamp())
