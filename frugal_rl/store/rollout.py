"""A rollout for stable-baselines3 that allocates once, keeps stored types and gathers by index."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from frugal_rl.memory.choices import RolloutLocation, Shuffle
from frugal_rl.observation.aligned import ALIGNMENT, aligned_empty
from frugal_rl.store.columns import ArrayColumn, Column
from frugal_rl.store.delta import DeltaColumn
from frugal_rl.store.drawn_rows import ACTION_BYTES, SAMPLE_BYTES, DrawnTogether, drawn_together
from frugal_rl.store.found.column import FoundColumn
from frugal_rl.store.kernels import advantages
from frugal_rl.store.layout import SCALARS, action_layout, columns_of, columns_of_space
from frugal_rl.store.ragged import RaggedColumn

if TYPE_CHECKING:
    import torch

    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.store.column_spec import ColumnSpec


DRAWN_BYTES = 1 << 18
"""The most bytes of minibatches that are gathered at once."""
POOLS: Mapping[str, Callable[[ColumnSpec, int, int], Column]] = {
    "ragged": RaggedColumn,
    "delta": DeltaColumn,
    "found": FoundColumn,
}
"""Columns by the pool that a codec asks for."""


class RolloutBuffer:
    """T steps of N environments, drawn as minibatches of (step, environment) pairs.

    Serves as `rollout_buffer_class` of an unmodified SB3 algorithm: same methods, same random
    draws, bit-identical minibatches. With an `encoding`, `add` takes the policy form of
    `observation.history` and keeps each row once; without one, each entry of the space is a column.

    Args:
        buffer_size: T.
        observation_space: policy space; only read where no encoding is given.
        action_space: stored in the smallest dtype that is exact.
        device: where minibatches are delivered; "auto" takes CUDA if it is there.
        gae_lambda: factor of generalised advantage estimation.
        gamma: discount.
        n_envs: N.
        encoding: how the run stores its observation.
        episode_steps: the most steps of an episode; sizes `EPISODE` windows.
        location: RAM, pinned memory, the device, or a mapped file in `folder`.
        shuffle: `copy` flattens to env-major order before the first minibatch, as SB3 does.
        reuse: deliver every minibatch in the same arrays; valid until the next one is drawn.
        folder: where a mapped file lies; the system's temporary folder if empty.

    Example:
        >>> buffer = RolloutBuffer(8, spaces.Box(0, 1, (3,)), spaces.Discrete(2), n_envs=4)
        >>> buffer.parts()["rollout/obs"]  # 8 steps x 4 environments x 3 x float32
        384
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: Any = "auto",
        gae_lambda: float = 1.0,
        gamma: float = 0.99,
        n_envs: int = 1,
        *,
        encoding: Encoding | None = None,
        episode_steps: int = 0,
        location: RolloutLocation = RolloutLocation.ram,
        shuffle: Shuffle = Shuffle.gather,
        reuse: bool = False,
        folder: str = "",
    ) -> None:
        self.buffer_size = buffer_size
        self.n_envs = n_envs
        self.observation_space = observation_space
        self.action_space = action_space
        self.gae_lambda = gae_lambda
        self.gamma = gamma
        self.device = _device(device)
        self.shuffle = shuffle
        self.reuse = reuse
        self.encoding = encoding
        specs = (
            columns_of_space(observation_space)
            if encoding is None
            else columns_of(encoding, episode_steps)
        )
        self.columns = {c.name: self._column(c, location, folder) for c in specs}
        self._single = encoding is None and not isinstance(observation_space, spaces.Dict)
        self._batches: dict[str, Any] = {}
        self.action_dim, dtype = action_layout(action_space)
        self.actions = np.zeros((buffer_size, n_envs, self.action_dim), dtype)
        self.episode_starts = np.zeros((buffer_size, n_envs), np.bool_)
        self.rewards, self.values, self.log_probs, self.advantages, self.returns = (
            np.zeros((buffer_size, n_envs), np.float32) for _ in SCALARS
        )
        self.labels: dict[str, np.ndarray] = {}
        self.pos = 0
        self.full = False

    def _column(self, spec: ColumnSpec, location: RolloutLocation, folder: str) -> Column:
        """A pool where the codec asks for one, whatever the location; else an array there."""
        if spec.codec is not None:
            return POOLS[spec.codec.pool](spec, self.buffer_size, self.n_envs)
        if location is RolloutLocation.device:
            from frugal_rl.store.device import DeviceColumn

            return DeviceColumn(spec, self.buffer_size, self.n_envs, self.device)
        return ArrayColumn(spec, self.buffer_size, self.n_envs, location, folder)

    def size(self) -> int:
        """Steps written since the last reset."""
        return self.pos

    def reset(self) -> None:
        """Begin a new rollout; nothing is allocated or cleared."""
        self.pos = 0
        self.full = False

    def add(
        self,
        obs: Any,
        action: np.ndarray,
        reward: np.ndarray,
        episode_start: np.ndarray,
        value: Any,
        log_prob: Any,
    ) -> None:
        """Copy one step of N environments; `obs` in policy form, values as tensors or arrays."""
        if self._single:
            obs = {"obs": obs}
        age = obs["age"].reshape(-1) if "age" in self.columns else None
        for name, column in self.columns.items():
            column.write(self.pos, shaped(obs[name], column.spec), age)
        self.actions[self.pos] = action.reshape(self.n_envs, self.action_dim)
        self.rewards[self.pos] = reward
        self.episode_starts[self.pos] = episode_start
        self.values[self.pos] = _array(value).reshape(-1)
        self.log_probs[self.pos] = _array(log_prob).reshape(-1)
        self.pos += 1
        self.full = self.pos == self.buffer_size

    def compute_returns_and_advantage(self, last_values: Any, dones: np.ndarray) -> None:
        """Advantages and returns from the values [N] of the last observation; bit-equal to SB3."""
        advantages(
            self.rewards,
            self.values,
            self.episode_starts,
            _array(last_values).reshape(-1),
            np.asarray(dones, np.bool_),
            np.float32(self.gamma),
            np.float32(self.gamma * self.gae_lambda),
            self.advantages,
        )
        np.add(self.advantages, self.values, out=self.returns)

    def get(self, batch_size: int | None = None) -> Iterator[Any]:
        """Minibatches in a random order drawn from NumPy's global state, exactly as SB3 draws."""
        step = batch_size or self.buffer_size * self.n_envs
        for indices in self.order(step * self._drawn_at_once(step)):
            if len(indices) <= step:
                yield self.samples(indices, step)
            else:
                yield from split_samples(self.samples(indices), step)

    def _drawn_at_once(self, batch_size: int) -> int:
        """How many minibatches of small rows are gathered by one call, which costs more than they.

        Each begins where memory of its own would begin, at a multiple of `ALIGNMENT` bytes.
        """
        if self.reuse or batch_size % ALIGNMENT:
            return 1
        return max(1, DRAWN_BYTES // (batch_size * self._sample_bytes()))

    def _sample_bytes(self) -> int:
        """Bytes of a sample as it is drawn."""
        shown = (math.prod(c.spec.shown()) * c.spec.dtype.itemsize for c in self.columns.values())
        return sum(shown) + 4 * (self.action_dim + len(SCALARS))

    def order(self, batch_size: int) -> list[np.ndarray]:
        """Env-major indices of each minibatch, for `samples`."""
        if not self.full:
            raise RuntimeError(
                f"The rollout holds {self.pos} of {self.buffer_size} steps; fill it before drawing."
            )
        total = self.buffer_size * self.n_envs
        indices = np.random.permutation(total)  # noqa: NPY002 - SB3's stream of random numbers
        if self.shuffle is Shuffle.copy:
            for column in self.columns.values():
                if isinstance(column, ArrayColumn):
                    column.flatten()
        return [indices[start : start + batch_size] for start in range(0, total, batch_size)]

    def advantages_at(self, indices: np.ndarray) -> torch.Tensor:
        """Advantages [B] of samples, without all else."""
        n, t = np.divmod(indices, self.buffer_size)
        return self._tensor(self.advantages.reshape(-1).take(t * self.n_envs + n))

    def samples(self, indices: np.ndarray, capacity: int = 0) -> Any:
        """SB3's sample tuple for env-major indices [B], index = n * T + t."""
        n, t = np.divmod(indices, self.buffer_size)
        observations = self.observations_at(t, n, max(capacity, len(indices)))
        observations |= {k: self._tensor(v[t, n]) for k, v in self.labels.items()}
        shown = observations["obs"] if self._single else observations
        at = t * self.n_envs + n
        arrays = (self.values, self.log_probs, self.advantages, self.returns)
        actions = self.actions.reshape(-1, self.action_dim).take(at, axis=0)
        return _sample_type(self._single)(
            shown,
            self._tensor(actions.astype(np.float32, copy=False)),
            *(self._tensor(a.reshape(-1).take(at)) for a in arrays),
        )

    def samples_where_they_lie(self, order: Sequence[np.ndarray]) -> Iterator[Any]:
        """The minibatches of an `order`; of observations nothing is gathered before it is read.

        Their numbers are, of several minibatches at once. Observations that are no dictionary, or
        have labels, come as from `samples`.
        """
        if not self.lies_open:
            yield from map(self.samples, order)
            return
        for several in self.drawn_together(order):
            yield from several.apart()

    @property
    def lies_open(self) -> bool:
        """Whether observations can be read where they lie."""
        return not (self._single or self.labels)

    def drawn_together(
        self, order: Sequence[np.ndarray], gathered: int = 0
    ) -> Iterator[DrawnTogether]:
        """The minibatches of an `order`, as many at once as take `DRAWN_BYTES`.

        gathered  bytes that whoever reads them adds to each sample
        """
        sample_bytes = SAMPLE_BYTES + ACTION_BYTES * self.action_dim + gathered
        at_once = max(1, DRAWN_BYTES // (len(order[0]) * sample_bytes))
        for size, equal in groupby(order, len):
            several = list(equal)
            for first in range(0, len(several), at_once):
                indices = np.concatenate(several[first : first + at_once])
                yield drawn_together(self, indices.reshape(-1, size))

    def observations_at(self, t: np.ndarray, n: np.ndarray, capacity: int = 0) -> dict[str, Any]:
        """Observations of samples (t[b], n[b]) in policy form, tensors on `device`."""
        age = self.ages_at(t, n)
        return {name: self.gathered(name, t, n, age, capacity) for name in self.columns}

    def ages_at(self, t: np.ndarray, n: np.ndarray) -> np.ndarray | None:
        """Steps [B] since the episodes of samples (t[b], n[b]) began; None where none are kept."""
        ages = self.columns.get("age")
        return None if ages is None else ages.gather(t, n, None, None).reshape(-1)

    def gathered(
        self, name: str, t: np.ndarray, n: np.ndarray, age: np.ndarray | None, capacity: int = 0
    ) -> torch.Tensor:
        """One column of samples (t[b], n[b]) in policy form, on `device`; see `Column.gather`."""
        column = self.columns[name]
        out = self._batch(column, len(t), max(capacity, len(t)))
        return self._tensor(column.gather(t, n, age, out))

    def _batch(self, column: Column, size: int, capacity: int) -> np.ndarray | None:
        """Room for `size` samples: a slice of an array kept between draws, or a new one."""
        if not column.fills:
            return None
        spec = column.spec
        if not self.reuse:
            return aligned_empty((size, *spec.shown()), spec.dtype)
        kept = self._batches.get(spec.name)
        if kept is None or len(kept) < size:
            kept = aligned_empty((capacity, *spec.shown()), spec.dtype)
            self._batches[spec.name] = kept
        return kept[:size]

    def _tensor(self, array: Any) -> torch.Tensor:
        if self.device.type == "cpu" and type(array) is np.ndarray:
            return _from_numpy()(array)  # a third of the time, which small rows consist of
        import torch

        return torch.as_tensor(array, device=self.device)

    @property
    def observations(self) -> Mapping[str, np.ndarray]:
        """Stored arrays by name, [lead + T, N, ...]."""
        return {n: c.values for n, c in self.columns.items() if isinstance(c, ArrayColumn)}

    @property
    def nbytes(self) -> int:
        """Bytes allocated for the rollout, the reused minibatch not counted."""
        scalars = [
            *self.labels.values(),
            self.actions,
            self.episode_starts,
            *(getattr(self, s) for s in SCALARS),
        ]
        stored = sum(c.nbytes for c in self.columns.values())
        return stored + sum(int(a.nbytes) for a in scalars)

    def parts(self) -> dict[str, int]:
        """Bytes by name: each column, the scalars beside them, the reused minibatch."""
        columns = {f"rollout/{name}": c.nbytes for name, c in self.columns.items()}
        labels = sum(int(a.nbytes) for a in self.labels.values())
        scalars = self.nbytes - sum(columns.values()) - labels
        batch = sum(int(b.nbytes) for b in self._batches.values())
        found = {**columns, "rollout/scalars": scalars, "rollout/minibatch": batch}
        return found | ({"rollout/labels": labels} if labels else {})


def split_samples(drawn: Any, size: int) -> Iterator[Any]:
    """Samples as SB3's tuples of `size` each, which show the same memory.

    `Tensor.split` is written in Python, and takes twice the time of what it calls.
    """
    total, kind = drawn[1].size(0), type(drawn)
    sizes = [min(size, total - first) for first in range(0, total, size)]
    observations, *parts = (
        zip(*(v.split_with_sizes(sizes) for v in part.values()), strict=True)
        if isinstance(part, dict)
        else part.split_with_sizes(sizes)
        for part in drawn
    )
    if isinstance(drawn[0], dict):
        observations = (dict(zip(drawn[0], entries, strict=True)) for entries in observations)
    yield from map(kind, observations, *parts)


@cache
def _sample_type(single: bool) -> Any:
    """SB3's tuple of a minibatch."""
    from stable_baselines3.common import type_aliases as kinds

    return kinds.RolloutBufferSamples if single else kinds.DictRolloutBufferSamples


@cache
def _from_numpy() -> Callable[[np.ndarray], torch.Tensor]:
    """torch's, once torch is needed."""
    import torch

    return torch.from_numpy


def shaped(obs: np.ndarray, spec: ColumnSpec) -> np.ndarray:
    """Rows [N, *shape]: discrete observations arrive without their axis of one.

    Flags that are views of other numbers become 0 and 1, as `torch.tensor` makes them.
    """
    if isinstance(obs, np.ndarray) and obs.dtype.kind == "b":
        obs = obs.view(np.uint8) != 0
    return obs[:, None] if spec.shape == (1,) and obs.ndim == 1 else obs


def _array(value: Any) -> np.ndarray:
    """A tensor or array as a NumPy array."""
    if hasattr(value, "detach"):
        array: np.ndarray = value.numpy(force=True)
        return array
    return np.asarray(value)


def _device(name: Any) -> Any:
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)
