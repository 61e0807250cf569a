"""Maximum closure of a precedence graph, by pseudoflow with labels.

A closure holds, with each block, everything that block needs. The solver follows Hochbaum's
pseudoflow algorithm (Operations Research 56(4), 2008) in its highest-label form. Precedence arcs
have unlimited capacity, so arcs outside the normalised tree never carry flow: one flow per node
(on the arc to its tree parent) is all there is to store, and the graph is read, never copied.

Nodes are (block, slot): a chain of slots says "mined by then", node (b, s) needs (b, s + 1); every
`stride`-th slot also obeys the precedence. One slot is the ordinary pit; T slots the scheduling
problem by periods; T * D slots with stride D the one with destinations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Graph


_NONE = -1
SCALE_BITS = 52


def integer_weights(weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights as int64 with the scale used; the sum of their sizes stays below 2^52."""
    total = float(np.abs(weight).sum())
    scale = 2.0**SCALE_BITS / (total or 1.0)
    return np.rint(weight * scale).astype(np.int64), scale


def max_closure(weight: np.ndarray, graph: Graph, stride: int = 1) -> np.ndarray:
    """Smallest set of nodes of greatest total weight.

    Args:
        weight: (n,) or (n, S) float64.
        graph: precedence between the n blocks.
        stride: slots with index stride - 1 modulo stride obey the precedence.

    Returns:
        Membership, bool, of the weight's shape.
    """
    slots = 1 if weight.ndim == 1 else weight.shape[1]
    whole, _ = integer_weights(weight.reshape(-1))
    inside = _pseudoflow(whole, graph.pointer, graph.index, slots, stride)[0]
    return inside.reshape(weight.shape)


def paying_pit(value: np.ndarray, discount: np.ndarray, graph: Graph) -> np.ndarray:
    """Blocks (n,) bool outside of which no plan earns: the pit of the money that may be had.

    Where money loses by waiting, what a plan digs by each period is a pit, which earns no more than
    its part of the ultimate one. Where it gains (a rate below 0), waste dug early may be paid for
    by ore dug late: then each block counts with the best of its factors.

    Args:
        value: (n,) float64 undiscounted, of the best destination.
        discount: (T,) float64 factors by period.
        graph: precedence between the n blocks.
    """
    if discount[-1] > discount[0]:
        value = value * np.where(value > 0, discount[-1], discount[0])
    return max_closure(value, graph)


def certified_closure(
    weight: np.ndarray, graph: Graph, stride: int = 1
) -> tuple[np.ndarray, float]:
    """`max_closure`, and a bound on every closure's weight that does not trust the search.

    Any flow along precedence arcs moves weight from a node to what it needs without changing what
    a closure is worth by less than nothing, so the positive weights that are left bound all of
    them. The flow's arcs, signs and sums are looked at in exact integers.
    """
    slots = 1 if weight.ndim == 1 else weight.shape[1]
    whole, scale = integer_weights(weight.reshape(-1))
    found = _pseudoflow(whole, graph.pointer, graph.index, slots, stride)
    left = _weight_left(whole, graph.pointer, graph.index, slots, stride, *found[1:])
    if left < 0:
        raise AssertionError("the closure's flow leaves the precedence arcs")
    upper = float(np.nextafter((left + weight.size) / scale, np.inf))
    return found[0].reshape(weight.shape), upper


def chain_flow(weight: np.ndarray, graph: Graph, stride: int = 1) -> np.ndarray:
    """What the best closure's flow moves along the chains of slots, (n, S) float64.

    Added to the weights, it lets slot after slot be solved by itself: what later slots pay for
    earlier ones is settled already. Any closure loses nothing by it.
    """
    slots = weight.shape[1]
    whole, scale = integer_weights(weight.reshape(-1))
    _, parent, flow, upward = _pseudoflow(whole, graph.pointer, graph.index, slots, stride)
    node = np.arange(len(whole))
    down = upward & (parent == node + 1) & (node % slots != slots - 1)
    up = ~upward & (parent == node - 1) & (parent >= 0) & (node % slots != 0)
    moved = np.zeros(len(whole))
    np.subtract.at(moved, node[down], flow[down])
    np.add.at(moved, node[down] + 1, flow[down])
    np.subtract.at(moved, node[up] - 1, flow[up])
    np.add.at(moved, node[up], flow[up])
    return moved.reshape(weight.shape) / scale


