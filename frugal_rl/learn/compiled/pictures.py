"""What distinct pictures give to the layers that read them, forward and back.

A minibatch of the main job has 4,096 samples and shows about 600 windows of tiles: a picture's
layer, and its part of the first layers, are computed once for each of those, on rows that the
threads share out. Activations stay where they are between the two ways. While acting, what was
computed stays known until the parameters change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.learn.compiled.fields import Fields
from frugal_rl.learn.compiled.kernels import go_back, infer
from frugal_rl.observation.aligned import aligned_empty

if TYPE_CHECKING:
    from frugal_rl.learn.compiled.layers import Perceptron, Table
    from frugal_rl.learn.compiled.packing import Weights

NO_ROWS = np.empty((0, 0), np.float32)
NO_INDEX = np.empty((0, 0), np.int32)
ROOM = 128
"""Rows by which memory grows."""


class Kept:
    """Float32 memory that is as large as the largest that was asked for."""

    def __init__(self) -> None:
        self.memory = aligned_empty((0,), np.float32)

    def of(self, rows: int, width: int) -> np.ndarray:
        """[rows, width], with what is in it; the same memory each time."""
        if rows * width > self.memory.size:
            before = self.memory
            self.memory = aligned_empty((-(-rows // ROOM) * ROOM * width,), np.float32)
            self.memory[: before.size] = before
        return self.memory[: rows * width].reshape(rows, width)


class PictureLane:
    """What one thread computes of one picture field: activations and their gradients."""

    def __init__(self) -> None:
        self.activations, self.deltas = Kept(), Kept()
        self.first, self.last = 0, 0

    @property
    def rows(self) -> int:
        """Pictures that are the thread's."""
        return self.last - self.first

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self.activations.memory.nbytes + self.deltas.memory.nbytes


class Pictures:
    """`shared` [D, s] of all fields' distinct pictures, and each thread's gradient of it."""

    def __init__(self, net: Perceptron, threads: int) -> None:
        self.tables, self.width, self.threads = net.pictures, net.shared, threads
        self.lanes = [[PictureLane() for _ in net.pictures] for _ in range(threads)]
        self._shared, self._gradients = Kept(), Kept()
        self.show([NO_ROWS] * len(net.pictures), 0, threads)

    def show(self, pictures: Sequence[np.ndarray], known: int, threads: int) -> None:
        """Each field's new pictures [D, pixels], behind the known ones, read by so many threads.

        What was shown last stays so where there are no fields.
        """
        self.pictures, self.known = pictures, known
        self.fields = [Fields().add(seen, seen.shape[1]) for seen in pictures]
        rows = known + sum(map(len, pictures))
        self.shared = self._shared.of(rows, self.width)
        for i, lane in enumerate(self.lanes):
            first, last = min(i, threads), min(i + 1, threads)
            for field, seen in zip(lane, pictures, strict=True):
                field.first = len(seen) * first // threads
                field.last = len(seen) * last // threads

    def gradients(self) -> np.ndarray:
        """[threads, *shape of `shared`], the same memory for as many pictures."""
        rows, width = self.shared.shape
        memory = self._gradients.of(self.threads * rows, width)
        return memory.reshape(self.threads, rows, width)

    def _fields(self, thread: int) -> Iterator[tuple[Table, PictureLane, Fields, int, int]]:
        """Of each field its table, a thread's lane, its pictures, where those begin and end."""
        above = self.known
        for table, lane, seen, fields in zip(
            self.tables, self.lanes[thread], self.pictures, self.fields, strict=True
        ):
            if len(seen):
                yield table, lane, fields, above, above + len(seen)
            above += len(seen)

    def forward(self, thread: int, weights: Weights) -> None:
        """One thread's rows of `shared`."""
        for table, lane, seen, above, end in self._fields(thread):
            infer(
                lane.first,
                lane.last,
                weights,
                table.kernel,
                seen.kernel,
                NO_ROWS,
                NO_INDEX,
                lane.activations.of(lane.rows, table.width).reshape(-1),
                max(lane.rows, 1),
                self.shared[above:end],
            )

    def backward(
        self,
        thread: int,
        weights: Weights,
        gradients: np.ndarray,
        scratch: np.ndarray,
        gradient: np.ndarray,
    ) -> None:
        """One thread's rows: from all threads' `gradients` to those of the parameters."""
        for table, lane, _, above, _ in self._fields(thread):
            go_back(
                lane.first,
                lane.last,
                weights,
                table.kernel,
                lane.activations.of(lane.rows, table.width).reshape(-1),
                lane.deltas.of(lane.rows, int(table.buffers[-1, 0])).reshape(-1),
                scratch,
                NO_INDEX,
                gradients,
                above,
                gradient,
            )

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        lanes = sum(field.nbytes for lane in self.lanes for field in lane)
        return lanes + self._shared.memory.nbytes + self._gradients.memory.nbytes
