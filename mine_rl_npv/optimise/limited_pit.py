"""The best pit that fits limits: a certified upper bound by branch and bound.

A pit is a closure of the precedence graph; its limits are tonnes of each resource. Prices on the
limits leave a maximum closure, whose optimum is bounded by its flow. Where the priced optimum is a
mixture of two pits, one block decides: either it is dug, and with it everything it needs, or it
stays, and with it everything that needs it. After each decision, blocks whose own cone no longer
fits are left in the ground: the cover inequalities of precedence and limits, applied to bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np
from numba import njit
from scipy.optimize import linprog

from mine_rl_npv.data.instance import Graph
from mine_rl_npv.optimise.closure import certified_closure

_SLACK = 1e-9
"""Relative; the checker allows a limit as much."""
_CLOSE = 1e-8
_EPSILON = float(np.finfo(float).eps)
_FIRST, _TRIED, _TESTED = 16, 3, 400
_LOOKED = 2 * 10**8
"""Arcs, half a second: in larger mines the deepest blocks are not looked at."""


@dataclass(frozen=True)
class _Leaf:
    """Pits with some blocks decided. n blocks, R limits."""

    upper: float
    """Certified: no pit of this leaf is worth more."""
    fixed: np.ndarray
    """(n,) int8: 1 dug, -1 left, 0 open."""
    price: np.ndarray
    """(R,) of the limits."""
    share: np.ndarray
    """(n,) int8: 0 in no pit of the mixture, 1 in some, 2 in all."""


@dataclass
class LimitedPit:
    """A tree whose leaves partition the pits within limits; `expand` makes it finer.

    n blocks, R limits.
    """

    graph: Graph
    value: np.ndarray
    """(n,) float64, any sign."""
    use: np.ndarray
    """(n, R) float64, none negative."""
    room: np.ndarray
    """(R,) float64."""
    cone: np.ndarray | None = None
    """(n, R) of each block by `cone_use`; found when not given."""
    closures: int = 0
    """Maximum closures computed: the effort, the same on every machine."""
    expansions: int = 0
    leaves: list[tuple[float, int, _Leaf]] = field(default_factory=list)
    found: float = -np.inf
    """Worth of `pit`."""
    pit: np.ndarray | None = None
    """(n,) bool the best pit within the limits that was met on the way."""
    relaxed: float = np.inf
    """The bound before any decision."""

    def __post_init__(self) -> None:
        self.room = self.room * (1 + _SLACK)
        if self.cone is None:
            self.cone = cone_use(self.graph, self.use)
        start = np.zeros(len(self.value), np.int8)
        price = np.zeros(len(self.room))
        whole = self._leaf(start, price)
        self.relaxed = whole.upper
        self._push(self._child(start, whole) or whole)

    @property
    def upper(self) -> float:
        """Certified: no pit within the limits is worth more."""
        return -self.leaves[0][0] if self.leaves else -np.inf

    @property
    def solved(self) -> bool:
        """Whether the best leaf's pit itself fits, so that nothing is left to decide."""
        return not self.leaves or not (self.leaves[0][2].share == 1).any()

    def expand(self) -> None:
        """Decides one block of the leaf with the highest bound."""
        leaf = self.leaves[0][2]
        tried = _TRIED if self.expansions < _FIRST else 1
        self.expansions += 1
        pairs = [self._split(leaf, block) for block in self._deciding(leaf)[:tried]]
        best = max(pairs, key=lambda pair: _falls(leaf, pair))
        heappop(self.leaves)
        for child in best:
            if child is not None:
                self._push(child)

    def _push(self, leaf: _Leaf) -> None:
        heappush(self.leaves, (-leaf.upper, self.closures, leaf))

    def _split(self, leaf: _Leaf, block: int) -> tuple[_Leaf | None, _Leaf | None]:
        dug, left = leaf.fixed.copy(), leaf.fixed.copy()
        back = self.graph.successors
        _decide(dug, block, self.graph.pointer, self.graph.index, 1)
        _decide(left, block, back.pointer, back.index, -1)
        return self._child(dug, leaf), self._child(left, leaf)

    def _child(self, fixed: np.ndarray, parent: _Leaf) -> _Leaf | None:
        """The leaf with these decisions and what they imply; None where nothing fits."""
        graph = self.graph
        room = self.room - self.use[fixed == 1].sum(axis=0)
        if (room < -_SLACK * self.room).any():
            return None
        room = np.maximum(room, 0.0) + _SLACK * self.room
        _leave_too_heavy(fixed, graph.pointer, graph.index, graph.order, self.use, self.cone, room)
        leaf = self._leaf(fixed, parent.price)
        return leaf if leaf.upper <= parent.upper else _lowered(leaf, parent.upper)

    def _leaf(self, fixed: np.ndarray, price: np.ndarray) -> _Leaf:
        """Prices at which the bound is least, by cutting planes over the pits met."""
        dug, is_open = fixed == 1, fixed == 0
        base, room = float(self.value[dug].sum()), self.room - self.use[dug].sum(axis=0)
        pits: list[np.ndarray] = []
        worth, used = [0.0], [np.zeros(len(room))]
        best, best_price = np.inf, price
        for _ in range(30):
            weight = np.where(is_open, self.value - self.use @ price, 0.0)
            inside, upper = certified_closure(weight, self.graph)
            self.closures += 1
            inside &= is_open
            bound = base + upper + float(price @ room) + self._rounding(price)
            if bound < best:
                best, best_price = bound, price
            self._keep(base, dug, inside, room)
            pits.append(inside)
            worth.append(float(self.value[inside].sum()))
            used.append(self.use[inside].sum(axis=0))
            price, mixed, weights = _best_mixture(np.array(worth), np.array(used), room)
            if best - base - mixed <= _CLOSE * (abs(base) + abs(mixed)):
                break
        share = np.zeros(len(fixed))
        for weight_of, pit in zip(weights[1:], pits, strict=True):
            share[pit] += weight_of
        level = (share > 1e-7).astype(np.int8) + (share > 1 - 1e-7)
        return _Leaf(best, fixed, best_price, level)

    def _keep(self, base: float, dug: np.ndarray, inside: np.ndarray, room: np.ndarray) -> None:
        """Remembers a pit that fits, if it is the best so far."""
        worth = base + float(self.value[inside].sum())
        if worth > self.found and (self.use[inside].sum(axis=0) <= room).all():
            self.found, self.pit = worth, dug | inside

    def _rounding(self, price: np.ndarray) -> float:
        """What sums and products of floats can be wrong by in all."""
        sizes = np.abs(self.value).sum() + float(price @ (self.use.sum(axis=0) + self.room))
        return 8 * _EPSILON * float(sizes)

    def _deciding(self, leaf: _Leaf) -> np.ndarray:
        """Blocks of the mixture's open part, those first that should lower both children most."""
        free = np.flatnonzero(leaf.share == 1)
        if len(free) > _TESTED:
            free = free[np.linspace(0, len(free) - 1, _TESTED).astype(int)]
        charge = self.use @ leaf.price
        net = np.column_stack((charge, self.value - charge))
        dug = (leaf.fixed == 1) | (leaf.share == 2)
        most = dug | (leaf.share == 1)
        room = float(leaf.price @ self.room)
        small, large = charge[dug].sum(), charge[most].sum()
        need = _sums(free, self.graph.pointer, self.graph.index, dug, net)
        back = self.graph.successors
        lose = _sums(free, back.pointer, back.index, ~most, net)
        first = np.minimum(small + need[:, 0], room)
        last = np.maximum(large - lose[:, 0], room)
        if_dug = -need[:, 1] * (large - room) / np.maximum(large - first, 1e-300)
        if_left = lose[:, 1] * (room - small) / np.maximum(last - small, 1e-300)
        return free[np.argsort(-np.minimum(if_dug, if_left), kind="stable")]


