"""A perceptron as data: what the kernels read instead of modules.

What a picture adds to the layers that read it depends on the picture alone: a small network of its
own, which runs once per distinct picture (`frugal_rl.learn.compiled.pictures`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor, nn

from frugal_rl.learn.actions import FactoredHead, GaussianHead
from frugal_rl.learn.compiled import passes, tiles
from frugal_rl.learn.compiled.activations import LINEAR, RELU, TANH
from frugal_rl.learn.compiled.packing import NOWHERE, Packing
from frugal_rl.learn.compiled.refusal import no, no_convolutions
from frugal_rl.learn.networks import PerceptronNetwork

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy

KINDS: dict[type[nn.Module], int] = {nn.Tanh: TANH, nn.ReLU: RELU}


@dataclass(frozen=True)
class Table:
    """Layers over numbered buffers, int64; the first layer reads the input.

    layers   [L, 12] as `passes.IN` and the names beside it say
    buffers  [B, 2] offset and width of each activation, for one sample
    ends     [e] the buffers that hold what comes out
    """

    layers: np.ndarray
    buffers: np.ndarray
    ends: np.ndarray

    @cached_property
    def kernel(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As the kernels take it."""
        return self.layers, self.buffers, self.ends

    @property
    def width(self) -> int:
        """Numbers of one sample in all buffers."""
        return int(self.buffers[:, 1].sum())

    @property
    def weights(self) -> int:
        """Numbers of the largest matrix."""
        sizes = self.layers[:, [passes.INPUTS, passes.OUTPUTS]].prod(axis=1)
        return int(sizes.max())

    @property
    def widest(self) -> int:
        """The most numbers of one layer, on either side."""
        return int(self.layers[:, [passes.INPUTS, passes.OUTPUTS]].max())


@dataclass(frozen=True)
class Perceptron:
    """A policy's network: that of the samples, and one for each picture.

    packing  where each parameter has its place
    groups   [g + 1] bounds of each choice's logits
    log_std  place of the deviations' logarithms, -1 for choices
    shared   numbers that a distinct picture gives to the layers that read it
    """

    samples: Table
    pictures: tuple[Table, ...]
    packing: Packing
    groups: np.ndarray
    log_std: int
    shared: int


class Drawing:
    """Collects buffers and layers in the order in which they run; buffer 0 is the input."""

    def __init__(self, packing: Packing, plain: int) -> None:
        self.packing, self.plain = packing, plain
        self.widths = [plain]
        self.layers: list[list[int]] = []
        self.readers: list[nn.Linear] = []
        """The layers that read the input, and pictures beside it."""

    def layer(self, linear: nn.Linear, kind: int, source: int) -> int:
        """One linear layer and its activation; the buffer that it writes."""
        inputs, shared, weight = linear.in_features, NOWHERE, linear.weight
        if source == 0 and inputs > self.plain:
            shared = sum(reader.out_features for reader in self.readers)
            self.readers.append(linear)
            inputs = self.plain
        at, turned = self.packing.matrix(weight, slice(0, inputs))
        bias = self.packing.vector(linear.bias)
        self.widths.append(linear.out_features)
        into, sizes = len(self.widths) - 1, [inputs, linear.out_features]
        back, tiled = int(source > 0), int(tiles.suit(inputs, linear.out_features))
        self.layers.append([source, into, *sizes, at, bias, kind, back, 0, shared, turned, tiled])
        return into

    def trunk(self, trunk: nn.Sequential, source: int) -> int:
        """Linear layers with an activation behind each."""
        modules = list(trunk)
        for linear, activation in zip(modules[::2], modules[1::2], strict=True):
            assert isinstance(linear, nn.Linear)
            source = self.layer(linear, KINDS[type(activation)], source)
        return source

    def table(self, *ends: int) -> Table:
        """All of it."""
        seen: set[int] = set()
        for row in reversed(self.layers):  # the later reader of a buffer writes its gradient first
            row[passes.ADDS] = int(row[passes.IN] in seen)
            seen.add(row[passes.IN])
        return tabled(self.layers, self.widths, ends)


def tabled(layers: list[list[int]], widths: list[int], ends: tuple[int, ...]) -> Table:
    """Lists as the kernels read them."""
    starts = list(accumulate(widths, initial=0))[:-1]
    buffers = np.ascontiguousarray(np.array([starts, widths], np.int64).T)
    return Table(np.array(layers, np.int64), buffers, np.array(ends, np.int64))


def picture(packing: Packing, linear: nn.Linear, readers: list[Tensor], first: int) -> Table:
    """A picture's layer, and its part of all that read it, from column `first` of theirs on.

    On the way back all of a thread's pictures are summed over at once: too many for tiles. The
    pixels' buffer comes last, so that gradients, of which they have none, need no room for it.
    """
    pixels, features = linear.in_features, linear.out_features
    columns = slice(first, first + features)
    given = sum(len(weight) for weight in readers)
    (at, turned), bias = packing.matrix(linear.weight), packing.vector(linear.bias)
    reads = [2, 1, pixels, features, at, bias, RELU, 0, 0, NOWHERE, turned, 0]
    (at, turned), bias = packing.stacked(readers, columns), packing.zeros(given)
    gives = [1, 0, features, given, at, bias, LINEAR, 1, 0, NOWHERE, turned, 0]
    return tabled([reads, gives], [given, features, pixels], (0,))


def linear_pictures(network: PerceptronNetwork) -> list[nn.Linear]:
    """The one layer of each picture.

    Raises:
        ConfigError: a picture is read by convolutions.
    """
    embedding = network.embedding
    modules = {name: list(embedding.cnns[m].children()) for name, m in embedding.pictures.items()}
    for name, layers in modules.items():
        if any(isinstance(m, nn.Conv2d) for m in layers):
            raise no_convolutions(name)
    return [m for layers in modules.values() for m in layers if isinstance(m, nn.Linear)]


def perceptron(policy: FrugalPolicy, places: dict[int, int]) -> Perceptron:
    """The tables of a policy; `places` has each parameter's start in the flat one, by its id.

    Raises:
        ConfigError: the network or the actions have no passes.
    """
    head, network = policy.head, policy.network
    if not isinstance(network, PerceptronNetwork):
        raise no(f"passes of agent={policy.agent.name}", "agent=mlp")
    packing, looks = Packing(places), linear_pictures(network)
    plain = network.embedding.width - sum(linear.out_features for linear in looks)
    drawing = Drawing(packing, plain)
    trunk = drawing.trunk(network.shared, 0)
    actor, critic = (drawing.trunk(t, trunk) for t in (network.actor_trunk, network.critic_trunk))
    logits = drawing.layer(network.logits, LINEAR, actor)
    samples = drawing.table(logits, drawing.layer(network.value, LINEAR, critic))
    readers, first, pictures = [r.weight for r in drawing.readers], plain, []
    for linear in looks:
        pictures.append(picture(packing, linear, readers, first))
        first += linear.out_features
    log_std = packing.vector(head.log_std) if isinstance(head, GaussianHead) else NOWHERE
    shared = sum(len(weight) for weight in readers)
    return Perceptron(samples, tuple(pictures), packing, groups_of(policy), log_std, shared)


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