def largest_closure(weight: np.ndarray, graph: Graph) -> np.ndarray:
    """Largest set of blocks of greatest total weight (n,): what the reversed problem leaves."""
    whole, _ = integer_weights(weight)
    back = graph.successors
    return ~_pseudoflow(-whole, back.pointer, back.index, 1, 1)[0]


def rounding_bound(weight: np.ndarray) -> float:
    """How much the best closure's true weight can exceed the one that was found."""
    _, scale = integer_weights(weight.reshape(-1))
    return weight.size / scale


@njit(cache=True, nogil=True)
def _pseudoflow(weight, pointer, index, slots, stride):
    """Weight (n * slots,) int64 -> members of the smallest maximum closure, bool, and its flow.

    The flow is one number per node, on the arc between the node and its tree parent (-1: none);
    `upward` says that the node needs the parent, so that the flow goes there.
    """
    n = weight.shape[0]
    done = n + 2
    excess = weight.copy()
    label = np.empty(n, np.int32)
    parent = np.full(n, _NONE, np.int32)
    flow = np.zeros(n, np.int64)  # on the arc between a node and its tree parent
    upward = np.zeros(n, np.bool_)  # whether that arc points to the parent
    child = np.full(n, _NONE, np.int32)
    next_sibling = np.full(n, _NONE, np.int32)
    previous_sibling = np.full(n, _NONE, np.int32)
    scan = np.full(n, _NONE, np.int32)
    current = np.zeros(n, np.int32)
    count, head, next_root, highest = _strong_roots(weight, label)
    while True:
        while highest >= 0 and head[highest] == _NONE:
            highest -= 1
        if highest < 0:
            break
        root = head[highest]
        head[highest] = next_root[root]
        if highest > 0 and count[highest - 1] == 0:
            _lift(root, done, label, count, child, next_sibling, scan)
            continue
        weak = _NONE
        v = root
        scan[v] = child[v]
        while True:
            weak = _find_weak(v, highest - 1, label, current, pointer, index, slots, stride)
            if weak != _NONE:
                break
            v = _descend_or_relabel(
                v, highest, label, count, parent, child, next_sibling, scan, current
            )
            if v == _NONE:
                break
        if weak == _NONE:
            highest = label[root]
            next_root[root] = head[highest]
            head[highest] = root
            continue
        _reroot(v, parent, flow, upward, child, next_sibling, previous_sibling)
        parent[v] = weak
        flow[v] = 0
        upward[v] = True
        _adopt(weak, v, child, next_sibling, previous_sibling)
        highest = _push(
            root,
            highest,
            excess,
            parent,
            flow,
            upward,
            child,
            next_sibling,
            previous_sibling,
            label,
            head,
            next_root,
        )
    return label == done, parent, flow, upward


@njit(cache=True, nogil=True)
def _weight_left(weight, pointer, index, slots, stride, parent, flow, upward):
    """The positive weights that remain after a flow; -1 where it is no flow along the arcs."""
    left = weight.copy()
    for v in range(weight.shape[0]):
        p = parent[v]
        if p == _NONE or flow[v] == 0:
            continue
        tail, head = (v, p) if upward[v] else (p, v)
        if flow[v] < 0 or not _needs(tail, head, pointer, index, slots, stride):
            return np.int64(-1)
        left[tail] -= flow[v]
        left[head] += flow[v]
    total = np.int64(0)
    for v in range(weight.shape[0]):
        total += max(left[v], 0)
    return total


@njit(cache=True, nogil=True)
def _needs(tail, head, pointer, index, slots, stride):
    """Whether node `tail` needs node `head`; see the module."""
    b, s = tail // slots, tail % slots
    if s + 1 < slots and head == tail + 1:
        return True
    if (s + 1) % stride != 0 or head % slots != s:
        return False
    found = False
    for k in range(pointer[b], pointer[b + 1]):
        found = found or index[k] == head // slots
    return found


@njit(cache=True, nogil=True)
def _strong_roots(weight, label):
    """Labels every node by the sign of its weight; strong roots in lists by label."""
    n = weight.shape[0]
    count = np.zeros(n + 3, np.int64)
    head = np.full(n + 3, _NONE, np.int32)
    next_root = np.full(n, _NONE, np.int32)
    highest = 0
    for v in range(n):
        label[v] = 1 if weight[v] > 0 else 0
        count[label[v]] += 1
        if weight[v] > 0:
            next_root[v] = head[1]
            head[1] = v
            highest = 1
    return count, head, next_root, highest


