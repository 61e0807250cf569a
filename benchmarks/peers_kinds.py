"""The stores under test: SB3 and its compressed drop-in, torchrl, cpprb, plain arrays, ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from peers_workloads import Workload

from frugal_rl.observation.history import History
from frugal_rl.store.dense import DenseMinibatch
from frugal_rl.store.rollout import RolloutBuffer

ACTIONS = spaces.Discrete(6)


class Store:
    """A store under test: `add` step by step, then `draw` env-major indices."""

    def __init__(self, load: Workload) -> None:
        self.load = load
        self.zeros = np.zeros(load.num_envs, np.float32)
        self.tensor = torch.zeros(load.num_envs)

    def prepare(self, t: int) -> Any:
        """What `add` is given; not timed."""
        return self.load.dense(t)

    def dense_draws(self) -> Any:
        """Pairs of indices and a function that draws the observation as it was given."""
        return self.draws()

    def dense(self, drawn: Any) -> dict[str, np.ndarray]:
        """The drawn minibatch as plain arrays."""
        return {name: np.asarray(value) for name, value in drawn.items()}


class Sb3(Store):
    """SB3's own buffer, or a compressed drop-in of sb3-extra-buffers."""

    def __init__(self, load: Workload, method: str = "") -> None:
        super().__init__(load)
        args = (load.steps, load.space, ACTIONS, "cpu")
        if method:
            from sb3_extra_buffers.compressed import CompressedDictRolloutBuffer

            kind = next(iter(load.space.values())).dtype.type
            types = {"elem_type": kind, "runs_type": np.uint16}
            self.buffer = CompressedDictRolloutBuffer(
                *args, n_envs=load.num_envs, dtypes=types, compression_method=method
            )
        else:
            from stable_baselines3.common.buffers import DictRolloutBuffer

            self.buffer = DictRolloutBuffer(*args, n_envs=load.num_envs)

    def add(self, obs: Any) -> None:
        """Add one step of all environments."""
        z = self.zeros
        self.buffer.add(obs, z, z, z, self.tensor, self.tensor)

    def draws(self):
        """Pairs of indices and a function that draws them, over one epoch."""
        total = self.load.steps * self.load.num_envs
        indices = np.random.permutation(total)  # noqa: NPY002 - as SB3 draws
        if not self.buffer.generator_ready:
            next(self.buffer.get(self.load.batch))
        for start in range(0, total, self.load.batch):
            inds = indices[start : start + self.load.batch]
            yield inds, lambda inds=inds: self.buffer._get_samples(inds).observations

    def counted(self) -> int:
        """Bytes that the store says it holds; 0 where it does not say."""
        return sum(v.nbytes for v in self.buffer.observations.values())


class Indexed(Store):
    """Plain arrays, indexed into kept ones: the fastest that a store of dense steps can draw."""

    def __init__(self, load: Workload) -> None:
        super().__init__(load)
        total = load.steps * load.num_envs
        spaces_ = load.space.spaces.items()
        self.arrays = {n: np.empty((total, *b.shape), b.dtype) for n, b in spaces_}
        self.out = {n: np.empty((load.batch, *b.shape), b.dtype) for n, b in spaces_}
        self.at = 0

    def add(self, obs: Any) -> None:
        """Add one step of all environments."""
        for name, rows in obs.items():
            self.arrays[name][self.at : self.at + len(rows)] = rows
        self.at += self.load.num_envs

    def draws(self):
        """Pairs of indices and a function that draws them, over one epoch."""
        total = self.load.steps * self.load.num_envs
        indices = np.random.default_rng(0).permutation(total)
        for start in range(0, total, self.load.batch):
            inds = indices[start : start + self.load.batch]
            n, t = np.divmod(inds, self.load.steps)
            yield inds, lambda where=t * self.load.num_envs + n: self._get(where)

    def _get(self, where: np.ndarray) -> dict[str, np.ndarray]:
        out = {n: a[: len(where)] for n, a in self.out.items()}
        for name, array in self.arrays.items():
            np.take(array, where, axis=0, out=out[name], mode="clip")
        return out

    def counted(self) -> int:
        """Bytes that the store says it holds."""
        return sum(a.nbytes for a in self.arrays.values())


class TorchRl(Store):
    """torchrl's storages, written by range and read by index."""

    def __init__(self, load: Workload, compressed: bool) -> None:
        super().__init__(load)
        from torchrl.data import CompressedListStorage, LazyMemmapStorage

        total = load.steps * load.num_envs
        kind = CompressedListStorage if compressed else LazyMemmapStorage
        self.storage = kind(total, compression_level=1) if compressed else kind(total)
        self.compressed = compressed
        self.at = 0

    def add(self, obs: Any) -> None:
        """Add one step of all environments."""
        from tensordict import TensorDict

        n = self.load.num_envs
        rows = TensorDict({k: torch.from_numpy(v) for k, v in obs.items()}, [n])
        where = (
            range(self.at, self.at + n) if self.compressed else torch.arange(self.at, self.at + n)
        )
        self.storage.set(list(where) if self.compressed else where, rows)
        self.at += n

    def draws(self):
        """Pairs of indices and a function that draws them, over one epoch."""
        total = self.load.steps * self.load.num_envs
        indices = np.random.default_rng(0).permutation(total)
        for start in range(0, total, self.load.batch):
            inds = indices[start : start + self.load.batch]
            n, t = np.divmod(inds, self.load.steps)
            where = torch.from_numpy(t * self.load.num_envs + n)
            where = where.tolist() if self.compressed else where
            yield inds, lambda where=where: self._get(where)

    def _get(self, where: Any) -> Any:
        got = self.storage.get(where)
        return torch.stack(list(got)) if isinstance(got, list) else got

    def counted(self) -> int:
        """Bytes that the store says it holds; 0 where it does not say."""
        return 0


