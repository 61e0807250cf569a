"""Activations over a layer's output, and the way back, as vector instructions.

`tanh(x) = x P(x^2) / Q(x^2)`, two polynomials fitted to [-9, 9], where tanh becomes 1 in float32:
multiplications, additions and one division, all of which vectorise. Away from the exact value by
at most 5e-7, which a test measures. Comparisons are written so that a NaN stays one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

LINEAR, TANH, RELU = 0, 1, 2
FAST = {"contract", "reassoc", "nsz"}
"""Sums in any order, fused multiply-add; NaN and infinity keep their meaning."""
F = np.float32
ONE, ZERO, FAR = F(1), F(0), F(9)
P1, P2, P3, P4 = (F(p) for p in (0.13381395, 0.0034960117, 2.061543e-05, 1.3362285e-08))
Q1, Q2, Q3, Q4 = (F(q) for q in (0.4671471, 0.025878634, 0.00032863009, 7.779927e-07))

inlined = njit(error_model="numpy", fastmath=FAST, forceinline=True)
"""Part of the kernel that calls it, and of that kernel's cache."""


@inlined
def tanh(x: Any) -> Any:
    """Hyperbolic tangent of a float32."""
    x = FAR if x > FAR else x
    x = -FAR if x < -FAR else x
    s = x * x
    above = (((P4 * s + P3) * s + P2) * s + P1) * s + ONE
    below = (((Q4 * s + Q3) * s + Q2) * s + Q1) * s + ONE
    y = x * above / below
    y = ONE if y > ONE else y
    return -ONE if y < -ONE else y


@inlined
def activate(z: Any, activation: Any) -> None:
    """Z [n] becomes activation(z), in place."""
    if activation == TANH:
        for j in range(z.size):
            z[j] = tanh(z[j])
    elif activation == RELU:
        for j in range(z.size):
            z[j] = ZERO if z[j] < ZERO else z[j]


@inlined
def turn_back(delta: Any, out: Any, activation: Any, bias_gradient: Any) -> None:
    """Delta [m, outputs], d loss / d out, becomes d loss / d z in place; its sum is added."""
    for i in range(delta.shape[0]):
        row, o = delta[i], out[i]
        if activation == TANH:
            for j in range(row.size):
                row[j] *= ONE - o[j] * o[j]
        elif activation == RELU:
            for j in range(row.size):
                row[j] = ZERO if o[j] <= ZERO else row[j]
        for j in range(row.size):
            bias_gradient[j] += row[j]
