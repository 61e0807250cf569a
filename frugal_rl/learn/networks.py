"""Networks for any observation: a multilayer perceptron, and a CNN for stacked images."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from frugal_rl.learn.agents import (
    Activation,
    MlpAgent,
    Observed,
    is_image,
    observed_shape,
    refuse_small,
    side_left,
)

Fields = Mapping[str, Tensor]


@dataclass
class Output:
    """What one forward pass gives.

    logits   [B, size of the action head]
    value    [B, 1]
    losses   name -> scalar added to the loss, coefficient included (attention entropy, ...)
    metrics  name -> scalar to be logged
    """

    logits: Tensor
    value: Tensor
    losses: dict[str, Tensor] = field(default_factory=dict)
    metrics: dict[str, Tensor] = field(default_factory=dict)


class Network(nn.Module, ABC):
    """Decoded fields in, `Output` out. Reads only the fields that it needs, by name."""

    recompute: bool = False
    """True recomputes each block's activations in the backward pass instead of keeping them."""
    events: tuple[str, ...] = ()
    """The `Step.events` that `labels` is made from."""

    def labels(self, events: Mapping[str, np.ndarray], done: np.ndarray) -> dict[str, np.ndarray]:
        """Labels [T, N] of a rollout in time order, from its events and episode ends [T, N].

        They come back as rows of the samples for which `forward` computes its losses.
        """
        return {}

    @abstractmethod
    def actor(self, fields: Fields) -> Tensor:
        """Logits or means [B, size]."""

    @abstractmethod
    def critic(self, fields: Fields) -> Tensor:
        """Values [B, 1]."""

    def forward(self, fields: Fields) -> Output:
        """Both; override where they share work."""
        return Output(self.actor(fields), self.critic(fields))

    def run(self, block: nn.Module, inputs: Tensor) -> Tensor:
        """One block, its activations recomputed in the backward pass where that is asked for."""
        if self.recompute and torch.is_grad_enabled():
            out: Tensor = checkpoint(block, inputs, use_reentrant=False)
            return out
        return block(inputs)  # type: ignore[no-any-return]


LAYERS: dict[Activation, type[nn.Module]] = {
    Activation.tanh: nn.Tanh,
    Activation.relu: nn.ReLU,
    Activation.silu: nn.SiLU,
}


def scale_pixels(images: Tensor) -> Tensor:
    """[...] uint8 -> [...] float32 in [0, 1]: the one place where pixels are scaled."""
    return images.float().div_(255.0)  # in place: a second copy takes as much again


def channels_first(images: Tensor) -> Tensor:
    """[B, (stack,) H, W, (C)] -> [B, stack * C, H, W]: the two largest axes are the picture."""
    axes = sorted(range(1, images.ndim), key=lambda a: (-images.shape[a], a))[:2]
    rest = [a for a in range(1, images.ndim) if a not in axes]
    return images.permute(0, *rest, *sorted(axes)).flatten(1, -3) if rest else images.unsqueeze(1)


