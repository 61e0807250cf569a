"""A perceptron as data: what the kernels read instead of modules."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from torch import nn

from frugal_rl.learn.actions import FactoredHead, GaussianHead
from frugal_rl.learn.compiled import passes
from frugal_rl.learn.compiled.activations import LINEAR, RELU, TANH
from frugal_rl.learn.compiled.refusal import no, no_convolutions
from frugal_rl.learn.networks import PerceptronNetwork

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy

KINDS: dict[type[nn.Module], int] = {nn.Tanh: TANH, nn.ReLU: RELU}


@dataclass(frozen=True)
class Perceptron:
    """Tables of one network, int64; the last two layers give logits and value.

    layers   [L, 10] as `passes.IN` and the names beside it say
    buffers  [B, 2] offset and width of each activation, for one sample
    inputs   [I, 4] the parts of X and where they go
    groups   [g + 1] bounds of each choice's logits
    log_std  place of the deviations' logarithms, -1 for choices
    """

    layers: np.ndarray
    buffers: np.ndarray
    inputs: np.ndarray
    groups: np.ndarray
    log_std: int

    @property
    def width(self) -> int:
        """Numbers of one sample in all buffers."""
        return int(self.buffers[-1].sum())

    @property
    def scratch(self) -> int:
        """The largest matrix of weights."""
        sizes = self.layers[:, [passes.INPUTS, passes.OUTPUTS]].prod(axis=1)
        return int(sizes.max())

    @property
    def widest(self) -> int:
        """The most numbers of one layer, on either side."""
        return int(self.layers[:, [passes.INPUTS, passes.OUTPUTS]].max())


class Drawing:
    """Collects buffers and layers in the order in which they run."""

    def __init__(self, places: dict[int, int]) -> None:
        self.places = places
        self.widths: list[int] = []
        self.layers: list[list[int]] = []
        self.inputs: list[list[int]] = []

    def buffer(self, width: int) -> int:
        """A new buffer's number."""
        self.widths.append(width)
        return len(self.widths) - 1

    def layer(self, linear: nn.Linear, kind: int, source: int, into: int, at: int = 0) -> int:
        """One linear layer and its activation; the buffer that it writes."""
        start, bias = self.places[id(linear.weight)], self.places[id(linear.bias)]
        takes_gradient = any(row[passes.OUT] == source for row in self.layers)
        sizes = [linear.in_features, linear.out_features]
        self.layers.append([source, into, at, *sizes, start, bias, kind, int(takes_gradient), 0])
        return into

    def trunk(self, trunk: nn.Sequential, source: int) -> int:
        """Linear layers with an activation behind each."""
        modules = list(trunk)
        for linear, activation in zip(modules[::2], modules[1::2], strict=True):
            assert isinstance(linear, nn.Linear)
            into = self.buffer(linear.out_features)
            source = self.layer(linear, KINDS[type(activation)], source, into)
        return source

    def tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Layers, buffers and inputs."""
        seen: set[int] = set()
        for row in reversed(self.layers):  # the later reader of a buffer writes its gradient first
            row[passes.ADDS] = int(row[passes.IN] in seen)
            seen.add(row[passes.IN])
        starts = list(accumulate(self.widths, initial=0))[:-1]
        buffers = np.array([starts, self.widths], np.int64).T
        return (
            np.array(self.layers, np.int64),
            np.ascontiguousarray(buffers),
            np.array(self.inputs, np.int64),
        )


def embed(drawing: Drawing, network: PerceptronNetwork) -> int:
    """Inputs, and pictures that one linear layer reads; the buffer of the embedded fields."""
    embedding = network.embedding
    pictures = {n: list(embedding.cnns[m].children()) for n, m in embedding.pictures.items()}
    for name, modules in pictures.items():
        if any(isinstance(m, nn.Conv2d) for m in modules):
            raise no_convolutions(name)
    features = [m for modules in pictures.values() for m in modules if isinstance(m, nn.Linear)]
    plain = embedding.width - sum(linear.out_features for linear in features)
    embedded = drawing.buffer(embedding.width)
    if plain:
        drawing.inputs.append([0, plain, embedded, 0])
    start, column = plain, plain
    for linear in features:
        pixels = drawing.buffer(linear.in_features)
        drawing.inputs.append([start, linear.in_features, pixels, 0])
        drawing.layer(linear, RELU, pixels, embedded, column)
        start, column = start + linear.in_features, column + linear.out_features
    return embedded


def perceptron(policy: FrugalPolicy, places: dict[int, int]) -> Perceptron:
    """The tables of a policy; `places` has each parameter's start in the flat one, by its id.

    Raises:
        ConfigError: the network or the actions have no passes.
    """
    head = policy.head
    network = policy.network
    if not isinstance(network, PerceptronNetwork):
        raise no(f"passes of agent={policy.agent.name}", "agent=mlp")
    drawing = Drawing(places)
    shared = drawing.trunk(network.shared, embed(drawing, network))
    actor = drawing.trunk(network.actor_trunk, shared)
    critic = drawing.trunk(network.critic_trunk, shared)
    drawing.layer(network.logits, LINEAR, actor, drawing.buffer(head.size))
    drawing.layer(network.value, LINEAR, critic, drawing.buffer(1))
    layers, buffers, inputs = drawing.tables()
    log_std = places[id(head.log_std)] if isinstance(head, GaussianHead) else -1
    return Perceptron(layers, buffers, inputs, groups_of(policy), log_std)


def groups_of(policy: FrugalPolicy) -> np.ndarray:
    """[g + 1] bounds of each choice's logits."""
    head = policy.head
    if not isinstance(head, FactoredHead):
        return np.array([0, head.size], np.int64)
    nvec = getattr(head.space, "nvec", None)
    if nvec is None or np.ndim(nvec) != 1:
        raise no(
            f"kernel for {type(head.space).__name__} actions of shape {head.space.shape}",
            "Discrete, flat MultiDiscrete or Box actions",
        )
    return np.concatenate(([0], np.cumsum(nvec))).astype(np.int64)
