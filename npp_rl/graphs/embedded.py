"""What an encoder gave for the graphs of a minibatch, read per sample."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from frugal_rl.observation.distinct import rows_at


@dataclass(frozen=True)
class EmbeddedGraphs:
    """What an encoder gave for G graphs, and which of them each sample has.

    nodes            [n, D]
    paths            [n, PATH_VALUES], see `npp_rl.graphs.paths`; [n, 0] where nobody reads them
    pooled           [G, out]
    first_node       [G] int64
    graph_of_sample  [B] int64
    """

    nodes: Tensor
    paths: Tensor
    pooled: Tensor
    first_node: Tensor
    graph_of_sample: Tensor

    def of_samples(self) -> Tensor:
        """[B, out]: the embedding of each sample's graph."""
        return rows_at(self.pooled, self.graph_of_sample)

    def at(self, places: Tensor) -> Tensor:
        """Places [B, K] int64, nodes within each sample's graph -> [B, K, D]; -1 gives zeros."""
        return self._read(self.nodes, places)

    def paths_at(self, places: Tensor) -> Tensor:
        """Places [B, K] int64 -> [B, K, PATH_VALUES]; -1 gives zeros."""
        return self._read(self.paths, places)

    def _read(self, values: Tensor, places: Tensor) -> Tensor:
        if not len(values):
            return values.new_zeros((*places.shape, values.shape[1]))
        rows = self.first_node[self.graph_of_sample][:, None] + places.clamp(min=0)
        rows = rows.clamp(max=len(values) - 1)
        return rows_at(values, rows) * (places >= 0)[..., None]