def orthogonal(module: nn.Module, gain: float) -> None:
    """Orthogonal weights and zero biases, as Stable-Baselines3 does."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            nn.init.orthogonal_(layer.weight, gain=gain)
            if layer.bias is not None:
                layer.bias.data.fill_(0.0)


def perceptron(inputs: int, hidden: Sequence[int], activation: Activation) -> nn.Sequential:
    """Linear layers with an activation behind each."""
    layers: list[nn.Module] = []
    for size in hidden:
        layers += [nn.Linear(inputs, size), LAYERS[activation]()]
        inputs = size
    return nn.Sequential(*layers)


Shape = tuple[int, int, int]
Convolutions = Sequence[Sequence[int]]


def small_cnn(
    shape: Shape, features: int, convolutions: Convolutions = ((16, 8, 4), (32, 4, 2))
) -> nn.Module:
    """[B, C, H, W] -> [B, features]: layers of (channels, kernel, stride), then a linear one.

    A picture that is too small for the convolutions is read by the linear layer alone.
    """
    c, h, w = shape
    if side_left(min(h, w), convolutions) < 1:
        return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), features), nn.ReLU())
    body: list[nn.Module] = []
    for channels, kernel, stride in convolutions:
        body += [nn.Conv2d(c, channels, kernel, stride), nn.ReLU()]
        c = channels
    return _with_linear([*body, nn.Flatten()], shape, features)


def nature_cnn(shape: tuple[int, int, int], features: int) -> nn.Module:
    """[B, C, H, W] -> [B, features]: the network of Mnih et al. 2015; needs 36 pixels."""
    refuse_small(*shape[1:])
    body = [
        nn.Conv2d(shape[0], 32, 8, 4),
        nn.ReLU(),
        nn.Conv2d(32, 64, 4, 2),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, 1),
        nn.ReLU(),
        nn.Flatten(),
    ]
    return _with_linear(body, shape, features)


def _with_linear(body: list[nn.Module], shape: tuple[int, ...], features: int) -> nn.Module:
    with torch.no_grad():
        width = nn.Sequential(*body)(torch.zeros(1, *shape)).shape[1]
    return nn.Sequential(*body, nn.Linear(width, features), nn.ReLU())


class Embedding(nn.Module):
    """Observed fields, each by its rule, side by side as [B, width] float32.

    Floats as they are; flags cast; integers cast and divided by their declared bound where that is
    above 1 and the field is `scaled`; pictures scaled, less their mean where one is given, and read
    by a CNN, with their channels innermost where that is asked for.
    """

    def __init__(
        self,
        fields: Sequence[Observed],
        image_features: int,
        cnn: Callable[[tuple[int, int, int], int], nn.Module],
        channels_last: bool = False,
        pixel_mean: float = 0.0,
    ) -> None:
        super().__init__()
        self.pixel_mean = pixel_mean
        self.layout = torch.channels_last if channels_last else torch.contiguous_format
        self.scales = {f.name: _scale(f) for f in fields}
        self.cnns = nn.ModuleDict()
        self.pictures = {
            f.name: _module_name(f.name, i) for i, f in enumerate(fields) if is_image(f)
        }
        for f in fields:
            if is_image(f):
                shape = channels_first(torch.zeros(1, *observed_shape(f), dtype=torch.uint8)).shape
                layers = cnn((shape[1], shape[2], shape[3]), image_features)
                self.cnns[self.pictures[f.name]] = layers
        self.sizes = {f.name: math.prod(observed_shape(f)) for f in fields if not is_image(f)}
        self.width = sum(self.sizes.values()) + image_features * len(self.cnns)

    def forward(self, fields: Fields, run: Callable[[nn.Module, Tensor], Tensor]) -> Tensor:
        """Decoded fields -> [B, width]; `run` is the network's way to run a block."""
        parts = [self.numbers_of(fields, name) for name in self.sizes]
        for name, module in self.pictures.items():
            images = channels_first(fields[name])
            if self.layout is torch.channels_last:
                images = images.contiguous(memory_format=self.layout)
            parts.append(run(self.cnns[module], self._pixels(images)))
        return torch.cat(parts, dim=1)  # one part too: products of unaligned rows may round apart

    def pixels_of(self, fields: Fields, name: str) -> Tensor:
        """One picture, [B, pixels] float32, as `forward` shows it to its layers."""
        return self._pixels(channels_first(fields[name])).flatten(1).contiguous()

    def _pixels(self, images: Tensor) -> Tensor:
        scaled = scale_pixels(images)
        return scaled.sub_(self.pixel_mean) if self.pixel_mean else scaled

    def numbers_of(self, fields: Fields, name: str) -> Tensor:
        """A field that is no picture, [B, numbers] float32."""
        values = fields[name]
        flat = values.flatten(1) if values.ndim > 1 else values.unsqueeze(1)
        scaled = flat if flat.dtype == torch.float32 else flat.float()
        return scaled if self.scales[name] == 1.0 else scaled * self.scales[name]


def _module_name(name: str, place: int) -> str:
    """The field's name, unless torch takes no module of that name ("a.b", "type", "keys")."""
    taken = "." in name or not name or hasattr(nn.ModuleDict(), name)
    return f"field {place}" if taken else name


def _scale(f: Observed) -> float:
    whole = not np.issubdtype(np.dtype(f.dtype), np.floating)
    bound = max(abs(f.low), abs(f.high))
    return 1.0 / bound if f.scaled and whole and np.isfinite(bound) and bound > 1 else 1.0


class PerceptronNetwork(Network):
    """Embedded fields, a shared trunk, separate trunks for actor and critic."""

    def __init__(self, embedding: Embedding, agent: MlpAgent, outputs: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.shared = perceptron(embedding.width, agent.shared, agent.activation)
        width = agent.shared[-1] if agent.shared else embedding.width
        self.actor_trunk = perceptron(width, agent.actor, agent.activation)
        self.critic_trunk = perceptron(width, agent.critic, agent.activation)
        self.logits = nn.Linear(agent.actor[-1] if agent.actor else width, outputs)
        self.value = nn.Linear(agent.critic[-1] if agent.critic else width, 1)
        root_two = math.sqrt(2)
        for module in (self.embedding, self.shared, self.actor_trunk, self.critic_trunk):
            orthogonal(module, root_two)
        orthogonal(self.logits, 0.01)
        orthogonal(self.value, 1.0)

    def features(self, fields: Fields) -> Tensor:
        """[B, width of the shared trunk]."""
        return self.run(self.shared, self.embedding(fields, self.run))

    def actor(self, fields: Fields) -> Tensor:
        """Logits or means [B, size]."""
        return self._act(self.features(fields))

    def critic(self, fields: Fields) -> Tensor:
        """Values [B, 1]."""
        return self._value(self.features(fields))

    def forward(self, fields: Fields) -> Output:
        """Both from one embedding."""
        features = self.features(fields)
        return Output(self._act(features), self._value(features))

    def _act(self, features: Tensor) -> Tensor:
        logits: Tensor = self.logits(self.run(self.actor_trunk, features))
        return logits

    def _value(self, features: Tensor) -> Tensor:
        value: Tensor = self.value(self.run(self.critic_trunk, features))
        return value
