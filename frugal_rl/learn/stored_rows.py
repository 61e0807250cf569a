"""stable-baselines3's own networks, fed with stored rows: the decoder is their first layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BaseModel, BasePolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from frugal_rl.learn.actions import mask_logits
from frugal_rl.observation.decoder import Decoder, torch_dtype

if TYPE_CHECKING:
    from frugal_rl.learn.networks import Embedding


@dataclass
class Source:
    """The decoder that all extractors of one policy share; no module, so that none owns it."""

    decoder: Decoder
    space: spaces.Dict

    def unpacked(self, packed: Tensor) -> dict[str, Tensor]:
        """Bytes [B, sum of all rows] as rows by name."""
        rows, at = {}, 0
        for name, box in self.space.items():
            dtype, shape = torch_dtype(box.dtype), tuple(box.shape or ())
            size = math.prod(shape) * dtype.itemsize
            values = packed[:, at : at + size].contiguous().view(dtype)
            rows[name], at = values.reshape(len(packed), *shape), at + size
        return rows

    def packed(self, rows: Mapping[str, Tensor]) -> Tensor:
        """Rows by name as bytes [B, sum of all rows]."""
        parts = [rows[n].contiguous().reshape(len(rows[n]), -1) for n in self.space]
        return torch.cat([part.view(torch.uint8) for part in parts], dim=1)


class PackedDraws:
    """A replay whose rows are drawn as bytes: for algorithms that join observations as tensors."""

    def __init__(self, replay: Any, source: Source) -> None:
        self.replay, self.source = replay, source

    def sample(self, batch_size: int, env: Any = None) -> Any:
        """Transitions, each observation one row of bytes."""
        drawn = self.replay.sample(batch_size, env)
        return drawn._replace(
            observations=self.source.packed(drawn.observations),
            next_observations=self.source.packed(drawn.next_observations),
        )


class RowsExtractor(BaseFeaturesExtractor):
    """Decoded fields as the agent embeds them, [B, width]."""

    def __init__(
        self, observation_space: spaces.Dict, source: Source, embed: Callable[[], Embedding]
    ) -> None:
        embedding = embed()
        super().__init__(observation_space, embedding.width)
        self.embedding, self.source = embedding, source

    def forward(self, obs: dict[str, Tensor] | Tensor) -> Tensor:
        """Stored rows [B, ...] -> features [B, width] float32."""
        rows = self.source.unpacked(obs) if isinstance(obs, Tensor) else obs
        features: Tensor = self.embedding(self.source.decoder(rows), lambda block, x: block(x))
        return features


def read_stored_rows(policy: BasePolicy) -> None:
    """Let all networks of a policy hand stored rows to their extractors as they are."""
    for module in policy.modules():
        if isinstance(module, BaseModel):
            module.extract_features = MethodType(_as_they_are, module)  # type: ignore[method-assign]


def _as_they_are(self: BaseModel, obs: Any, features_extractor: Any = None) -> Tensor:
    """SB3 would turn every box into float32 here."""
    extractor: Any = features_extractor or self.features_extractor
    features: Tensor = extractor(obs)
    return features


def mask_values(networks: Sequence[nn.Module], source: Source, name: str) -> None:
    """Values of forbidden actions become the least number, for acting and for targets alike."""
    for network in networks:
        network.forward = _masked(network.forward, source, name)


def _masked(forward: Callable[[Any], Tensor], source: Source, name: str) -> Callable[[Any], Tensor]:
    def masked(obs: Any) -> Tensor:
        values, mask = forward(obs), source.decoder(obs)[name]
        return mask_logits(values, mask[:, None] if values.ndim == 3 else mask)

    return masked


@dataclass
class Acted:
    """What a policy does: at its best, and with its own randomness."""

    best: Tensor
    sampled: Tensor


class ActedHead:
    """Chooses between the two; there is nothing left to sample."""

    def act(self, output: Acted, deterministic: bool) -> tuple[Tensor, Tensor]:
        """Actions [B, ...]; no log-probability is known."""
        actions = output.best if deterministic else output.sampled
        return actions, torch.zeros(len(actions))


class StoredRowsPolicy(nn.Module):
    """A policy of SB3 with what evaluation, play and checkpoints ask of a policy."""

    def __init__(self, inner: BasePolicy, source: Source) -> None:
        super().__init__()
        self.inner, self.source, self.head = inner, source, ActedHead()

    @property
    def decoder(self) -> Decoder:
        """The first layer."""
        return self.source.decoder

    @decoder.setter
    def decoder(self, decoder: Decoder) -> None:
        self.source.decoder = decoder

    @property
    def action_space(self) -> spaces.Space[Any]:
        """What it acts in."""
        return self.inner.action_space

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.inner.device

    def set_training_mode(self, mode: bool) -> None:
        """Batch norm and dropout learn, or not."""
        self.inner.set_training_mode(mode)

    @torch.no_grad()
    def actor_output(self, obs: dict[str, Tensor]) -> Acted:
        """Actions in the environment's units, chosen in both ways."""
        best, sampled = (self.inner._predict(obs, deterministic=d) for d in (True, False))
        return Acted(self._unscaled(best), self._unscaled(sampled))

    def _unscaled(self, actions: Tensor) -> Tensor:
        if not isinstance(self.action_space, spaces.Box):
            return actions
        units = self.inner.unscale_action(actions.numpy(force=True))
        return torch.as_tensor(np.asarray(units))
