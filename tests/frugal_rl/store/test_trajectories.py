"""Every strategy merges the same trajectories, and all but the guide's reuse their memory."""

from __future__ import annotations

import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frugal_rl.errors import ConfigError, MemoryBudgetError
from frugal_rl.memory.choices import Trajectories
from frugal_rl.store.trajectories import Item, TrajectoryBuffer, trimmed

ITEMS = (
    Item((3, 2), torch.float32),
    Item((), torch.float32),
    Item((), torch.bool),
    Item((1,), torch.int64),
)


def fill(slot, seed):
    generator = torch.Generator().manual_seed(seed)
    for tensor in slot:
        tensor.copy_(torch.randint(0, 2**16, tensor.shape, generator=generator))


@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    seed=st.integers(0, 99),
    in_slots=st.booleans(),
    chunk_size=st.integers(1, 5),
)
def test_strategies_merge_alike(lengths, seed, in_slots, chunk_size):
    merged = {}
    for strategy in Trajectories:
        buffer = TrajectoryBuffer(strategy, chunk_size=chunk_size, max_buffer_size=36)
        for update in range(3):
            own = TrajectoryBuffer(Trajectories.list) if not in_slots else buffer
            slots = own.slots(len(lengths), 9, ITEMS)
            sources = list(trimmed(slots, lengths))
            for worker, source in enumerate(sources):
                fill(source, 100 * seed + 10 * update + worker)
            steps, mean = buffer.update(iter(sources))
            assert steps == sum(lengths)
        merged[strategy] = [tensor.clone() for tensor in buffer]
        if steps:
            assert mean == pytest.approx(float(buffer[1].mean()))
    for strategy in Trajectories:
        for got, expected in zip(merged[strategy], merged[Trajectories.list], strict=True):
            assert got.dtype == expected.dtype
            assert torch.equal(got, expected), strategy


@pytest.mark.parametrize("strategy", [s for s in Trajectories if s is not Trajectories.list])
def test_memory_is_reused_and_full_slots_are_not_copied(strategy):
    buffer = TrajectoryBuffer(strategy, max_buffer_size=12)
    places = set()
    for _ in range(5):
        slots = buffer.slots(3, 4, ITEMS)
        buffer.update(slots)
        assert buffer[0].data_ptr() == slots[0][0].data_ptr()
        places.add(tuple(tensor.data_ptr() for tensor in buffer))
    assert len(places) == 1
    assert buffer.nbytes == 12 * (24 + 4 + 1 + 8)


@pytest.mark.parametrize(
    "strategy", [Trajectories.streaming, Trajectories.views, Trajectories.hybrid]
)
def test_adjacent_trajectories_are_shown_where_they_lie(strategy):
    whole = [torch.rand(7, *item.shape).to(item.dtype) for item in ITEMS]
    sources = [tuple(t[:4] for t in whole), tuple(t[4:] for t in whole)]
    buffer = TrajectoryBuffer(strategy, max_buffer_size=12)

    buffer.update(iter(sources))

    lies_there = [a.data_ptr() == b.data_ptr() for a, b in zip(buffer, whole, strict=True)]
    assert lies_there == [strategy is not Trajectories.streaming] * len(ITEMS)


def test_streaming_holds_one_source_at_a_time():
    buffer = TrajectoryBuffer(Trajectories.streaming, max_buffer_size=12)
    alive = []

    def sources():
        for seed in range(3):
            assert not any(ref() is not None for ref in alive)
            source = tuple(torch.zeros((4, *i.shape), dtype=i.dtype) for i in ITEMS)
            fill(source, seed)
            alive.append(weakref.ref(source[0]))
            yield source
            del source

    assert buffer.update(sources())[0] == 12


def test_more_steps_than_the_buffer_holds_are_refused():
    buffer = TrajectoryBuffer(Trajectories.preallocated, max_buffer_size=10)
    with pytest.raises(MemoryBudgetError, match="max_buffer_size=10"):
        buffer.slots(3, 4, ITEMS)


@pytest.mark.parametrize("strategy", [s for s in Trajectories if s is not Trajectories.list])
def test_what_is_full_is_full_whatever_the_strategy(strategy):
    def made():
        for seed in range(3):
            source = tuple(torch.zeros((4, *i.shape), dtype=i.dtype) for i in ITEMS)
            fill(source, seed)
            yield source

    small = TrajectoryBuffer(strategy, max_buffer_size=11)
    with pytest.raises(MemoryBudgetError, match="max_buffer_size=11"):
        small.update(made())
    assert TrajectoryBuffer(strategy, max_buffer_size=12).update(made())[0] == 12


def test_trajectories_of_another_kind_are_refused():
    buffer = TrajectoryBuffer(Trajectories.hybrid, max_buffer_size=10)
    buffer.slots(2, 4, ITEMS)
    with pytest.raises(ConfigError, match="another kind"):
        buffer.slots(2, 4, ITEMS[:2])


def test_slots_out_of_order_are_refused():
    buffer = TrajectoryBuffer(Trajectories.preallocated, max_buffer_size=12)
    with pytest.raises(ConfigError, match="in the order"):
        buffer.update(reversed(buffer.slots(3, 4, ITEMS)))


def test_no_trajectories_are_no_steps():
    for strategy in Trajectories:
        assert TrajectoryBuffer(strategy).update([]) == (0, 0.0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("strategy", list(Trajectories))
def test_trajectories_reach_the_device(strategy):
    buffer = TrajectoryBuffer(strategy, "cuda", max_buffer_size=12)
    slots = buffer.slots(3, 4, ITEMS)
    for seed, slot in enumerate(slots):
        fill(slot, seed)
    expected = [torch.cat(column) for column in zip(*slots, strict=True)]
    buffer.update(slots)
    for got, want in zip(buffer, expected, strict=True):
        assert got.is_cuda
        assert torch.equal(got.cpu(), want)