def _lowered(leaf: _Leaf, upper: float) -> _Leaf:
    return _Leaf(upper, leaf.fixed, leaf.price, leaf.share)


def _falls(leaf: _Leaf, pair: tuple[_Leaf | None, _Leaf | None]) -> tuple[float, float]:
    """How far the bound falls in the worse child, then in the better one."""
    falls = [np.inf if child is None else leaf.upper - child.upper for child in pair]
    return min(falls), max(falls)


def _best_mixture(
    worth: np.ndarray, used: np.ndarray, room: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray]:
    """Prices (R,), value and weights (K,) of the best mixture of K pits within the room."""
    unit = max(float(np.abs(worth).max()), 1.0)
    scale = np.maximum(np.abs(room), 1.0)
    result = linprog(
        -worth / unit,
        A_ub=(used / scale).T,
        b_ub=np.maximum(room, 0.0) / scale,
        A_eq=np.ones((1, len(worth))),
        b_eq=[1.0],
        method="highs",
    )
    price = np.maximum(-result.ineqlin.marginals, 0.0) * unit / scale
    return price, -float(result.fun) * unit, result.x


def cone_use(graph: Graph, use: np.ndarray) -> np.ndarray:
    """(n, R) use of all that each block needs, itself included; inf where that takes too long."""
    return _cone_use(graph.pointer, graph.index, graph.order, use, 10 * _LOOKED)


