"""Adam over one flat tensor: the same numbers as torch's Adam per parameter, in far fewer calls."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

ALIGNMENT = 16
"""Elements: each parameter begins on a cache line, as one of its own would. Matrix products of
unaligned operands may differ in their last bits."""


BETA1, BETA2 = 0.9, 0.999


def padded(parameter: Tensor) -> int:
    """Elements that a parameter takes in the flat tensor."""
    return -(-parameter.numel() // ALIGNMENT) * ALIGNMENT


class FlatAdam:
    """Parameters and gradients live in one tensor each; the modules' own are views into them.

    Adam is elementwise, so flat and per-parameter updates are equal to the bit. The gradient is
    clipped by the norm of per-parameter norms, as `torch.nn.utils.clip_grad_norm_` computes it.
    Build it after the modules are on their device; loading a `state_dict` keeps the views.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], learning_rate: float, eps: float, fused: bool
    ) -> None:
        self.parameters = [p for p in parameters if p.requires_grad]
        starts = list(accumulate((padded(p) for p in self.parameters), initial=0))
        self.starts = starts[:-1]
        like = self.parameters[0]
        self.flat = nn.Parameter(torch.zeros(starts[-1], dtype=like.dtype, device=like.device))
        self.flat.grad = torch.zeros_like(self.flat)
        for p, start in zip(self.parameters, self.starts, strict=True):
            here = slice(start, start + p.numel())
            self.flat.data[here] = p.detach().flatten()
            p.data = self.flat.data[here].view_as(p)
            p.grad = self.flat.grad[here].view_as(p)
        self.gradients: list[Tensor] = [p.grad for p in self.parameters if p.grad is not None]
        self.largest = torch.zeros((), dtype=like.dtype, device=like.device)
        self.rate, self.eps, self.fused = learning_rate, eps, fused
        self.moments: dict[str, Tensor] = {}

    def places(self) -> dict[int, int]:
        """Where each parameter begins in the flat one, by its id."""
        return {id(p): start for p, start in zip(self.parameters, self.starts, strict=True)}

    @property
    def gradient(self) -> Tensor:
        """The flat gradient [P]."""
        assert self.flat.grad is not None
        return self.flat.grad

    def set_learning_rate(self, rate: float) -> None:
        """Use `rate` from the next step on."""
        self.rate = rate

    def zero_grad(self) -> None:
        """Clear the gradient in place."""
        self.gradient.zero_()

    def step(self, max_grad_norm: float) -> None:
        """Clip the gradient's norm, then update the parameters."""
        norms = torch.stack(torch._foreach_norm(self.gradients))
        norm = torch.linalg.vector_norm(norms)
        torch.maximum(self.largest, norm, out=self.largest)
        self.gradient.mul_(torch.clamp(max_grad_norm / (norm + 1e-6), max=1.0))
        self._adam()

    def begin(self) -> dict[str, Tensor]:
        """The step count and both moments, made at the first step."""
        moments = self.moments
        if not moments:
            counter = self.flat.device if self.fused else torch.device("cpu")
            moments["step"] = torch.zeros((), dtype=torch.float32, device=counter)
            moments["exp_avg"] = torch.zeros_like(self.gradient)
            moments["exp_avg_sq"] = torch.zeros_like(self.gradient)
        return moments

    @torch.no_grad()
    def _adam(self) -> None:
        """One step of torch's own function; `torch.optim.Adam` would load the compiler, 67 MiB."""
        moments = self.begin()
        adam(
            [self.flat],
            [self.gradient],
            [moments["exp_avg"]],
            [moments["exp_avg_sq"]],
            [],
            [moments["step"]],
            foreach=False,
            fused=self.fused,
            amsgrad=False,
            beta1=BETA1,
            beta2=BETA2,
            lr=self.rate,
            weight_decay=0.0,
            eps=self.eps,
            maximize=False,
        )

    def take_largest_norm(self) -> float:
        """The largest gradient norm since it was last asked for; NaN where one was."""
        largest = self.largest.item()
        self.largest.zero_()
        return largest

    def parts(self) -> dict[str, int]:
        """Bytes of parameters, gradients and Adam's two moments, made at the first step."""
        size = self.flat.nbytes
        return {"parameters": size, "gradients": size, "optimiser": 2 * size}

    def state(self) -> dict[str, Any]:
        """Moments and step count; the parameters are the modules' own, kept with them."""
        return {"moments": {k: v.clone() for k, v in self.moments.items()}}

    def load(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state()`, on parameters that are loaded already."""
        if state["moments"]:
            moments = {k: v.to(self.flat.device, copy=True) for k, v in state["moments"].items()}
            if not self.fused:
                moments["step"] = moments["step"].cpu()  # where the plain Adam keeps its count
            self.moments = moments
