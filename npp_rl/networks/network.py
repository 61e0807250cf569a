"""The attention agent's network: extractor, residual trunks, objective head, value, extras."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from frugal_rl.learn.networks import Network, Output
from npp_rl.choices import ObjectiveHead, Readout, ValueKind
from npp_rl.graphs.reader import GraphReader
from npp_rl.networks.auxiliary import AuxiliaryHeads
from npp_rl.networks.extractor import Extractor, Features
from npp_rl.networks.objectives import MAX_DOORS, Attended, ObjectivePolicy, Tokens
from npp_rl.networks.trunk import build_value_head, masked_probabilities, residual_trunk

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.tables import Tables
    from npp_rl.config import AttentionAgent

Fields = Mapping[str, Tensor]
DOORS, NUM_DOORS = "locked_door_features", "num_locked_doors"


class AttentionNetwork(Network):
    """Decoded fields in, logits, value and the extras of the same forward pass out."""

    def __init__(
        self, agent: AttentionAgent, encoding: Encoding, tables: Tables, action_space: Any
    ) -> None:
        super().__init__()
        self.agent, actions = agent, int(action_space.n)
        spec = encoding.spec
        self.mask_name = spec.action_mask
        self.has_doors = DOORS in spec.by_name and NUM_DOORS in spec.by_name
        self.extractor = Extractor(agent, encoding)
        self.critic_extractor = Extractor(agent, encoding) if agent.separate_extractors else None
        self.actor_trunk = residual_trunk(agent.features, agent.actor)
        self.critic_trunk = residual_trunk(agent.features, agent.critic)
        latent = agent.actor[-1]
        self.reads_nodes = Readout.objective_nodes in self.extractor.readout
        nodes = agent.graph.hidden if self.reads_nodes else 0
        self.policy = _policy_head(agent, latent, actions, nodes, self.has_doors)
        self.value = build_value_head(agent.value, agent.critic[-1], actions)
        self.auxiliary = AuxiliaryHeads.build(agent.auxiliary, latent)
        if self.auxiliary is not None:
            self.events = ("died", "milestone")
        object.__setattr__(self, "_recompute", False)

    @property
    def recompute(self) -> bool:  # type: ignore[override]
        """True recomputes each block's activations in the backward pass."""
        return bool(self._recompute)

    @recompute.setter
    def recompute(self, on: bool) -> None:
        object.__setattr__(self, "_recompute", on)
        for module in self.modules():
            if isinstance(module, GraphReader):
                module.recompute = on

    def actor(self, fields: Fields) -> Tensor:
        """Logits [B, actions]."""
        return self._act(self.extractor(fields), fields)[0]

    def critic(self, fields: Fields) -> Tensor:
        """Values [B, 1]."""
        features = (self.critic_extractor or self.extractor)(fields)
        logits = None
        if self.agent.value is ValueKind.dueling:
            with torch.no_grad():
                own = features if self.critic_extractor is None else self.extractor(fields)
                logits = self._act(own, fields)[0]
        return self._value(features, logits, fields)

    def forward(self, fields: Fields) -> Output:
        """Both, with attention entropy and auxiliary losses computed from this very pass."""
        features = self.extractor(fields)
        logits, attended, latent = self._act(features, fields)
        if self.critic_extractor is not None:
            features = self.critic_extractor(fields)
        out = Output(logits, self._value(features, logits, fields))
        if attended is not None:
            out.metrics["attention_entropy"] = attended.entropy
            if self.agent.objectives.entropy_coef:
                bonus = -self.agent.objectives.entropy_coef * attended.entropy
                out.losses["attention_entropy_loss"] = bonus
        if self.auxiliary is not None and torch.is_grad_enabled():
            out.losses |= self.auxiliary.losses(latent, fields)
        return out

    def labels(self, events: Mapping[str, np.ndarray], done: np.ndarray) -> dict[str, np.ndarray]:
        """Labels of the auxiliary tasks, from a rollout in time order."""
        if self.auxiliary is None:
            return {}
        return self.auxiliary.labels(events["died"], done, events["milestone"])

    def attention(self, fields: Fields) -> Tensor:
        """[B, tokens, heads]: the weight of each objective; 0 where there is none. For pictures."""
        _, attended, _ = self._act(self.extractor(fields), fields)
        if attended is None:
            raise ValueError("This agent has no objective attention (agent.objectives.head).")
        tokens, count = attended.tokens, self.agent.objectives.exit_tokens + 2 * MAX_DOORS
        batch, heads = len(fields["game_state"]), attended.weights.shape[1]
        out = attended.weights.new_zeros((batch, count, heads))
        out[tokens.samples, tokens.places] = attended.weights
        return out

    def _act(self, features: Features, fields: Fields) -> tuple[Tensor, Attended | None, Tensor]:
        latent = self.run(self.actor_trunk, features.features)
        if isinstance(self.policy, ObjectivePolicy):
            logits, attended = self.policy(latent, self._tokens(features, fields))
            return logits, attended, latent
        return self.policy(self._beside(latent, fields)), None, latent

    def _tokens(self, features: Features, fields: Fields) -> Tokens:
        assert isinstance(self.policy, ObjectivePolicy)
        doors = (fields[DOORS], fields[NUM_DOORS]) if self.has_doors else (None, None)
        nodes = None
        if self.reads_nodes and features.graphs is not None and self.extractor.graph is not None:
            nodes = features.graphs.at(self.extractor.graph.goal_places(fields))
        tokens: Tokens = self.policy.tokens(fields["exit_features"], *doors, nodes)
        return tokens

    def _beside(self, latent: Tensor, fields: Fields) -> Tensor:
        if self.agent.objectives.head is ObjectiveHead.none:
            return latent
        parts = [latent, fields["exit_features"]]
        if self.has_doors:
            rows = torch.arange(MAX_DOORS, device=latent.device)
            real = rows < fields[NUM_DOORS].reshape(-1, 1)
            parts.append((fields[DOORS] * real[..., None]).flatten(1))
        return torch.cat(parts, dim=1)

    def _value(self, features: Features, logits: Tensor | None, fields: Fields) -> Tensor:
        latent = self.run(self.critic_trunk, features.features)
        probabilities = None
        if self.agent.value is ValueKind.dueling and logits is not None:
            mask = fields[self.mask_name] if self.mask_name else None
            probabilities = masked_probabilities(logits, mask)
        value: Tensor = self.value(latent, probabilities)
        return value


def _policy_head(
    agent: AttentionAgent, latent: int, actions: int, nodes: int, has_doors: bool
) -> nn.Module:
    if agent.objectives.head is ObjectiveHead.attention:
        return ObjectivePolicy(latent, agent.objectives, actions, nodes)
    beside = 0
    if agent.objectives.head is ObjectiveHead.concat:
        beside = 7 + (8 * MAX_DOORS if has_doors else 0)
    layer = nn.Linear(latent + beside, actions)
    nn.init.orthogonal_(layer.weight, 0.01)
    nn.init.zeros_(layer.bias)
    return layer
