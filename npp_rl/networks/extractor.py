"""Features of a sample: its branches, its graph read late, and their fusion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from frugal_rl.learn.agents import observed_shape
from npp_rl.choices import Readout, WindowBranch
from npp_rl.graphs.embedded import EmbeddedGraphs
from npp_rl.graphs.paths import PATH_VALUES
from npp_rl.graphs.reader import GraphReader
from npp_rl.networks.branches import (
    AttentiveStateMlp,
    Hazards,
    StateMlp,
    Surroundings,
    global_cnn,
    player_cnn,
    vector_mlp,
)
from npp_rl.networks.fusion import build_fusion

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.spec import ObservationSpec
    from npp_rl.config import AttentionAgent

Fields = Mapping[str, Tensor]
EXTRA = ("time_remaining", "cell_offset")
"""Small vectors that go beside the state where the observation has them."""


@dataclass(frozen=True)
class Features:
    """features [B, out], and the graphs' embeddings, None where no graph is read."""

    features: Tensor
    graphs: EmbeddedGraphs | None


class Extractor(nn.Module):
    """Decoded fields -> features."""

    def __init__(self, agent: AttentionAgent, encoding: Encoding) -> None:
        super().__init__()
        spec = encoding.spec
        self.extra = tuple(name for name in EXTRA if name in spec.by_name)
        self.state = _state_branch(agent, spec, self.extra)
        self.branches = _other_branches(agent, spec)
        self.graph = GraphReader.build(agent, encoding)
        self.readout = agent.graph.readout if self.graph is not None else ()
        widths = [agent.state_features, *self._widths(agent)]
        self.fusion = build_fusion(
            agent.fusion, widths, agent.token, agent.fusion_heads, agent.features
        )

    def _widths(self, agent: AttentionAgent) -> list[int]:
        named = {
            "exit_features": agent.exit_features,
            "reachability_features": agent.reachability_features,
            "tile_window": agent.window_features,
            "hazards": agent.hazard_features,
            "path_ahead": agent.path_features,
            "foresight": agent.foresight_features,
            "player_frame": agent.player_cnn,
            "global_view": agent.global_cnn,
        }
        graph = {
            Readout.pool: agent.graph.out,
            Readout.player_node: agent.graph.hidden,
            Readout.objective_nodes: agent.graph.hidden,
            Readout.path: PATH_VALUES,
        }
        return [named[n] for n in self.branches] + [graph[r] for r in self.readout]

    def forward(self, fields: Fields) -> Features:
        """Fields of B samples -> features [B, out]."""
        state = fields["game_state"]
        empty = state.new_zeros((len(state), 0))
        extra = (
            torch.cat([fields[n].flatten(1) for n in self.extra], dim=1) if self.extra else empty
        )
        parts = [self.state(state, extra)]
        parts += [branch(fields[name]) for name, branch in self.branches.items()]
        graphs = None
        if self.graph is not None:
            graphs = self.graph(fields)
            read = {
                Readout.pool: graphs.of_samples,
                Readout.player_node: lambda: self._player(fields, graphs),
                Readout.objective_nodes: lambda: self._objective(fields, graphs),
                Readout.path: lambda: self._path(fields, graphs),
            }
            parts += [read[r]() for r in self.readout]
        return Features(self.fusion(parts), graphs)

    def _player(self, fields: Fields, graphs: EmbeddedGraphs) -> Tensor:
        assert self.graph is not None
        return graphs.at(self.graph.player_places(fields)).flatten(1)

    def _path(self, fields: Fields, graphs: EmbeddedGraphs) -> Tensor:
        assert self.graph is not None
        return graphs.paths_at(self.graph.player_places(fields)).flatten(1)

    def _objective(self, fields: Fields, graphs: EmbeddedGraphs) -> Tensor:
        assert self.graph is not None
        goals = self.graph.goal_places(fields)
        current = (fields["exit_features"][:, 2:3] > 0.5).long()
        return graphs.at(goals.gather(1, current)).flatten(1)


def _state_branch(
    agent: AttentionAgent, spec: ObservationSpec, extra: tuple[str, ...]
) -> nn.Module:
    shape = observed_shape(spec.by_name["game_state"])  # type: ignore[arg-type]
    window = shape[0] if len(shape) == 2 else 1
    extras = sum(spec.by_name[n].shape[0] for n in extra)
    kind = AttentiveStateMlp if agent.state.value == "attentive" else StateMlp
    return kind(shape[-1], window, extras, agent.state_features)


def _other_branches(agent: AttentionAgent, spec: ObservationSpec) -> nn.ModuleDict:
    branches: dict[str, nn.Module] = {}

    def shape(name: str) -> tuple[int, ...]:
        return observed_shape(spec.by_name[name])  # type: ignore[arg-type]

    if agent.exit_features:
        branches["exit_features"] = vector_mlp(shape("exit_features")[0], agent.exit_features)
    if agent.reachability_features:
        size = shape("reachability_features")[0]
        branches["reachability_features"] = vector_mlp(size, agent.reachability_features)
    if agent.window_features:
        high = spec.by_name["tile_window"].high
        flat = agent.window is WindowBranch.flat
        branches["tile_window"] = Surroundings(
            shape("tile_window"), agent.window_features, high, flat
        )
    if agent.hazard_features:
        branches["hazards"] = Hazards(shape("hazards")[-1], agent.hazard_features)
    if agent.path_features:
        branches["path_ahead"] = vector_mlp(shape("path_ahead")[0], agent.path_features)
    if agent.foresight_features:
        size = prod(shape("foresight"))
        branches["foresight"] = nn.Sequential(
            nn.Flatten(), vector_mlp(size, agent.foresight_features)
        )
    norm = (agent.batch_norm, agent.dropout)
    if agent.player_cnn:
        branches["player_frame"] = player_cnn(shape("player_frame"), agent.player_cnn, *norm)
    if agent.global_cnn:
        branches["global_view"] = global_cnn(shape("global_view"), agent.global_cnn, *norm)
    return nn.ModuleDict(branches)
