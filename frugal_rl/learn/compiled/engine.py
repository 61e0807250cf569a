"""Runs the kernels: memory of its threads, shares of a minibatch, one gradient."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from frugal_rl.learn.compiled.blas import one_blas_thread
from frugal_rl.learn.compiled.kernels import differentiate, infer
from frugal_rl.learn.compiled.layers import perceptron
from frugal_rl.observation.aligned import aligned_empty

if TYPE_CHECKING:
    from frugal_rl.learn.on_policy_config import Terms
    from frugal_rl.learn.optimizer import FlatAdam
    from frugal_rl.learn.policy import FrugalPolicy

BLOCK = 128
"""Samples at a time: activations of 2 x 64 units then take 130 KiB."""


class Lane:
    """What one thread writes: activations, their gradients, and its sum over samples."""

    def __init__(self, width: int, scratch: int, parameters: int) -> None:
        self.arena = aligned_empty((BLOCK * width,), np.float32)
        self.deltas = aligned_empty((BLOCK * width,), np.float32)
        self.scratch = aligned_empty((scratch,), np.float32)
        self.sums = np.zeros(3)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self.arena.nbytes + self.deltas.nbytes + self.scratch.nbytes


class CompiledPerceptron:
    """A policy's network in compiled kernels, over the memory of the policy's own parameters.

    The result depends on the number of threads, as each sums its samples' gradients, and on
    nothing else.
    """

    def __init__(self, policy: FrugalPolicy, optimizer: FlatAdam, threads: int) -> None:
        self.policy, self.threads = policy, threads
        places = optimizer.places()
        self.net = net = perceptron(policy, places)
        self.flat = optimizer.flat.detach().numpy()
        self.gradient = optimizer.gradient.numpy()
        scratch = 3 * BLOCK * net.widest + net.scratch
        self.lanes = [Lane(net.width, scratch, len(self.flat)) for _ in range(threads)]
        several = threads if threads > 1 else 0
        self.gradients = aligned_empty((several, len(self.flat)), np.float32)
        self.pool = ThreadPoolExecutor(threads - 1, "engine") if several else None
        self.outputs = int(net.layers[-2, 4])

    def read(self, rows: Mapping[str, Tensor]) -> tuple[np.ndarray, np.ndarray]:
        """Stored rows -> X [B, ...] float32 and masks [B, n] uint8, or [B, 0]."""
        policy = self.policy
        with torch.no_grad():
            fields = policy.decoder(rows)
            x = policy.network.embedding.read(fields).contiguous().numpy()  # type: ignore[operator, union-attr]
            if policy.mask_name is None:
                return x, np.zeros((len(x), 0), np.uint8)
            mask = fields[policy.mask_name].reshape(len(x), -1)
        return x, mask.contiguous().view(torch.uint8).numpy()

    def outputs_of(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """X -> logits or means [B, n], not masked, and values [B]."""
        net, lane = self.net, self.lanes[0]
        logits, values = np.empty((len(x), self.outputs), np.float32), np.empty(len(x), np.float32)
        with one_blas_thread():
            infer(
                self.flat,
                net.layers,
                net.buffers,
                net.inputs,
                x,
                lane.arena,
                lane.scratch,
                BLOCK,
                logits,
                values,
            )
        return logits, values

    def differentiate(
        self, x: np.ndarray, mask: np.ndarray, actions: np.ndarray, old: np.ndarray, terms: Terms
    ) -> tuple[np.ndarray, np.ndarray]:
        """The loss's gradient into the optimiser's; log-ratios [B] and the losses' sums [3].

        old  [4, B]: log-probabilities, values, advantages, returns
        """
        log_ratio = np.empty(len(x), np.float32)
        numbers = in_kernel(terms, len(x))
        net = self.net

        def share(i: int) -> None:
            lane, into = self.lanes[i], self.gradients[i] if self.pool else self.gradient
            blocks = -(-len(x) // BLOCK)
            first, last = (blocks * k // self.threads * BLOCK for k in (i, i + 1))
            differentiate(
                first,
                min(last, len(x)),
                self.flat,
                net.layers,
                net.buffers,
                net.inputs,
                x,
                mask,
                actions,
                old,
                net.groups,
                net.log_std,
                numbers,
                lane.arena,
                lane.deltas,
                lane.scratch,
                BLOCK,
                into,
                log_ratio,
                lane.sums,
            )

        with one_blas_thread():
            others = (
                [self.pool.submit(share, i) for i in range(1, self.threads)] if self.pool else []
            )
            share(0)
            for other in others:
                other.result()
        if self.pool:
            np.add.reduce(self.gradients, axis=0, out=self.gradient)
        return log_ratio, np.sum([lane.sums for lane in self.lanes], axis=0)

    def parts(self) -> dict[str, int]:
        """Bytes held beside parameters, gradient and moments."""
        return {"engine": sum(lane.nbytes for lane in self.lanes) + self.gradients.nbytes}


def in_kernel(terms: Terms, samples: int) -> np.ndarray:
    """The loss's numbers as the kernels read them."""
    clip_vf = -1.0 if terms.clip_range_vf is None else terms.clip_range_vf
    numbers: Any = (terms.clip_range, clip_vf, terms.ent_coef, terms.vf_coef, 1 / samples)
    return np.array(numbers, np.float32)
