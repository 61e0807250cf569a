"""Rollout stores side by side: bytes, time to add, time to draw, peak of the first epoch.

    python benchmarks/peers_stores.py [--workloads gb graph mine mine_small] [--markdown FILE]

Peers that are not installed are skipped; `pip install "sb3-extra-buffers[lz4]" torchrl cpprb` in an
environment of their own. Every store runs in a process of its own on one thread; all are given the
same transitions, and each drawn observation is compared with what went in (`exact`).

`resident` is the growth of resident memory while filling, `counted` what the store says it holds,
per transition; `add` microseconds per transition; `draw` the median of milliseconds per minibatch,
`dense` with the observation rebuilt as the others deliver it; `peak` MiB above the start. `indexed`
is no store but the machine's own pace: plain arrays of dense steps, copied by index.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import peers_workloads
import psutil
import torch
from gymnasium import spaces
from peers_workloads import Workload

from frugal_rl.observation.history import History
from frugal_rl.rollout.buffer import RolloutBuffer
from frugal_rl.rollout.dense import DenseMinibatch

ACTIONS = spaces.Discrete(6)
STORES = {
    "gb": ("sb3", "sb3x gzip6", "sb3x gzip9", "sb3x lz4-frame/0", "torchrl memmap",
           "torchrl compressed", "cpprb", "indexed", "ours"),
    **dict.fromkeys(
        ("graph", "mine", "mine_small"),
        ("sb3", "sb3x lz4-frame/0", "torchrl memmap", "torchrl compressed", "cpprb", "indexed",
         "ours"),
    ),
}  # fmt: skip


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


def status_mib(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(x for x in lines if x.startswith(key)).split()[1]) / 1024


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def fill(store: Any, load: Workload) -> float:
    seconds = 0.0
    for t in range(load.steps):
        obs = store.prepare(t)
        start = time.perf_counter()
        store.add(obs)
        seconds += time.perf_counter() - start
    return seconds


def check_exact(store: Any, load: Workload) -> bool:
    """Whether 3 drawn minibatches equal what went in."""
    for count, (inds, draw) in enumerate(store.dense_draws()):
        got = store.dense(draw())
        n, t = np.divmod(inds, load.steps)
        for i in range(0, len(inds), max(1, len(inds) // 8)):
            expected = load.dense(int(t[i]))
            for name, value in expected.items():
                if not np.array_equal(np.asarray(got[name][i]), value[n[i]]):
                    return False
        if count == 2:
            break
    return True


def one(workload: str, name: str) -> None:
    torch.set_num_threads(1)
    load = peers_workloads.make(workload)
    warm = make_store(name, load)  # compiles, imports
    warm.add(warm.prepare(0))
    if name == "ours":
        for t in range(1, load.steps):
            warm.add(warm.prepare(t))
        for draws in (warm.draws(), warm.dense_draws()):
            _, draw = next(iter(draws))
            draw()
    del warm
    before = psutil.Process().memory_info().rss
    reset_peak()
    base = status_mib("VmRSS")
    store = make_store(name, load)
    seconds = fill(store, load)
    total = load.steps * load.num_envs
    resident = (psutil.Process().memory_info().rss - before) / total
    first = list(draw_times(store, dense=name == "ours"))
    peak = status_mib("VmHWM") - base
    times = [t for _ in range(2) for t in draw_times(store, dense=False)] or first
    dense = (
        [t for _ in range(2) for t in draw_times(store, dense=True)] if name == "ours" else times
    )
    exact = check_exact(store, load)
    print(
        resident, store.counted() / total, seconds / total * 1e6,
        statistics.median(times) * 1e3, statistics.median(dense) * 1e3, peak, int(exact),
    )  # fmt: skip


def draw_times(store: Any, dense: bool):
    for _, draw in store.dense_draws() if dense else store.draws():
        start = time.perf_counter()
        drawn = draw()
        yield time.perf_counter() - start
        del drawn


def row(workload: str, name: str) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--one", workload, name]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1][:90]
        return f"| {workload} | {name} | - | - | - | - | - | - | {reason} |"
    resident, counted, add, draw, dense, peak, exact = map(float, done.stdout.split()[-7:])
    said = f"{counted:,.0f}" if counted else "-"
    return (
        f"| {workload} | {name} | {resident:,.0f} | {said} | {add:,.1f} | {draw:.2f} | "
        f"{dense:.2f} | {peak:,.0f} | {'yes' if exact else 'no'} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", nargs="+", default=list(STORES))
    parser.add_argument("--stores", nargs="+")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--rows", action="store_true", help="without the table's head")
    parser.add_argument("--one", nargs=2)
    args = parser.parse_args()
    if args.one:
        one(*args.one)
        return
    lines = (
        []
        if args.rows
        else [
            "| workload | store | resident B | counted B | add us | draw ms | dense ms | peak MiB "
            "| exact |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
    )
    for workload in args.workloads:
        for name in args.stores or STORES[workload]:
            lines.append(row(workload, name))
            print(lines[-1], flush=True)
    if args.markdown:
        args.markdown.write_text("\n".join(["# Rollout stores side by side", "", *lines, ""]))


if __name__ == "__main__":
    main()
