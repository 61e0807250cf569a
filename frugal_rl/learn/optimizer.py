"""Adam over one flat tensor: the same numbers as torch's Adam per parameter, in far fewer calls."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn

ALIGNMENT = 16
"""Elements: each parameter begins on a cache line, as one of its own would. Matrix products of
unaligned operands may differ in their last bits."""


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
        self.adam = torch.optim.Adam([self.flat], lr=learning_rate, eps=eps, fused=fused)

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
        for group in self.adam.param_groups:
            group["lr"] = rate

    def zero_grad(self) -> None:
        """Clear the gradient in place."""
        self.gradient.zero_()

    def step(self, max_grad_norm: float) -> None:
        """Clip the gradient's norm, then update the parameters."""
        norms = torch.stack(torch._foreach_norm(self.gradients))
        norm = torch.linalg.vector_norm(norms)
        torch.maximum(self.largest, norm, out=self.largest)
        self.gradient.mul_(torch.clamp(max_grad_norm / (norm + 1e-6), max=1.0))
        self.adam.step()

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
        """Parameters, moments and step count."""
        moments = self.adam.state.get(self.flat, {})
        return {
            "flat": self.flat.detach().clone(),
            "moments": {k: v.clone() for k, v in moments.items()},
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state()`."""
        with torch.no_grad():
            self.flat.copy_(state["flat"])
        if state["moments"]:
            moments = {k: v.to(self.flat.device, copy=True) for k, v in state["moments"].items()}
            if not self.adam.param_groups[0]["fused"]:
                moments["step"] = moments["step"].cpu()  # where the plain Adam keeps its count
            self.adam.state[self.flat] = moments