@njit(cache=True, nogil=True)
def _cone_use(pointer, index, order, use, most):
    """The blocks needed least first, until `most` arcs were looked at."""
    out = np.full(use.shape, np.inf)
    mark = np.full(use.shape[0], -1, np.int32)
    queue = np.empty(use.shape[0], np.int32)
    looked = 0
    for b in order:
        if looked > most:
            break
        out[b] = 0.0
        mark[b] = b
        queue[0] = b
        size, done = 1, 0
        while done < size:
            v = queue[done]
            done += 1
            looked += pointer[v + 1] - pointer[v]
            for r in range(use.shape[1]):
                out[b, r] += use[v, r]
            for k in range(pointer[v], pointer[v + 1]):
                p = index[k]
                if mark[p] != b:
                    mark[p] = b
                    queue[size] = p
                    size += 1
    return out


@njit(cache=True, nogil=True)
def _decide(fixed, block, pointer, index, what):
    """Fixes an open block and all open ones that the arcs reach from it; in place."""
    stack = np.empty(fixed.shape[0], np.int32)
    stack[0] = block
    fixed[block] = what
    top = 1
    while top > 0:
        top -= 1
        v = stack[top]
        for k in range(pointer[v], pointer[v + 1]):
            p = index[k]
            if fixed[p] == 0:
                fixed[p] = what
                stack[top] = p
                top += 1


@njit(cache=True, nogil=True)
def _leave_too_heavy(fixed, pointer, index, order, use, cone, room):
    """Leaves each open block whose open cone does not fit, and what needs it; in place.

    A block whose whole cone fits needs no look at its open one. The search ends after `_LOOKED`
    arcs: what it does not leave loosens the bound and nothing else.
    """
    n, limits = use.shape
    mark = np.full(n, -1, np.int32)
    queue = np.empty(n, np.int32)
    looked = 0
    for b in order:
        if fixed[b] != 0:
            continue
        heavy = False
        for k in range(pointer[b], pointer[b + 1]):
            heavy = heavy or fixed[index[k]] < 0
        fits = True
        for r in range(limits):
            fits = fits and cone[b, r] <= room[r]
        if not heavy and (fits or looked > _LOOKED):
            continue
        total = np.zeros(limits)
        mark[b] = b
        queue[0] = b
        size, done = 1, 0
        while done < size and not heavy:
            v = queue[done]
            done += 1
            for r in range(limits):
                total[r] += use[v, r]
                heavy = heavy or total[r] > room[r]
            looked += pointer[v + 1] - pointer[v]
            for k in range(pointer[v], pointer[v + 1]):
                p = index[k]
                if fixed[p] == 0 and mark[p] != b:
                    mark[p] = b
                    queue[size] = p
                    size += 1
        if heavy:
            fixed[b] = -1


@njit(cache=True, nogil=True)
def _sums(blocks, pointer, index, closed, columns):
    """(K, C) sums of columns (n, C) over what the arcs reach from each block, `closed` left out."""
    out = np.zeros((blocks.shape[0], columns.shape[1]))
    mark = np.full(closed.shape[0], -1, np.int32)
    queue = np.empty(closed.shape[0], np.int32)
    for i in range(blocks.shape[0]):
        queue[0] = blocks[i]
        mark[blocks[i]] = i
        size, done = 1, 0
        while done < size:
            v = queue[done]
            done += 1
            for c in range(columns.shape[1]):
                out[i, c] += columns[v, c]
            for k in range(pointer[v], pointer[v + 1]):
                p = index[k]
                if not closed[p] and mark[p] != i:
                    mark[p] = i
                    queue[size] = p
                    size += 1
    return out
