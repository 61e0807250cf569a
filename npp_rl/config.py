"""The attention agent as values: every named architecture is a YAML file of this dataclass.

Imports no torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from frugal_rl.memory.part import Confidence, Part
from npp_rl.choices import (
    FusionKind,
    GraphEncoding,
    Kind,
    Lookahead,
    ObjectiveHead,
    ObjectiveValues,
    Readout,
    ValueKind,
    WindowBranch,
)

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.tables import Tables
    from frugal_rl.run.config import RunConfig
    from npp_rl.networks.network import AttentionNetwork

network = Late("npp_rl.networks.network")
OFF = {
    "agent.graph.kind": "none",
    "agent.objectives.head": "none",
    "agent.graph.readout": "[pool]",
}
"""How options are switched off that are no widths."""


PICTURES_BYTES = 30 << 20
"""446 and 444 MiB of two agents with pictures beside 416 and 417 of two without."""


class StateBranch(Enum):
    """How the ninja's physics are read."""

    mlp = "mlp"
    attentive = "attentive"


@dataclass(frozen=True)
class AuxiliaryTasks:
    """Weights of the auxiliary losses; 0 leaves a task out.

    Their labels come from the time-ordered rollout (`npp_rl.networks.auxiliary`).
    """

    death: float = 0.0
    """Will the ninja die within `death_steps`?"""
    milestone: float = 0.0
    """How many steps to the next switch or the exit?"""
    objective: float = 0.0
    """Which objective will be reached next?"""
    death_steps: int = 10


@dataclass(frozen=True)
class AttentionAgent:
    """A policy over vectors, pictures and the navigation graph. Widths of 0 leave a branch out."""

    tools: ClassVar[str] = "npp_rl.tools"
    """Where what else can be done with it is found: `frugal_rl.run.tools`."""
    name: str = "attention"
    observation: str = "graph"
    """The env.obs that the agent reads; env=nclone follows it where the user names none."""
    state: StateBranch = StateBranch.mlp
    state_features: int = 128
    exit_features: int = 64
    """Width of the branch over routes to the exit; the objective head reads them too."""
    reachability_features: int = 64
    window: WindowBranch = WindowBranch.cnn
    window_features: int = 0
    """Width of the branch over the tiles around the ninja."""
    hazard_features: int = 0
    """Width of the branch over the nearest dangers."""
    path_features: int = 0
    """Width of the branch over the path ahead."""
    foresight_features: int = 0
    """Width of the branch over what each action would lead to."""
    player_cnn: int = 0
    """Width of the CNN over the crop around the player."""
    global_cnn: int = 0
    """Width of the CNN over the whole level."""
    batch_norm: bool = False
    """In the CNNs; on, PPO's first importance ratio differs from 1."""
    dropout: float = 0.0
    """In the CNNs; above 0, PPO's first importance ratio differs from 1."""
    graph: GraphEncoding = field(default_factory=GraphEncoding)
    fusion: FusionKind = FusionKind.multi_head
    token: int = 256
    """Size of a branch's token in the attention fusions."""
    fusion_heads: int = 8
    features: int = 512
    """What the fusion gives."""
    separate_extractors: bool = False
    """True gives the critic branches, encoder and fusion of its own."""
    actor: tuple[int, ...] = (512, 384, 256, 256)
    critic: tuple[int, ...] = (512, 384, 256)
    objectives: ObjectiveValues = field(default_factory=ObjectiveValues)
    value: ValueKind = ValueKind.scalar
    auxiliary: AuxiliaryTasks = field(default_factory=AuxiliaryTasks)
    lookahead: Lookahead = field(default_factory=Lookahead)
    """Futures that are tried in copies of the world while playing; off by default."""
    cache_embeddings: bool = True
    """Keep graph embeddings while collecting, by (graph, policy version)."""

    def __post_init__(self) -> None:
        if not self.actor or not self.critic:
            raise ValueError("agent.actor and agent.critic need at least one layer each.")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"agent.dropout is {self.dropout}; use a share in [0, 1).")

    @property
    def label_bytes(self) -> int:
        """Bytes per transition of the labels of the auxiliary tasks."""
        tasks = self.auxiliary
        return (tasks.death > 0) + 2 * (tasks.milestone > 0) + (tasks.objective > 0)

    def reads(self) -> dict[str, str]:
        """The fields that the agent needs, and the option that asks for each."""
        wanted = {"game_state": "agent.state_features"}
        optional = {
            "exit_features": ("exit_features", self.exit_features),
            "reachability_features": ("reachability_features", self.reachability_features),
            "tile_window": ("window_features", self.window_features),
            "hazards": ("hazard_features", self.hazard_features),
            "path_ahead": ("path_features", self.path_features),
            "foresight": ("foresight_features", self.foresight_features),
            "player_frame": ("player_cnn", self.player_cnn),
            "global_view": ("global_cnn", self.global_cnn),
            "graph_node_feats": ("graph.kind", self.graph.kind is not Kind.none),
            "player_node": ("graph.readout", self._reads_node(Readout.player_node, Readout.path)),
            "goal_nodes": ("graph.readout", self._reads_node(Readout.objective_nodes)),
        }
        wanted |= {name: f"agent.{o}" for name, (o, on) in optional.items() if on}
        if self.objectives.head is not ObjectiveHead.none:
            wanted["exit_features"] = "agent.objectives.head"
        return wanted

    def parts(self, run: RunConfig) -> list[Part]:
        """What convolutions load beside what every network does."""
        if not (self.player_cnn or self.global_cnn):
            return []
        formula = "code of convolutions, as tiny runs of agents with and without pictures differ"
        calibrated = Confidence.calibrated
        return [Part("kernels of pictures", formula, PICTURES_BYTES, confidence=calibrated)]

    def _reads_node(self, *readouts: Readout) -> bool:
        return self.graph.kind is not Kind.none and bool(set(readouts) & set(self.graph.readout))

    def check(self, encoding: Encoding, action_space: Any) -> None:
        """Refuse an observation that lacks what a branch reads."""
        observed = {f.name for f in encoding.spec.observed()}
        missing = {name: option for name, option in self.reads().items() if name not in observed}
        if "game_state" in missing:
            raise ConfigError(
                f"agent={self.name} reads the state of an N++ game; choose env=nclone with an "
                "env.obs that shows it, or agent=mlp here."
            )
        if missing:
            name, option = next(iter(missing.items()))
            raise ConfigError(
                f"{option} reads '{name}', which this observation does not have "
                f"(it has {', '.join(sorted(observed))}). Choose an env.obs that shows it, or "
                f"switch the branch off: {option}={OFF.get(option, 0)}."
            )

    def build(self, encoding: Encoding, tables: Tables, action_space: Any) -> AttentionNetwork:
        """The network for this observation and these actions."""
        self.check(encoding, action_space)
        built: AttentionNetwork = network.AttentionNetwork(self, encoding, tables, action_space)
        return built