class Cpprb(Store):
    """cpprb; `stack_compress` for stacks, whose axis must be the last."""

    def __init__(self, load: Workload) -> None:
        super().__init__(load)
        import cpprb

        self.stacked = "frame" in load.space.spaces
        shapes = {
            n: {"shape": (144, 160, 4) if self.stacked else b.shape, "dtype": b.dtype}
            for n, b in load.space.items()
        }
        more = {"stack_compress": "frame"} if self.stacked else {}
        total = load.steps * load.num_envs
        self.buffers = [
            cpprb.ReplayBuffer(load.steps, shapes, **more) for _ in range(load.num_envs)
        ]
        self.total = total

    def prepare(self, t: int) -> Any:
        """What `add` is given; not timed."""
        obs = self.load.dense(t)
        if self.stacked:
            obs = {"frame": np.ascontiguousarray(np.moveaxis(obs["frame"], 1, -1))}
        return obs

    def add(self, obs: Any) -> None:
        """Add one step of all environments."""
        for n, buffer in enumerate(self.buffers):
            buffer.add(**{k: v[n] for k, v in obs.items()})

    def draws(self):
        """Pairs of indices and a function that draws them, over one epoch."""
        indices = np.random.default_rng(0).permutation(self.total)
        for start in range(0, self.total, self.load.batch):
            inds = np.sort(indices[start : start + self.load.batch])
            yield inds, lambda inds=inds: self._get(inds)

    def _get(self, inds: np.ndarray) -> Any:
        n, t = np.divmod(inds, self.load.steps)
        parts = [b._encode_sample(t[n == i]) for i, b in enumerate(self.buffers)]
        return {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}

    def dense(self, drawn: Any) -> dict[str, np.ndarray]:
        """The drawn minibatch as plain arrays."""
        if self.stacked:
            return {"frame": np.moveaxis(drawn["frame"], -1, 1)}
        return drawn

    def counted(self) -> int:
        """Bytes that the store says it holds; 0 where it does not say."""
        return 0


class Ours(Store):
    """This project's buffer: rows stored once, delivered in stored form, rebuilt on demand."""

    def __init__(self, load: Workload) -> None:
        super().__init__(load)
        self.history = History(load.encoding, load.num_envs)
        self.buffer = RolloutBuffer(
            load.steps, load.encoding.policy_space(), ACTIONS, "cpu", n_envs=load.num_envs,
            encoding=load.encoding, reuse=True,
        )  # fmt: skip
        self.minibatch: Any = None
        self.whole: dict[str, np.ndarray] = {}

    def prepare(self, t: int) -> Any:
        """What `add` is given; not timed."""
        return t, self.load.raw(t)

    def add(self, obs: Any) -> None:
        """Add one step of all environments."""
        t, raw = obs
        rows = self.load.encode(raw)
        shown, _ = self.history.push(rows, np.full(self.load.num_envs, t == 0))
        self.buffer.add(shown, self.zeros, self.zeros, self.zeros, self.tensor, self.tensor)

    def draws(self):
        """Pairs of indices and a function that draws them, over one epoch."""
        total = self.load.steps * self.load.num_envs
        indices = np.random.default_rng(0).permutation(total)
        for start in range(0, total, self.load.batch):
            inds = indices[start : start + self.load.batch]
            yield inds, lambda inds=inds: self.buffer.samples(inds, self.load.batch).observations

    def dense_draws(self):
        """The same with the observation rebuilt as the others deliver it."""
        for inds, _ in self.draws():
            yield inds, lambda inds=inds: self._rebuilt(inds)

    def _rebuilt(self, inds: np.ndarray) -> dict[str, np.ndarray]:
        if self.minibatch is None:
            self.whole, into = self.load.dense_arrays()
            self.minibatch = DenseMinibatch(self.buffer, self.load.tables, self.load.batch, into)
        fields = dict(self.minibatch.draw(inds))
        return {n: a[: len(inds)] for n, a in self.whole.items()} or fields

    def counted(self) -> int:
        """Bytes that the store says it holds; 0 where it does not say."""
        return self.buffer.nbytes + self.load.tables.nbytes


def make_store(name: str, load: Workload) -> Any:
    if name.startswith("sb3x"):
        return Sb3(load, name.split()[1])
    if name.startswith("torchrl"):
        return TorchRl(load, name.endswith("compressed"))
    kinds: dict[str, Any] = {"sb3": Sb3, "cpprb": Cpprb, "indexed": Indexed, "ours": Ours}
    return kinds[name](load)
