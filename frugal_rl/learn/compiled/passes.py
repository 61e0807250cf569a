"""A perceptron forward and backward, block by block, so that activations stay in the cache.

A network is data: a table of layers over numbered buffers (`frugal_rl.learn.compiled.layers`), so
that one compilation serves all of them. Matrix products are computed in tiles where that is faster,
by BLAS elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from frugal_rl.learn.compiled.activations import activate, inlined, turn_back
from frugal_rl.learn.compiled.tiles import FROM_ZERO, product

NARROW = 8
"""Outputs below which plain loops beat a matrix product."""
IN, OUT, INPUTS, OUTPUTS, WEIGHT, BIAS, ACTIVATION, BACK, ADDS, SHARED, TURNED, TILED = range(12)
"""Columns of the table: buffers, sizes, places in the packed parameters, activation, whether the
input takes a gradient, and whether it has one already; the first column of what is added from
shared rows, -1 for nothing; the place among the turned weights, -1 where BLAS multiplies, and
whether products on the way back come in tiles."""


@inlined
def view(arena: Any, buffers: Any, b: Any, block: Any, m: Any) -> Any:
    """The m rows of buffer b; `buffers` holds offset and width of each for one row."""
    start, width = buffers[b, 0] * block, buffers[b, 1]
    return arena[start : start + m * width].reshape(m, width)


@inlined
def times(x: Any, w: Any, z: Any) -> None:
    """Z [m, outputs] = x [m, inputs] @ w.T, w [outputs, inputs]."""
    if w.shape[0] >= NARROW and w.shape[1]:
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
    if outputs >= NARROW and inputs:
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
def add_bias(z: Any, bias: Any) -> None:
    """Z [m, outputs] += bias."""
    for i in range(z.shape[0]):
        row = z[i]
        for j in range(row.size):
            row[j] += bias[j]


@inlined
def add_shared(z: Any, shared: Any, index: Any, start: Any, column: Any) -> None:
    """Z [m, outputs] += what each sample's pictures gave: rows `index` [B, k] of `shared`."""
    for i in range(z.shape[0]):
        row = z[i]
        for k in range(index.shape[1]):
            given = shared[index[start + i, k], column : column + row.size]
            for j in range(row.size):
                row[j] += given[j]


@inlined
def add_to_shared(delta: Any, shared: Any, index: Any, start: Any, column: Any) -> None:
    """The way back: rows of `shared` [D, n] collect the samples that they were added to."""
    for i in range(delta.shape[0]):
        row = delta[i]
        for k in range(index.shape[1]):
            into = shared[index[start + i, k], column : column + row.size]
            for j in range(row.size):
                into[j] += row[j]


@inlined
def matrix(numbers: Any, at: Any, rows: Any, columns: Any) -> Any:
    """Some of the numbers as a matrix [rows, columns]."""
    return numbers[at : at + rows * columns].reshape(rows, columns)


@inlined
def forward(
    weights: Any,
    layers: Any,
    buffers: Any,
    arena: Any,
    rows: Any,
    shared: Any,
    index: Any,
) -> None:
    """All layers over the m rows whose input is filled; `rows` are block, m and first sample."""
    packed, turned = weights
    block, m, start = rows
    for r in range(layers.shape[0]):
        layer = layers[r]
        inputs, outputs = layer[INPUTS], layer[OUTPUTS]
        x = view(arena, buffers, layer[IN], block, m)
        z = view(arena, buffers, layer[OUT], block, m)
        bias = packed[layer[BIAS] : layer[BIAS] + outputs]
        if layer[TURNED] >= 0:
            product(bias, x, matrix(turned, layer[TURNED], inputs, outputs), z, 0)
        else:
            times(x, matrix(packed, layer[WEIGHT], outputs, inputs), z)
            add_bias(z, bias)
        if layer[SHARED] >= 0:
            add_shared(z, shared, index, start, layer[SHARED])
        activate(z.reshape(z.size), layer[ACTIVATION])


@inlined
def backward(
    weights: Any,
    layers: Any,
    buffers: Any,
    arena: Any,
    deltas: Any,
    rows: Any,
    back: Any,
    scratch: Any,
) -> None:
    """From d loss / d outputs in `deltas` to the gradients `back`, which are added to.

    Those are of the packed parameters and of the shared rows, and the index says of which.
    """
    block, m, start = rows
    gradient, shared, index = back
    for back in range(layers.shape[0]):
        layer = layers[layers.shape[0] - 1 - back]
        inputs, outputs = layer[INPUTS], layer[OUTPUTS]
        out = view(arena, buffers, layer[OUT], block, m)
        delta = view(deltas, buffers, layer[OUT], block, m)
        turn_back(delta, out, layer[ACTIVATION], gradient[layer[BIAS] : layer[BIAS] + outputs])
        if layer[SHARED] >= 0:
            add_to_shared(delta, shared, index, start, layer[SHARED])
        x = view(arena, buffers, layer[IN], block, m)
        into = matrix(gradient, layer[WEIGHT], outputs, inputs)
        if layer[TILED]:
            product(FROM_ZERO, delta.T, x, into, 1)
        else:
            add_weights(delta, x, into, scratch)
        if layer[BACK]:
            w = matrix(weights[0], layer[WEIGHT], outputs, inputs)
            into = view(deltas, buffers, layer[IN], block, m)
            if layer[TILED]:
                product(FROM_ZERO, delta, w, into, layer[ADDS])
            elif layer[ADDS]:
                more = scratch[: m * inputs].reshape(m, inputs)
                times_back(delta, w, more)
                for i in range(m):
                    for k in range(inputs):
                        into[i, k] += more[i, k]
            else:
                times_back(delta, w, into)
