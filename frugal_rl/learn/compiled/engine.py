"""Runs the kernels: memory of its threads, shares of a minibatch, one gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from torch import Tensor

from frugal_rl.learn.compiled.blas import one_blas_thread
from frugal_rl.learn.compiled.crew import Crew
from frugal_rl.learn.compiled.inputs import InputReader, Inputs
from frugal_rl.learn.compiled.kernels import gather, infer, pack
from frugal_rl.learn.compiled.layers import Perceptron, perceptron
from frugal_rl.learn.compiled.learning import learn
from frugal_rl.learn.compiled.meeting import Meeting
from frugal_rl.learn.compiled.pictures import Pictures
from frugal_rl.observation.aligned import aligned_empty

if TYPE_CHECKING:
    from frugal_rl.learn.compiled.packing import Weights
    from frugal_rl.learn.on_policy_config import Terms
    from frugal_rl.learn.optimizer import FlatAdam
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.observation.decoder import Decoder

BLOCK = 128
"""Samples at a time: activations of 2 x 64 units then take 130 KiB."""
NO_ADAM = (*4 * [np.empty(0, np.float32)], np.zeros((), np.float32))
NO_RATES = np.empty((0, 7), np.float32)
"""Of a gradient without a step."""
MOST_KNOWN = 4096
"""Distinct pictures of which acting remembers what they give."""


class Minibatches(NamedTuple):
    """What `learn` reads and writes of M minibatches, beside what the engine holds."""

    inputs: Inputs
    actions: np.ndarray
    old: np.ndarray
    numbers: np.ndarray
    normalises: bool
    adam: tuple[np.ndarray, ...]
    rates: np.ndarray
    log_ratio: np.ndarray
    losses: np.ndarray


class Lane:
    """What one thread writes: activations, their gradients, and that of the parameters."""

    def __init__(self, net: Perceptron, gradient: np.ndarray) -> None:
        samples = net.samples
        tables = (samples, *net.pictures)
        scratch = BLOCK * samples.widest + max(table.weights for table in tables)
        self.arena = aligned_empty((BLOCK * samples.width,), np.float32)
        self.deltas = aligned_empty((BLOCK * samples.width,), np.float32)
        self.scratch = aligned_empty((scratch,), np.float32)
        self.gradient = gradient

    @property
    def room(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As the kernels take it."""
        return self.arena, self.deltas, self.scratch

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        arrays = (*self.room, self.gradient)
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
        own, turned = (aligned_empty((size,), np.float32) for size in net.packing.sizes)
        own[:] = 0
        self.weights: Weights = (own, turned)
        self.runs, self.turns = net.packing.runs, net.packing.turns
        self.gradients = aligned_empty((threads, len(own)), np.float32)
        self.sums = np.zeros((threads, 3))
        self.lanes = [Lane(net, gradient) for gradient in self.gradients]
        self.pictures = Pictures(net, threads)
        self.each, self.meeting = Crew(threads), Meeting()
        self.steps = not self.read.origins  # what pictures give changes with each step
        self.refresh()

    def refresh(self) -> None:
        """Take the policy's parameters as they are now."""
        pack(self.flat, self.runs, self.turns, *self.weights)
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
        if inputs.pictures:
            self.pictures.show(inputs.pictures, inputs.known, 1)
        with one_blas_thread():
            self.pictures.forward(0, self.weights)
            infer(
                0,
                len(out),
                self.weights,
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
        """The loss's gradient into the optimiser's; log-ratios [B] and the losses of `gather` [4].

        old  [4, B]: log-probabilities, values, advantages, returns
        """
        self.refresh()
        inputs, pictures = self.read(rows), self.pictures
        numbers, log_ratio = in_kernel(terms, inputs.count), np.empty((1, inputs.count), np.float32)
        losses = np.empty((1, 4), np.float32)
        if inputs.pictures:
            pictures.show(inputs.pictures, 0, self.threads)
        back = pictures.gradients()
        whole = inputs, actions[None], old[None], numbers, False, NO_ADAM, NO_RATES
        minibatch = Minibatches(*whole, log_ratio, losses)
        with one_blas_thread():
            if inputs.pictures:
                self.each(lambda i: pictures.forward(i, self.weights))
            self.each(lambda i: self._learn(i, back[i], minibatch))
            if inputs.pictures:
                self.each(lambda i: self._back(i, back))
        gather(self.gradients, self.runs, self.gradient, self.sums, numbers, losses[0])
        self.stale = True  # whoever asks for a gradient changes the parameters by it
        return log_ratio[0], losses[0]

    def learn(
        self,
        rows: Mapping[str, Tensor],
        actions: np.ndarray,
        old: np.ndarray,
        terms: Terms,
        adam: tuple[np.ndarray, ...],
        rates: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """One step for each of M minibatches of B samples; log-ratios [M, B] and losses [M, 4].

        rows   [M * B, ...]; actions [M, B, a]; old [M, 4, B], of which advantages are normalised
        adam   `CompiledAdam.arrays`; rates [M, 7] of its `rates`
        """
        assert self.steps
        self.refresh()
        inputs, (count, _, size) = self.read(rows), old.shape
        log_ratio, losses = np.empty((count, size), np.float32), np.empty((count, 4), np.float32)
        numbers, back = in_kernel(terms, size), self.pictures.gradients()
        given = inputs, actions, old, numbers, terms.normalize_advantage, adam, rates
        minibatches = Minibatches(*given, log_ratio, losses)
        self.each.settle()
        self.meeting.begin()
        try:
            with one_blas_thread():
                self.each(lambda i: self._learn(i, back[i], minibatches))
        except BaseException:  # it may have come when some were at work and others not yet
            self.meeting.give_up()
            raise
        self.stale = True  # the policy's parameters are other ones
        return log_ratio, losses

    def _learn(self, thread: int, back: np.ndarray, of: Minibatches) -> None:
        """One thread's samples of each minibatch; if it cannot come, nobody waits for it."""
        net, lane = self.net, self.lanes[thread]
        try:
            learn(
                thread,
                self.meeting.address,
                self._bounds(thread, of.old.shape[2]),
                self.weights,
                net.samples.kernel,
                of.inputs.plain.kernel,
                of.inputs.mask,
                (self.pictures.shared, of.inputs.index, back),
                of.actions,
                of.old,
                (net.groups, net.log_std),
                of.numbers,
                of.normalises,
                lane.room,
                BLOCK,
                self.gradients,
                (self.runs, self.turns),
                of.adam,
                of.rates,
                of.log_ratio,
                self.sums,
                of.losses,
            )
        except BaseException:
            self.meeting.give_up()
            raise

    def _bounds(self, thread: int, samples: int) -> tuple[int, int]:
        """The first of a thread's samples, and the one behind its last."""
        blocks = -(-samples // BLOCK)
        first, last = (blocks * k // self.threads * BLOCK for k in (thread, thread + 1))
        return first, min(last, samples)

    def _back(self, thread: int, gradients: np.ndarray) -> None:
        """One thread's pictures."""
        lane = self.lanes[thread]
        self.pictures.backward(thread, self.weights, gradients, lane.scratch, lane.gradient)

    def parts(self) -> dict[str, int]:
        """Bytes held beside parameters, gradient and moments."""
        own = sum(w.nbytes for w in self.weights) + self.pictures.nbytes + self.read.nbytes
        return {"engine": sum(lane.nbytes for lane in self.lanes) + own}


def in_kernel(terms: Terms, samples: int) -> np.ndarray:
    """The loss's numbers as the kernels read them."""
    clip_vf = -1.0 if terms.clip_range_vf is None else terms.clip_range_vf
    numbers: Any = (terms.clip_range, clip_vf, terms.ent_coef, terms.vf_coef, 1 / samples)
    return np.array(numbers, np.float32)
