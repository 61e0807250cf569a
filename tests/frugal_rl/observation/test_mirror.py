"""Tables beside a device: what was copied is not copied again, and what changed is."""

import numpy as np
import pytest
import torch

from frugal_rl.observation.growing_array import GrowingArray
from frugal_rl.observation.mirror import ArenaMirror, RaggedRows, take

CPU, ELSEWHERE = torch.device("cpu"), torch.device("meta")
"""A device without numbers: torch's shapes and bytes are those of any other."""


def rows(*values):
    return np.array(values, np.int32)[:, None].repeat(2, 1)


def arena_of(*values) -> GrowingArray:
    arena = GrowingArray((2,), np.int32)
    arena.append(rows(*values))
    return arena


def test_a_copy_takes_only_what_came_since_it_was_made():
    arena = arena_of(1, 2, 3, 4)
    arena.append(rows(5))  # grows to six places
    mirror = ArenaMirror(arena)
    assert mirror._copy(CPU)[:, 0].tolist() == [1, 2, 3, 4, 5]
    held = mirror.tensor
    arena.values[0] = 99  # nobody writes there: it shows what is copied
    arena.append(rows(6))

    assert mirror._copy(CPU)[:, 0].tolist() == [1, 2, 3, 4, 5, 6]
    assert mirror.tensor is held
    assert len(held) == 6


def test_a_copy_that_is_too_small_or_of_another_version_is_made_anew():
    arena = arena_of(1, 2)
    mirror = ArenaMirror(arena)
    mirror._copy(CPU)
    arena.append(rows(3, 4, 5))
    assert mirror._copy(CPU)[:, 0].tolist() == [1, 2, 3, 4, 5]
    arena.select(np.array([4, 1]))
    assert mirror._copy(CPU)[:, 0].tolist() == [5, 2]


def test_a_copy_counts_its_bytes_and_shared_memory_none():
    arena = arena_of(1, 2)
    shared, copy = ArenaMirror(arena), ArenaMirror(arena)
    assert shared.nbytes == copy.nbytes == 0

    assert shared.sync(CPU).data_ptr() == arena.values.ctypes.data
    assert copy.sync(ELSEWHERE).device == ELSEWHERE
    assert (shared.nbytes, copy.nbytes) == (0, arena.nbytes)


def test_a_copy_for_another_device_is_made_there():
    mirror = ArenaMirror(arena_of(1, 2))
    mirror.sync(ELSEWHERE)

    assert mirror._copy(CPU).tolist() == [[1, 1], [2, 2]]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.uint32, np.int64, np.float32])
def test_values_of_every_dtype_are_taken_and_padded(dtype):
    largest = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else 1.5
    values = torch.from_numpy(np.array([[1, 2], [largest, 4], [5, 6]], dtype))
    taken = take(values, torch.tensor([1, 1, 0]))
    padded = RaggedRows(values, torch.tensor([2, 0, 1])).padded(3)

    assert taken.dtype == padded.dtype == values.dtype
    assert taken.numpy().tolist() == [[largest, 4], [largest, 4], [1, 2]]
    zero = [0, 0]
    assert padded.numpy().tolist() == [
        [[1, 2], [largest, 4], zero],
        [zero, zero, zero],
        [[5, 6], zero, zero],
    ]
