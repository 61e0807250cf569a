"""Agents for any observation, as values: a multilayer perceptron, and a CNN for stacked images.

Imports no torch: the networks are built by `frugal_rl.learn.networks`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from frugal_rl.observation.fields import EPISODE, Derived, Static, Stored
from frugal_rl.ranges import at_least, between

if TYPE_CHECKING:
    from frugal_rl.learn.networks import Embedding, Network, Shape
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.tables import Tables

networks = Late("frugal_rl.learn.networks")
actions = Late("frugal_rl.learn.actions")
Observed = Stored | Static | Derived


class Activation(Enum):
    """The function between layers."""

    tanh = "tanh"
    relu = "relu"
    silu = "silu"


def observed_shape(f: Observed) -> tuple[int, ...]:
    """Shape of one decoded field, its window included."""
    return f.observed_shape if isinstance(f, Stored) else f.shape


def picture_of(f: Observed) -> tuple[int, int]:
    """Height and width of a picture: its two largest axes, in their order."""
    shape = observed_shape(f)
    axes = sorted(range(len(shape)), key=lambda a: (-shape[a], a))[:2]
    height, width = (shape[a] for a in sorted(axes))
    return height, width


def side_left(side: int, convolutions: Sequence[Sequence[int]]) -> int:
    """Pixels that are left of so many behind layers of (channels, kernel, stride)."""
    for _, kernel, stride in convolutions:
        side = (side - kernel) // stride + 1
    return side


def is_image(f: Observed) -> bool:
    """An 8-bit field with at least two axes of 8 or more is a picture, or a stack of them."""
    large = [n for n in observed_shape(f) if n >= 8]
    return np.dtype(f.dtype) == np.uint8 and len(large) >= 2


NATURE_SIDE = 36
"""Pixels that kernels of 8, 4 and 3 with strides of 4, 2 and 1 need."""
Widths = Annotated[tuple[int, ...], at_least(1)]
"""Units of each layer; none means no layer."""


@dataclass(frozen=True)
class MlpAgent:
    """A multilayer perceptron over all observed fields; pictures go through a small CNN."""

    name: str = "mlp"
    actor: Widths = (64, 64)
    """Sizes of the actor's hidden layers."""
    critic: Widths = (64, 64)
    """Sizes of the critic's hidden layers."""
    shared: Widths = ()
    """Sizes of hidden layers that both share, before their own."""
    activation: Activation = Activation.tanh
    image_features: Annotated[int, at_least(1)] = 128
    """Numbers that a picture becomes."""
    convolutions: tuple[tuple[int, ...], ...] = ((16, 8, 4), (32, 4, 2))
    """Layers over a picture: channels, kernel and stride of each, in px."""
    channels_last: bool = False
    """Pictures with their channels innermost; the same sums in another order."""
    pixel_mean: Annotated[float, between(0, 1)] = 0.0
    """Subtracted from pixels, which are scaled to [0, 1]: about their mean.

    Before a bright background that hardly changes, rectified units are all on or all off whatever
    moves in front of it, and some never learn (`benchmarks/fighting_learning.md`).
    """
    read: tuple[str, ...] = ()
    """Fields to read; empty reads all whose size is at most `largest_field`."""
    largest_field: int = 8192
    """Values above which an unnamed field that is no picture is left out."""

    def __post_init__(self) -> None:
        wrong = [c for c in self.convolutions if len(c) != 3 or min(c) < 1]
        if wrong:
            raise ConfigError(
                f"agent.convolutions has {list(wrong[0])}; give [channels,kernel,stride] of each "
                "layer, for instance [[16,8,4],[32,4,2]]."
            )

    def build(self, encoding: Encoding, tables: Tables, action_space: Any) -> Network:
        """The network for this observation and these actions."""
        head = actions.action_head(action_space)
        network: Network = networks.PerceptronNetwork(self.embedding(encoding), self, head.size)
        return network

    def check(self, encoding: Encoding, action_space: Any) -> None:
        """Refuse an observation without anything to read."""
        self.fields(encoding)

    def embedding(self, encoding: Encoding) -> Embedding:
        """The features of this observation: what other algorithms' networks stand on."""
        fields = self.fields(encoding)
        features: Embedding = networks.Embedding(
            fields, self.image_features, self.cnn(), self.channels_last, self.pixel_mean
        )
        return features

    def cnn(self) -> Callable[[Shape, int], Any]:
        """What reads a picture."""
        return partial(networks.small_cnn, convolutions=self.convolutions)

    def fields(self, encoding: Encoding) -> list[Observed]:
        """The fields that the network reads."""
        observed = {f.name: f for f in encoding.spec.observed()}
        unknown = set(self.read) - set(observed)
        if unknown:
            raise ConfigError(
                f"agent.read names {sorted(unknown)}; this environment observes {sorted(observed)}."
            )
        if self.read:
            return [observed[name] for name in self.read]
        chosen = [f for f in observed.values() if self._small(f)]
        if not chosen:
            raise ConfigError(
                f"No observed field has at most {self.largest_field} values; raise "
                "agent.largest_field, name fields in agent.read, or choose another agent."
            )
        return chosen

    def convolves(self, f: Observed) -> bool:
        """Whether a picture is large enough for the convolutions."""
        return side_left(min(picture_of(f)), self.convolutions) >= 1

    def _small(self, f: Observed) -> bool:
        if isinstance(f, Stored) and f.window == EPISODE:
            return False
        return is_image(f) or math.prod(observed_shape(f)) <= self.largest_field


def refuse_small(height: int, width: int, where: str = "") -> None:
    """Refuse a picture of which the convolutions of the Atari literature leave nothing.

    Raises:
        ConfigError: naming its size.
    """
    if min(height, width) < NATURE_SIDE:
        raise ConfigError(
            f"agent=nature_cnn needs pictures of at least {NATURE_SIDE} x {NATURE_SIDE}, got "
            f"{height} x {width}{where}; choose agent=mlp."
        )


@dataclass(frozen=True)
class NatureCnnAgent(MlpAgent):
    """The convolutional network of the Atari literature over stacked pictures."""

    name: str = "nature_cnn"
    actor: Widths = ()
    critic: Widths = ()
    activation: Activation = Activation.relu
    image_features: Annotated[int, at_least(1)] = 512

    def check(self, encoding: Encoding, action_space: Any) -> None:
        """Refuse an observation without pictures: nothing would be left of the network."""
        fields = self.fields(encoding)
        if not any(map(is_image, fields)):
            shown = ", ".join(
                f"{f.name} {list(observed_shape(f))} {np.dtype(f.dtype)}" for f in fields
            )
            raise ConfigError(
                f"agent={self.name} reads pictures (uint8, two axes of 8 or more), and this "
                f"observation has none: {shown}. Choose agent=mlp, or an env.obs with frames."
            )
        for f in filter(is_image, fields):
            refuse_small(*picture_of(f), f" in '{f.name}'")

    def convolves(self, f: Observed) -> bool:
        """Others are refused."""
        return True

    def cnn(self) -> Callable[[Shape, int], Any]:
        """What reads a picture."""
        read: Callable[[Shape, int], Any] = networks.nature_cnn
        return read
