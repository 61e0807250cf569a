"""Many closures of one graph whose weights rise from one to the next, so that each holds the last.

Solved by halves: the closure in the middle cuts the blocks in two, the earlier closures lie inside
and the later ones outside of it. So 64 closures cost about as much as six.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mine_rl_npv.optimise.closure import max_closure

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Graph


class Part(NamedTuple):
    """Blocks between two closures, and the precedence among them."""

    blocks: np.ndarray
    """(m,) int64 ids in the whole graph."""
    graph: Graph

    @classmethod
    def whole(cls, graph: Graph) -> Part:
        """All blocks."""
        return cls(np.arange(graph.blocks), graph)

    def split(self, weight: np.ndarray) -> tuple[Part, Part]:
        """The blocks inside and outside of the smallest best closure of weight (n,) float64.

        Its blocks among these, if what lies before them is in it and what lies behind is not.
        """
        inside = max_closure(weight[self.blocks], self.graph)
        return self._where(inside), self._where(~inside)

    def _where(self, keep: np.ndarray) -> Part:
        if keep.all():
            return self
        return Part(self.blocks[keep], self.graph.restricted(keep))


def first_closures(weight: Callable[[int], np.ndarray], count: int, graph: Graph) -> np.ndarray:
    """The first of `count` nested smallest best closures that holds each block, (n,) int32.

    Blocks in none get `count`.

    Args:
        weight: of a closure's number the weights (n,) float64; no block's may fall with the number.
        count: closures.
        graph: precedence between the n blocks.
    """
    first = np.full(graph.blocks, count, np.int32)
    parts = [(0, count, Part.whole(graph))]
    while parts:
        low, high, part = parts.pop()
        if low == high or not len(part.blocks):
            first[part.blocks] = high
            continue
        middle = (low + high) // 2
        inside, outside = part.split(weight(middle))
        parts += [(middle + 1, high, outside), (low, middle, inside)]
    return first
