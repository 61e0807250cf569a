"""PPO's loss and its gradient by the network's outputs, sample by sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from frugal_rl.learn.compiled.activations import ONE, ZERO, F, inlined

POLICY, VALUE, ENTROPY = range(3)
"""Sums over samples, in float64."""
LOG_PROBS, VALUES, ADVANTAGES, RETURNS = range(4)
CLIP, CLIP_VALUES, ENTROPY_COEFFICIENT, VALUE_COEFFICIENT, SHARE = range(5)
LEAST = F(np.finfo(np.float32).min)
HALF, TWO = F(0.5), F(2)
HALF_LOG_TWO_PI = F(0.5 * math.log(2 * math.pi))


@inlined
def surrogate(log_ratio: Any, advantage: Any, terms: Any, sums: Any) -> Any:
    """The clipped surrogate's share is added; d loss / d log-probability."""
    ratio = F(math.exp(log_ratio))
    low, high = ONE - terms[CLIP], ONE + terms[CLIP]
    clipped = low if ratio < low else (high if ratio > high else ratio)
    plain, held = advantage * ratio, advantage * clipped
    if held < plain:
        sums[POLICY] -= held
        return ZERO
    sums[POLICY] -= plain
    return -terms[SHARE] * plain


@inlined
def categorical_loss(
    z: Any,
    mask: Any,
    actions: Any,
    old: Any,
    start: Any,
    groups: Any,
    terms: Any,
    dz: Any,
    log_ratio: Any,
    sums: Any,
) -> None:
    """One or several choices: logits z [m, n], of which groups[g] to groups[g + 1] are choice g.

    dz [m, n] is written: first probabilities and log-probabilities, then the gradient.
    """
    spread = terms[ENTROPY_COEFFICIENT] * terms[SHARE]
    for i in range(z.shape[0]):
        b = start + i
        log_prob, entropy = ZERO, ZERO
        for g in range(groups.size - 1):
            low, high = groups[g], groups[g + 1]
            top = LEAST
            for j in range(low, high):
                z[i, j] = LEAST if mask.shape[1] and mask[b, j] == 0 else z[i, j]
                top = top if z[i, j] <= top else z[i, j]
            total = ZERO
            for j in range(low, high):
                dz[i, j] = F(math.exp(z[i, j] - top))
                total += dz[i, j]
            lse = top + F(math.log(total))
            inside = ZERO
            for j in range(low, high):
                z[i, j] -= lse
                dz[i, j] /= total
                inside -= dz[i, j] * z[i, j]
            log_prob += z[i, low + int(actions[b, g])]
            for j in range(low, high):  # the entropy's gradient, while its own sum is known
                z[i, j] = spread * dz[i, j] * (z[i, j] + inside)
            entropy += inside
        log_ratio[b] = log_prob - old[LOG_PROBS, b]
        sums[ENTROPY] -= entropy
        push = surrogate(log_ratio[b], old[ADVANTAGES, b], terms, sums)
        for g in range(groups.size - 1):
            low, high = groups[g], groups[g + 1]
            for j in range(low, high):
                dz[i, j] = z[i, j] - push * dz[i, j]
            dz[i, low + int(actions[b, g])] += push
        for j in range(mask.shape[1]):
            dz[i, j] = ZERO if mask[b, j] == 0 else dz[i, j]


@inlined
def gaussian_loss(
    z: Any,
    actions: Any,
    old: Any,
    start: Any,
    flat: Any,
    log_std: Any,
    terms: Any,
    dz: Any,
    gradient: Any,
    log_ratio: Any,
    sums: Any,
) -> None:
    """Independent normals with means z [m, n]; the deviations' gradient is added."""
    spread = terms[ENTROPY_COEFFICIENT] * terms[SHARE]
    for i in range(z.shape[0]):
        b = start + i
        log_prob, entropy = ZERO, ZERO
        for j in range(z.shape[1]):
            s = flat[log_std + j]
            precision = F(math.exp(-s))
            dz[i, j] = (actions[b, j] - z[i, j]) * precision  # in deviations, for now
            log_prob -= HALF * dz[i, j] * dz[i, j] + s + HALF_LOG_TWO_PI
            entropy += HALF + HALF_LOG_TWO_PI + s
        log_ratio[b] = log_prob - old[LOG_PROBS, b]
        sums[ENTROPY] -= entropy
        push = surrogate(log_ratio[b], old[ADVANTAGES, b], terms, sums)
        for j in range(z.shape[1]):
            away = dz[i, j]
            gradient[log_std + j] += push * (away * away - ONE) - spread
            dz[i, j] = push * away * F(math.exp(-flat[log_std + j]))


@inlined
def value_loss(v: Any, old: Any, start: Any, terms: Any, dv: Any, sums: Any) -> None:
    """Squared error of values v [m, 1], clipped around the old ones where that is asked for."""
    most = terms[CLIP_VALUES]
    for i in range(v.shape[0]):
        b = start + i
        value, slope = v[i, 0], TWO * terms[VALUE_COEFFICIENT] * terms[SHARE]
        if most >= ZERO:
            change = value - old[VALUES, b]
            if change > most:
                value, slope = old[VALUES, b] + most, ZERO
            elif change < -most:
                value, slope = old[VALUES, b] - most, ZERO
        error = value - old[RETURNS, b]
        sums[VALUE] += error * error
        dv[i, 0] = slope * error
