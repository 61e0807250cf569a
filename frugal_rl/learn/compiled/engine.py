"""Runs the kernels: memory of its threads, shares of a minibatch, one gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from frugal_rl.learn.compiled.blas import one_blas_thread
from frugal_rl.learn.compiled.inputs import InputReader, Inputs
from frugal_rl.learn.compiled.kernels import differentiate, infer, pack, unpack
from frugal_rl.learn.compiled.layers import Perceptron, perceptron
from frugal_rl.learn.compiled.pictures import Pictures
from frugal_rl.observation.aligned import aligned_empty

if TYPE_CHECKING:
    from frugal_rl.learn.on_policy_config import Terms
    from frugal_rl.learn.optimizer import FlatAdam
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.observation.decoder import Decoder

BLOCK = 128
"""Samples at a time: activations of 2 x 64 units then take 130 KiB."""
MOST_KNOWN = 4096
"""Distinct pictures of which acting remembers what they give."""


class Lane:
    """What one thread writes: activations, their gradients, and its sum over samples."""

    def __init__(self, net: Perceptron, gradient: np.ndarray) -> None:
        samples = net.samples
        tables = (samples, *net.pictures)
        scratch = BLOCK * samples.widest + max(table.weights for table in tables)
        self.arena = aligned_empty((BLOCK * samples.width,), np.float32)
        self.deltas = aligned_empty((BLOCK * samples.width,), np.float32)
        self.scratch = aligned_empty((scratch,), np.float32)
        self.gradient = gradient
        self.sums = np.zeros(3)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        arrays = (self.arena, self.deltas, self.scratch, self.gradient)
        return sum(array.nbytes for array in arrays)


class CompiledPerceptron:
    """A policy's network in compiled kernels, from the memory of the policy's own parameters.

    The result depends on the number of threads, as each sums its samples' gradients, and on
    nothing else.
    """

    def __init__(
        self,
        policy: FrugalPolicy,
        optimizer: FlatAdam,
        threads: int,
        decoder: Decoder | None = None,
    ) -> None:
        """Reads by the policy's decoder, or by one of its own."""
        self.policy, self.threads = policy, threads
        self.net = net = perceptron(policy, optimizer.places())
        self.outputs = int(net.samples.buffers[net.samples.ends, 1].sum())
        self.read = InputReader(policy, decoder or policy.decoder)
        self.flat = optimizer.flat.detach().numpy()
        self.gradient = optimizer.gradient.numpy()
        self.packed = aligned_empty((len(net.order),), np.float32)
        self.gradients = aligned_empty((threads, len(net.order)), np.float32)
        self.lanes = [Lane(net, own) for own in self.gradients]
        self.pictures = Pictures(net, threads)
        self.pool = ThreadPoolExecutor(threads - 1, "engine") if threads > 1 else None
        self.refresh()

    def refresh(self) -> None:
        """Take the policy's parameters as they are now."""
        pack(self.flat, self.net.order, self.packed)
        self.read.forget()
        self.stale = False

    def outputs_of(self, rows: Mapping[str, Tensor]) -> tuple[np.ndarray, np.ndarray]:
        """Logits or means, not masked, and the value behind them, [B, n + 1]; the mask."""
        if self.stale:
            self.refresh()
        elif self.read.known > MOST_KNOWN:
            self.read.forget()
        inputs = self.read(rows)
        lane, net = self.lanes[0], self.net.samples
        out = np.empty((inputs.count, self.outputs), np.float32)
        self.pictures.show(inputs.pictures, inputs.known, 1)
        with one_blas_thread():
            self.pictures.forward(0, self.packed)
            infer(
                0,
                len(out),
                self.packed,
                net.kernel,
                inputs.plain.kernel,
                self.pictures.shared,
                inputs.index,
                lane.arena,
                BLOCK,
                out,
            )
        return out, inputs.mask

    def differentiate(
        self, rows: Mapping[str, Tensor], actions: np.ndarray, old: np.ndarray, terms: Terms
    ) -> tuple[np.ndarray, np.ndarray]:
        """The loss's gradient into the optimiser's; log-ratios [B] and the losses' sums [3].

        old  [4, B]: log-probabilities, values, advantages, returns
        """
        self.refresh()
        inputs, pictures = self.read(rows), self.pictures
        log_ratio = np.empty(inputs.count, np.float32)
        samples = (inputs, actions, old, in_kernel(terms, len(log_ratio)), log_ratio)
        pictures.show(inputs.pictures, 0, self.threads)
        back = pictures.gradients()
        with one_blas_thread():
            if inputs.pictures:
                self._each(lambda i, lane: pictures.forward(i, self.packed))
            self._each(lambda i, lane: self._share(lane, self._bounds(i, inputs), back[i], samples))
            if inputs.pictures:
                self._each(
                    lambda i, lane: pictures.backward(
                        i, self.packed, back, lane.scratch, lane.gradient
                    )
                )
        unpack(self.gradients, self.net.order, self.gradient)
        self.stale = True  # whoever asks for a gradient changes the parameters by it
        return log_ratio, np.sum([lane.sums for lane in self.lanes], axis=0)

    def _each(self, call: Callable[[int, Lane], None]) -> None:
        """Call it in every thread with its number and lane, and wait for all."""
        others = [
            self.pool.submit(call, i, lane)
            for i, lane in enumerate(self.lanes)
            if self.pool is not None and i
        ]
        call(0, self.lanes[0])
        for other in others:
            other.result()

    def _bounds(self, thread: int, inputs: Inputs) -> tuple[int, int]:
        """The first of a thread's samples, and the one behind its last."""
        blocks = -(-inputs.count // BLOCK)
        first, last = (blocks * k // self.threads * BLOCK for k in (thread, thread + 1))
        return first, min(last, inputs.count)

    def _share(
        self,
        lane: Lane,
        bounds: tuple[int, int],
        shared_gradient: np.ndarray,
        samples: tuple[Inputs, np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    ) -> None:
        """One thread's samples."""
        net, (inputs, actions, old, numbers, log_ratio) = self.net, samples
        differentiate(
            *bounds,
            self.packed,
            net.samples.kernel,
            inputs.plain.kernel,
            inputs.mask,
            self.pictures.shared,
            inputs.index,
            actions,
            old,
            net.groups,
            net.log_std,
            numbers,
            lane.arena,
            lane.deltas,
            lane.scratch,
            BLOCK,
            lane.gradient,
            shared_gradient,
            log_ratio,
            lane.sums,
        )

    def parts(self) -> dict[str, int]:
        """Bytes held beside parameters, gradient and moments."""
        own = self.packed.nbytes + self.pictures.nbytes + self.read.nbytes
        return {"engine": sum(lane.nbytes for lane in self.lanes) + own}


def in_kernel(terms: Terms, samples: int) -> np.ndarray:
    """The loss's numbers as the kernels read them."""
    clip_vf = -1.0 if terms.clip_range_vf is None else terms.clip_range_vf
    numbers: Any = (terms.clip_range, clip_vf, terms.ent_coef, terms.vf_coef, 1 / samples)
    return np.array(numbers, np.float32)
