"""A perceptron forward and backward, block by block, so that activations stay in the cache.

A network is data: a table of layers over numbered buffers (`frugal_rl.learn.compiled.layers`), so
that one compilation serves all of them. Matrix products are BLAS's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from frugal_rl.learn.compiled.activations import activate, inlined, turn_back

NARROW = 8
"""Outputs below which plain loops beat a matrix product."""
IN, OUT, AT, INPUTS, OUTPUTS, WEIGHT, BIAS, ACTIVATION, BACK, ADDS = range(10)
"""Columns of the table: buffers, first column written, sizes, places in the flat parameters,
activation, whether the input takes a gradient, and whether it has one already."""
START, WIDTH, TO, COLUMN = range(4)
"""Columns of the inputs' table: first column and width in X, buffer and column there."""


@inlined
def view(arena: Any, buffers: Any, b: Any, block: Any, m: Any) -> Any:
    """The m rows of buffer b; `buffers` holds offset and width of each for one row."""
    start, width = buffers[b, 0] * block, buffers[b, 1]
    return arena[start : start + m * width].reshape(m, width)


@inlined
def fill(x: Any, first: Any, inputs: Any, buffers: Any, arena: Any, block: Any, m: Any) -> None:
    """Rows first to first + m of X [B, ...] float32 into the input buffers."""
    for k in range(inputs.shape[0]):
        start, width, column = inputs[k, START], inputs[k, WIDTH], inputs[k, COLUMN]
        into = view(arena, buffers, inputs[k, TO], block, m)
        for i in range(m):
            source, row = x[first + i, start : start + width], into[i, column : column + width]
            for j in range(width):
                row[j] = source[j]


@inlined
def times(x: Any, w: Any, z: Any) -> None:
    """Z [m, outputs] = x [m, inputs] @ w.T, w [outputs, inputs]."""
    if w.shape[0] >= NARROW:
        np.dot(x, w.T, z)
        return
    for i in range(x.shape[0]):
        for j in range(w.shape[0]):
            total = np.float32(0)
            for k in range(w.shape[1]):
                total += x[i, k] * w[j, k]
            z[i, j] = total


@inlined
def times_back(delta: Any, w: Any, into: Any) -> None:
    """Into [m, inputs] = delta [m, outputs] @ w [outputs, inputs]."""
    if w.shape[0] >= NARROW:
        np.dot(delta, w, into)
        return
    for i in range(delta.shape[0]):
        for k in range(w.shape[1]):
            into[i, k] = delta[i, 0] * w[0, k]
        for j in range(1, w.shape[0]):
            for k in range(w.shape[1]):
                into[i, k] += delta[i, j] * w[j, k]


@inlined
def add_weights(delta: Any, x: Any, gradient: Any, scratch: Any) -> None:
    """Gradient [outputs, inputs] += delta.T @ x."""
    outputs, inputs = gradient.shape
    if outputs >= NARROW:
        product = scratch[: outputs * inputs].reshape(outputs, inputs)
        np.dot(delta.T, x, product)
        for j in range(outputs):
            for k in range(inputs):
                gradient[j, k] += product[j, k]
        return
    for i in range(delta.shape[0]):
        for j in range(outputs):
            for k in range(inputs):
                gradient[j, k] += delta[i, j] * x[i, k]


@inlined
def forward(
    flat: Any, layers: Any, buffers: Any, arena: Any, block: Any, m: Any, scratch: Any
) -> None:
    """All layers over the m rows whose inputs are filled."""
    for r in range(layers.shape[0]):
        layer = layers[r]
        outputs, start = layer[OUTPUTS], layer[WEIGHT]
        x, out = (
            view(arena, buffers, layer[IN], block, m),
            view(arena, buffers, layer[OUT], block, m),
        )
        w = flat[start : start + outputs * layer[INPUTS]].reshape(outputs, layer[INPUTS])
        whole = out.shape[1] == outputs
        z = out if whole else scratch[: m * outputs].reshape(m, outputs)
        times(x, w, z)
        activate(z, flat[layer[BIAS] : layer[BIAS] + outputs], layer[ACTIVATION])
        if not whole:
            copy_columns(z, 0, out, layer[AT], outputs)


@inlined
def copy_columns(source: Any, first: Any, into: Any, at: Any, count: Any) -> None:
    """Some columns of one matrix to some of another."""
    for i in range(source.shape[0]):
        for j in range(count):
            into[i, at + j] = source[i, first + j]


@inlined
def backward(
    flat: Any,
    layers: Any,
    buffers: Any,
    arena: Any,
    deltas: Any,
    block: Any,
    m: Any,
    gradient: Any,
    scratch: Any,
) -> None:
    """From d loss / d outputs in `deltas` to the parameters' gradient, which is added to."""
    for back in range(layers.shape[0]):
        layer = layers[layers.shape[0] - 1 - back]
        inputs, outputs = layer[INPUTS], layer[OUTPUTS]
        x, out = (
            view(arena, buffers, layer[IN], block, m),
            view(arena, buffers, layer[OUT], block, m),
        )
        delta = view(deltas, buffers, layer[OUT], block, m)
        if out.shape[1] != outputs:  # a picture's part of the embedding
            whole_out, whole_delta = out, delta
            out = scratch[: m * outputs].reshape(m, outputs)
            delta = scratch[m * outputs : 2 * m * outputs].reshape(m, outputs)
            copy_columns(whole_out, layer[AT], out, 0, outputs)
            copy_columns(whole_delta, layer[AT], delta, 0, outputs)
        turn_back(delta, out, layer[ACTIVATION], gradient[layer[BIAS] : layer[BIAS] + outputs])
        start, end = layer[WEIGHT], layer[WEIGHT] + outputs * inputs
        rest = scratch[2 * m * outputs :]
        add_weights(delta, x, gradient[start:end].reshape(outputs, inputs), rest)
        if layer[BACK]:
            into = view(deltas, buffers, layer[IN], block, m)
            to = rest[: m * inputs].reshape(m, inputs) if layer[ADDS] else into
            times_back(delta, flat[start:end].reshape(outputs, inputs), to)
            if layer[ADDS]:
                for i in range(m):
                    for k in range(inputs):
                        into[i, k] += to[i, k]
