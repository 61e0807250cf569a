"""Follow the path: a script that walks and jumps along the shortest path, the baseline to beat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from frugal_rl.observation.decoder import DecodedFields, Decoder, to_tensors
from nclone.graph.fields import GRAPH_ID, GRAPH_TABLE, PLAYER_NODE
from npp_rl.graphs.batches import ragged_graphs
from npp_rl.graphs.embedded import EmbeddedGraphs
from npp_rl.graphs.embedding_cache import EmbeddingCache
from npp_rl.graphs.paths import AHEAD, path_values

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.tables import Tables

LOOK = AHEAD.index(4)
"""The script walks towards the node four hops (48 px) ahead, and jumps if it or the next is up."""
SIDEWAYS, UP = 0.2, -0.2
AIRBORNE, JUMP_HELD, WALL_CONTACT = 7, 9, 14


class PathFollower:
    """Plays by looking where the path goes; sees the interned graph and the ninja's contacts."""

    def __init__(self, encoding: Encoding, tables: Tables) -> None:
        self.decoder = Decoder(encoding, tables)
        self.mask_name = encoding.spec.action_mask
        self.paths = EmbeddingCache()

    @torch.no_grad()
    def __call__(self, rows: Mapping[str, np.ndarray]) -> np.ndarray:
        """Rows in policy form [N, ...] -> actions [N]."""
        fields = self.decoder(to_tensors(rows, torch.device("cpu")))
        graphs = self.paths.embed(fields[GRAPH_ID], lambda ids: self._graphs(fields, ids))
        ahead = graphs.paths_at(fields[PLAYER_NODE].long())[:, 0]
        dx, near_dy, far_dy = ahead[:, 2 * LOOK], ahead[:, 2 * LOOK + 1], ahead[:, 2 * LOOK + 3]
        state = fields["game_state"]
        right, left = dx > SIDEWAYS, dx < -SIDEWAYS
        grounded, held = state[:, AIRBORNE] < 0, state[:, JUMP_HELD] > 0
        blocked = (state[:, WALL_CONTACT] > 0) & (right | left)
        wanted = (near_dy < UP) | (far_dy < UP) | blocked
        jump = wanted & ~(grounded & held)  # a held button must be let go before the next jump
        side = right.long() + 2 * left.long()  # 0 none, 1 right, 2 left
        actions = torch.tensor([[0, 2, 1], [3, 5, 4]])[jump.long(), side]
        return self._allowed(actions, fields).numpy()

    def _graphs(self, fields: DecodedFields, ids: Tensor) -> EmbeddedGraphs:
        graphs = ragged_graphs(fields.tables[GRAPH_TABLE], ids, torch.arange(len(ids)), False)
        nothing = graphs.nodes[:, :0]
        return EmbeddedGraphs(
            nothing,
            path_values(graphs),
            nothing[: len(ids)],
            graphs.first_node,
            graphs.graph_of_sample,
        )

    def _allowed(self, actions: Tensor, fields: DecodedFields) -> Tensor:
        """A forbidden action becomes doing nothing, which is always allowed."""
        if self.mask_name is None:
            return actions
        mask = fields[self.mask_name].bool()
        return torch.where(mask.gather(1, actions[:, None])[:, 0], actions, 0)
