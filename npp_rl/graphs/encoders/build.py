"""From values to an encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npp_rl.choices import GraphEncoding, Kind
from npp_rl.graphs.encoders.gat import Gat
from npp_rl.graphs.encoders.gcn import Gcn
from npp_rl.graphs.encoders.hgt import Hgt

if TYPE_CHECKING:
    from npp_rl.graphs.encoders.interface import GraphEncoder


def build_encoder(values: GraphEncoding, node_features: int) -> GraphEncoder | None:
    """The encoder that the values describe; None where the agent reads no graph."""
    kinds: dict[Kind, type[GraphEncoder]] = {Kind.gcn: Gcn, Kind.gat: Gat, Kind.hgt: Hgt}
    if values.kind is Kind.none:
        return None
    return kinds[values.kind](values, node_features)