@njit(cache=True, nogil=True)
def _find_weak(v, wanted, label, current, pointer, index, slots, stride):
    """The next node with the wanted label that v needs, from v's current arc on."""
    b = v // slots
    s = v - b * slots
    if current[v] == 0:
        if s + 1 < slots and label[v + 1] == wanted:
            return v + 1
        current[v] = 1
    if (s + 1) % stride != 0:
        return _NONE
    first = pointer[b]
    degree = pointer[b + 1] - first
    k = current[v] - 1
    while k < degree:
        w = index[first + k] * slots + s
        if label[w] == wanted:
            current[v] = k + 1
            return w
        k += 1
    current[v] = k + 1
    return _NONE


@njit(cache=True, nogil=True)
def _descend_or_relabel(v, level, label, count, parent, child, next_sibling, scan, current):
    """Moves to the next child with label `level`; without one raises v and returns to its parent.

    Returns the next node whose arcs are to be searched, or -1 when the root itself was raised.
    """
    while True:
        c = scan[v]
        while c != _NONE and label[c] != level:
            c = next_sibling[c]
        if c != _NONE:
            scan[v] = next_sibling[c]
            scan[c] = child[c]
            return c
        label[v] = level + 1
        count[level] -= 1
        count[level + 1] += 1
        current[v] = 0
        v = parent[v]
        if v == _NONE:
            return _NONE


@njit(cache=True, nogil=True)
def _lift(root, done, label, count, child, next_sibling, scan):
    """Marks a whole branch as belonging to the closure: nothing weak is left to reach from it."""
    v = root
    stack = np.empty(64, np.int32)
    stack[0] = root
    top = 1
    while top > 0:
        top -= 1
        v = stack[top]
        count[label[v]] -= 1
        label[v] = done
        c = child[v]
        while c != _NONE:
            if top == stack.shape[0]:
                longer = np.empty(2 * top, np.int32)
                longer[:top] = stack
                stack = longer
            stack[top] = c
            top += 1
            c = next_sibling[c]


@njit(cache=True, nogil=True)
def _adopt(p, v, child, next_sibling, previous_sibling):
    first = child[p]
    next_sibling[v] = first
    previous_sibling[v] = _NONE
    if first != _NONE:
        previous_sibling[first] = v
    child[p] = v


@njit(cache=True, nogil=True)
def _orphan(p, v, child, next_sibling, previous_sibling):
    before, after = previous_sibling[v], next_sibling[v]
    if before != _NONE:
        next_sibling[before] = after
    else:
        child[p] = after
    if after != _NONE:
        previous_sibling[after] = before


@njit(cache=True, nogil=True)
def _reroot(v, parent, flow, upward, child, next_sibling, previous_sibling):
    """Turns the path from v to its root round, so that v becomes the root of its branch."""
    new_parent = _NONE
    new_flow = np.int64(0)
    new_up = False
    while v != _NONE:
        old = parent[v]
        old_flow, old_up = flow[v], upward[v]
        if old != _NONE:
            _orphan(old, v, child, next_sibling, previous_sibling)
        parent[v] = new_parent
        flow[v] = new_flow
        upward[v] = new_up
        if new_parent != _NONE:
            _adopt(new_parent, v, child, next_sibling, previous_sibling)
        new_parent, new_flow, new_up = v, old_flow, not old_up
        v = old


@njit(cache=True, nogil=True)
def _push(
    v,
    highest,
    excess,
    parent,
    flow,
    upward,
    child,
    next_sibling,
    previous_sibling,
    label,
    head,
    next_root,
):
    """Sends the excess of an old root up to the new one, cutting arcs that run out of flow."""
    p = parent[v]
    before = excess[v]
    while p != _NONE:
        amount = excess[v]
        before = excess[p]
        if upward[v]:
            flow[v] += amount
            excess[v] = 0
            excess[p] += amount
        elif amount <= flow[v]:
            flow[v] -= amount
            excess[v] = 0
            excess[p] += amount
        else:
            excess[p] += flow[v]
            excess[v] = amount - flow[v]
            flow[v] = 0
            _orphan(p, v, child, next_sibling, previous_sibling)
            parent[v] = _NONE
            next_root[v] = head[label[v]]
            head[label[v]] = v
            if label[v] > highest:
                highest = label[v]
        v = p
        p = parent[v]
    if before <= 0 and excess[v] > 0:
        next_root[v] = head[label[v]]
        head[label[v]] = v
        if label[v] > highest:
            highest = label[v]
    return highest
