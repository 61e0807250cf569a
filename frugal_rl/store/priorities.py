"""Prioritised sampling: transitions are drawn in proportion to how much they still surprise.

Schaul et al. (2016), the proportional variant: priority (|error| + epsilon) ** alpha, importance
weights (size * probability) ** -beta, the largest of a minibatch being 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit

from frugal_rl.errors import DataError
from frugal_rl.store.replay import DictReplayBuffer, ReplayBuffer

EPSILON = 1e-6
"""Added to each error, so that none is never drawn again."""


@njit(cache=True)
def set_leaves(tree: Any, leaves: Any, values: Any) -> None:
    """Give leaves [M] int64 new values; tree [2 L] float64: sums over leaves L to 2 L - 1."""
    for m in range(leaves.shape[0]):
        i = leaves[m] + tree.shape[0] // 2
        tree[i] = values[m]
        i //= 2
        while i >= 1:
            tree[i] = tree[2 * i] + tree[2 * i + 1]
            i //= 2


@njit(cache=True)
def find_leaves(tree: Any, masses: Any, leaves: Any) -> None:
    """The leaves [M] in which masses [M] lie, each in [0, tree[1]), sums taken from the left.

    Rounding never leads to a leaf of no mass.
    """
    half = tree.shape[0] // 2
    for m in range(masses.shape[0]):
        i, mass = 1, masses[m]
        while i < half:
            i *= 2
            if mass >= tree[i] and tree[i + 1] > 0:
                mass -= tree[i]
                i += 1
        leaves[m] = i - half


class SumTree:
    """Values of `size` leaves, drawn in proportion to them.

    tree [2 L] float64, L the power of two from `size` on; node i is the sum of 2 i and 2 i + 1
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.tree = np.zeros(2 << max(size - 1, 1).bit_length(), np.float64)

    @property
    def total(self) -> float:
        """The sum of all leaves."""
        return float(self.tree[1])

    def leaves(self) -> np.ndarray:
        """The leaves' values [size], a view."""
        half = len(self.tree) // 2
        return self.tree[half : half + self.size]

    def set(self, leaves: np.ndarray, values: np.ndarray) -> None:
        """Give leaves [M] new values [M]."""
        set_leaves(self.tree, np.asarray(leaves, np.int64), np.asarray(values, np.float64))

    def find(self, masses: np.ndarray) -> np.ndarray:
        """The leaves [M] int64 in which masses [M], each in [0, total), lie."""
        found = np.empty(len(masses), np.int64)
        find_leaves(self.tree, np.asarray(masses, np.float64), found)
        return found


class PrioritisedReplayBuffer(ReplayBuffer):
    """The same store, drawn by priority; the learner tells errors with `learned`.

    >>> from gymnasium import spaces
    >>> replay = PrioritisedReplayBuffer(100, spaces.Box(-1, 1, (2,)), spaces.Discrete(2), "cpu")
    >>> row, done = np.zeros((1, 2), np.float32), np.zeros(1, bool)
    >>> for _ in range(20):
    ...     replay.add(row, row, np.zeros(1, int), np.zeros(1), done, [{}])
    >>> _ = replay.sample(8)
    >>> replay.learned(np.arange(8.0))  # absolute errors of what was drawn last
    >>> replay.weights.shape
    (8, 1)

    Args:
        args: as in `ReplayBuffer`.
        alpha: how strongly errors decide, from 0 (not at all) to 1.
        beta: how far importance weights make up for it, from 0 to 1; may be changed at any time.
        kwargs: as in `ReplayBuffer`.
    """

    def __init__(self, *args: Any, alpha: float = 0.6, beta: float = 0.4, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.alpha, self.beta = alpha, beta
        self.tree = SumTree(self.buffer_size * self.n_envs)
        self.highest = 1.0
        self.drawn: np.ndarray = np.zeros(0, np.int64)
        self.weights: np.ndarray = np.zeros((0, 1), np.float32)

    def store(self, *args: Any, **kwargs: Any) -> None:
        """One step; new transitions are as likely as the likeliest one so far."""
        leaves = self.pos * self.n_envs + np.arange(self.n_envs)
        super().store(*args, **kwargs)
        self.tree.set(leaves, np.full(self.n_envs, self.highest))

    def sample(self, batch_size: int, env: Any = None) -> Any:
        """Transitions, one from each of `batch_size` equal shares of all priorities."""
        share = self.tree.total / batch_size
        masses = (np.arange(batch_size) + np.random.random(batch_size)) * share  # noqa: NPY002 - SB3's stream
        self.drawn = self.tree.find(np.minimum(masses, np.nextafter(self.tree.total, 0)))
        weights = self.tree.leaves()[self.drawn] ** -self.beta  # what is common to all cancels
        self.weights = (weights / weights.max()).astype(np.float32)[:, None]
        places, n = np.divmod(self.drawn, self.n_envs)
        return self._samples_at(places, n, env)

    def learned(self, errors: np.ndarray) -> None:
        """Priorities of what was drawn last, from absolute errors [B] or [B, 1]."""
        priorities = (np.abs(errors).reshape(-1) + EPSILON) ** self.alpha
        self.highest = max(self.highest, float(priorities.max()))
        self.tree.set(self.drawn, priorities)

    def reset(self) -> None:
        """Hold no transition."""
        super().reset()
        self.tree.tree[:] = 0

    def _form(self) -> str:
        return super()._form() + ", prioritised"

    def state(self) -> dict[str, Any]:
        """All that is held, with priorities."""
        return super().state() | {"priorities": self.tree.leaves().copy(), "highest": self.highest}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`.

        Raises:
            DataError: priorities that no error leads to, or of transitions that are not held.
        """
        super().load(state)
        priorities, highest = np.asarray(state["priorities"]), float(state["highest"])
        held = min(self.count, self.buffer_size) * self.n_envs
        sound = np.isfinite(priorities).all() and (priorities[:held] > 0).all()
        if not sound or priorities[held:].any() or not 0 < highest < np.inf:
            raise DataError("a replay's priorities are not those of what it holds.")
        self.tree.set(np.arange(self.tree.size), priorities)
        self.highest = highest

    def parts(self) -> dict[str, int]:
        """Bytes by name, with the tree."""
        return super().parts() | {"replay/priorities": int(self.tree.tree.nbytes)}


class PrioritisedDictReplayBuffer(PrioritisedReplayBuffer, DictReplayBuffer):  # type: ignore[override]
    """The same for observations that are dictionaries."""
