"""Graph embeddings kept while collecting: each (graph, policy version) is encoded once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

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
        self._held: EmbeddedGraphs | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all embeddings held."""
        h = self._held
        held = (self._place,) if h is None else (self._place, h.nodes, h.paths, h.pooled)
        return sum(t.nbytes for t in held)

    def embed(self, ids: Tensor, encode: Callable[[Tensor], EmbeddedGraphs]) -> EmbeddedGraphs:
        """Ids [B] int64 of graphs; `encode(ids [G])` is asked for those not yet known."""
        if self.nbytes > self.max_bytes:
            self.clear()
        unique = torch.unique(ids)
        self._make_room(int(unique[-1]) + 1, ids.device)
        fresh = unique[self._place[unique] < 0]
        self.misses += len(fresh)
        self.hits += len(unique) - len(fresh)
        if len(fresh):
            self._append(fresh, encode(fresh))
        assert self._held is not None
        return replace(self._held, graph_of_sample=self._place[ids])

    def _make_room(self, ids: int, device: torch.device) -> None:
        if len(self._place) < ids:
            grown = torch.full((max(ids, 2 * len(self._place)),), -1, device=device)
            grown[: len(self._place)] = self._place
            self._place = grown

    def _append(self, fresh: Tensor, new: EmbeddedGraphs) -> None:
        known = 0 if self._held is None else len(self._held.pooled)
        self._place[fresh] = known + torch.arange(len(fresh), device=fresh.device)
        if self._held is None:
            self._held = new
            return
        old = self._held
        self._held = EmbeddedGraphs(
            torch.cat((old.nodes, new.nodes)),
            torch.cat((old.paths, new.paths)),
            torch.cat((old.pooled, new.pooled)),
            torch.cat((old.first_node, new.first_node + len(old.nodes))),
            old.graph_of_sample,
        )
