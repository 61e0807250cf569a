"""Graph embeddings kept while collecting: each (graph, policy version) is encoded once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from npp_rl.graphs import EmbeddedGraphs


class EmbeddingCache:
    """Embeddings by graph id, valid for one version of the encoder's parameters.

    Attributes:
        hits: graphs of batches that were found.
        misses: graphs that had to be encoded.
    """

    def __init__(self, max_bytes: int = 256 << 20) -> None:
        self.max_bytes = max_bytes
        self.hits = self.misses = 0
        self.clear()

    def clear(self) -> None:
        """Forget everything: the parameters have changed."""
        self._place = torch.full((0,), -1, dtype=torch.int64)
        self._nodes: Tensor | None = None
        self._pooled: Tensor | None = None
        self._first: Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all embeddings held."""
        held = (self._nodes, self._pooled, self._first, self._place)
        return sum(t.nbytes for t in held if t is not None)

    def embed(self, ids: Tensor, encode: Callable[[Tensor], EmbeddedGraphs]) -> EmbeddedGraphs:
        """ids [B] int64 of graphs; `encode(ids [G])` is asked for those not yet known."""
        if self.nbytes > self.max_bytes:
            self.clear()
        unique = torch.unique(ids)
        self._make_room(int(unique[-1]) + 1, ids.device)
        fresh = unique[self._place[unique] < 0]
        self.misses += len(fresh)
        self.hits += len(unique) - len(fresh)
        if len(fresh):
            self._append(fresh, encode(fresh))
        assert self._nodes is not None and self._pooled is not None and self._first is not None
        return EmbeddedGraphs(self._nodes, self._pooled, self._first, self._place[ids])

    def _make_room(self, ids: int, device: torch.device) -> None:
        if len(self._place) < ids:
            grown = torch.full((max(ids, 2 * len(self._place)),), -1, device=device)
            grown[: len(self._place)] = self._place
            self._place = grown

    def _append(self, fresh: Tensor, new: EmbeddedGraphs) -> None:
        if self._nodes is None or self._pooled is None or self._first is None:
            self._place[fresh] = torch.arange(len(fresh), device=fresh.device)
            self._nodes, self._pooled, self._first = new.nodes, new.pooled, new.first_node
            return
        known = len(self._pooled)
        self._place[fresh] = known + torch.arange(len(fresh), device=fresh.device)
        self._first = torch.cat((self._first, new.first_node + len(self._nodes)))
        self._nodes = torch.cat((self._nodes, new.nodes))
        self._pooled = torch.cat((self._pooled, new.pooled))
