"""Graph embeddings kept while collecting: each (graph, policy version) is encoded once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from frugal_rl.observation.untraced import untraced_alone
from npp_rl.graphs.embedded import EmbeddedGraphs


class _Rows:
    """A tensor that grows by doubling; rows [0, used) are valid."""

    def __init__(self, like: Tensor) -> None:
        self.values = like.new_empty((0, *like.shape[1:]))
        self.used = 0

    def append(self, rows: Tensor) -> None:
        """Add rows at the end."""
        need = self.used + len(rows)
        if need > len(self.values):
            grown = rows.new_empty((max(need, 2 * len(self.values)), *rows.shape[1:]))
            grown[: self.used] = self.values[: self.used]
            self.values = grown
        self.values[self.used : need] = rows
        self.used = need

    @property
    def valid(self) -> Tensor:
        """The rows in use; a view."""
        return self.values[: self.used]


class EmbeddingCache:
    """Embeddings by graph id, valid for one version of the encoder's parameters.

    Inside a compiled network it runs as written; the encoder that it asks is compiled.

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
        self._held: tuple[_Rows, _Rows, _Rows, _Rows] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all embeddings held."""
        return self._place.nbytes + sum(rows.values.nbytes for rows in self._held or ())

    @untraced_alone
    def embed(self, ids: Tensor, encode: Callable[[Tensor], EmbeddedGraphs]) -> EmbeddedGraphs:
        """Look up graphs `ids` [B] int64; `encode(ids [G])` is asked for those not yet known."""
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
        nodes, paths, pooled, first = (rows.valid for rows in self._held)
        return EmbeddedGraphs(nodes, paths, pooled, first, self._place[ids])

    def _make_room(self, ids: int, device: torch.device) -> None:
        if len(self._place) < ids:
            grown = torch.full((max(ids, 2 * len(self._place)),), -1, device=device)
            grown[: len(self._place)] = self._place
            self._place = grown

    def _append(self, fresh: Tensor, new: EmbeddedGraphs) -> None:
        parts = (new.nodes, new.paths, new.pooled, new.first_node)
        if self._held is None:
            nodes, paths, pooled, first = (_Rows(part) for part in parts)
            self._held = (nodes, paths, pooled, first)
        nodes, paths, pooled, first = self._held
        self._place[fresh] = pooled.used + torch.arange(len(fresh), device=fresh.device)
        first.append(new.first_node + nodes.used)
        nodes.append(new.nodes)
        paths.append(new.paths)
        pooled.append(new.pooled)
