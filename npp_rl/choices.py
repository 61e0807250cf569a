"""What the attention agent can be made of, as values. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The architecture of an encoder."""

    none = "none"
    gcn = "gcn"
    gat = "gat"
    hgt = "hgt"


class Pool(Enum):
    """How node embeddings become one embedding of the graph."""

    mean = "mean"
    mean_max = "mean_max"


class Readout(Enum):
    """What samples read of their graph.

    The whole, the embedding at the player's place, those at the objectives' places, or where the
    shortest path to the objective goes from the player's place (no embedding, plain geometry).
    """

    pool = "pool"
    player_node = "player_node"
    objective_nodes = "objective_nodes"
    path = "path"


class DegreeScale(Enum):
    """Weight of a message of a GCN: by both ends' degrees, or one number for every graph."""

    degrees = "degrees"
    max_nodes = "max_nodes"


@dataclass(frozen=True)
class GraphEncoding:
    """Values of a graph encoder."""

    kind: Kind = Kind.gcn
    layers: int = 3
    hidden: int = 128
    heads: int = 8
    """Attention heads of GAT and HGT."""
    out: int = 256
    """Numbers of the graph embedding."""
    pool: Pool = Pool.mean
    scale: DegreeScale = DegreeScale.degrees
    edge_features: bool = False
    """GAT: edge features take part in the attention."""
    type_embedding: bool = False
    """Add a learned vector per node type (the simplified HGT is GAT with this on)."""
    readout: tuple[Readout, ...] = (Readout.pool,)

    def __post_init__(self) -> None:
        if self.kind in (Kind.gat, Kind.hgt) and self.hidden % self.heads:
            raise ValueError(
                f"agent.graph.hidden={self.hidden} is not a multiple of "
                f"agent.graph.heads={self.heads}; choose one that is."
            )
        if self.kind is not Kind.none and (not self.readout or self.layers < 1):
            raise ValueError(
                "agent.graph needs at least one layer and one readout, such as [pool]."
            )


class WindowBranch(Enum):
    """How the tiles around the ninja are read."""

    cnn = "cnn"
    flat = "flat"


class FusionKind(Enum):
    """How branches are joined."""

    concat = "concat"
    multi_head = "multi_head"
    single_head = "single_head"
    adaptive = "adaptive"


class ObjectiveHead(Enum):
    """How objectives reach the logits: by attention, side by side, or not at all."""

    attention = "attention"
    concat = "concat"
    none = "none"


@dataclass(frozen=True)
class ObjectiveValues:
    """Values of the objective head."""

    head: ObjectiveHead = ObjectiveHead.attention
    hidden: int = 128
    token: int = 64
    width: int = 512
    """Size of queries, keys and values."""
    heads: int = 8
    out: int = 256
    split_exit: bool = False
    """True gives exit switch and exit door a token each."""
    entropy_coef: float = 0.01
    """Weight of the attention entropy bonus; 0 leaves it out of the loss."""
    normalise_entropy: bool = False
    """True divides each sample's entropy by log(number of its tokens)."""

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(
                f"agent.objectives.width={self.width} is not a multiple of "
                f"agent.objectives.heads={self.heads}; choose one that is."
            )

    @property
    def exit_tokens(self) -> int:
        """Tokens that every level has."""
        return 2 if self.split_exit else 1


class ValueKind(Enum):
    """How the critic ends."""

    scalar = "scalar"
    dueling = "dueling"


@dataclass(frozen=True)
class Lookahead:
    """How the policy looks ahead while it plays (`npp_rl.lookahead`); learning never does."""

    samples: int = 0
    """Futures that it samples where its likeliest one dies or gets nowhere; 0 looks at none."""
    steps: int = 24
    """Decisions that a future has."""
    commit: int = 6
    """Decisions that are played before it looks again."""

    def __post_init__(self) -> None:
        if self.samples < 0:
            raise ValueError(f"agent.lookahead.samples is {self.samples}; use 0 (off) or more.")
        if not 1 <= self.commit <= self.steps:
            raise ValueError(
                f"agent.lookahead.commit is {self.commit} of {self.steps} steps; play at least 1 "
                "and at most agent.lookahead.steps before looking again."
            )
