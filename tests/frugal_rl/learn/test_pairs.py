"""Two processes that add what they hold, each waiting for the other's numbers ahead of time."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch
from torch.distributed import HashStore, ProcessGroupGloo

from frugal_rl.learn.pairs import LARGEST_BYTES, Pair
from frugal_rl.learn.ranks import Ranks


def two(work, limit_s=20.0):
    """What both sides of a real exchange give, each in a thread with a group of its own."""
    store = HashStore()

    def one(rank):
        group = ProcessGroupGloo(store, rank, 2, timedelta(seconds=limit_s))
        return work(rank, Pair(group, 1 - rank))

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, range(2)))


def numbers(rank, kind=torch.float32):
    draw = torch.Generator().manual_seed(rank)
    return [torch.rand(size, generator=draw).to(kind) for size in (3, 70_000, 3, 1, 70_000)]


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_both_get_the_same_sums_in_whatever_sizes_they_come(kind):
    def work(rank, pair):
        own = numbers(rank, kind)
        for tensor in own:
            pair.add(tensor)
        return own

    for first, second, *parts in zip(*two(work), numbers(0, kind), numbers(1, kind), strict=True):
        assert torch.equal(first, second)
        assert torch.equal(first, parts[0] + parts[1])


def test_who_is_done_leaves_without_a_word_and_only_who_asks_for_more_is_told():
    def work(rank, pair):
        tensor = torch.ones(2)
        pair.add(tensor)
        if rank == 0:
            pair.known.clear()
            pair.group.abort()
            return tensor
        with pytest.raises(RuntimeError):
            pair.add(torch.ones(2))
        return tensor

    assert [t.tolist() for t in two(work, limit_s=2.0)] == [[2, 2], [2, 2]]


def test_nobody_waits_for_a_silent_one_for_longer_than_the_limit():
    def work(rank, pair):
        if rank == 1:
            with pytest.raises(RuntimeError):
                pair.add(torch.ones(2))
        return pair  # the silent one's group lives as long

    two(work, limit_s=0.3)


def test_large_tensors_are_left_to_the_library(monkeypatch):
    small, large = torch.zeros(LARGEST_BYTES // 4), torch.zeros(LARGEST_BYTES // 4 + 1)
    pair, whole = Pair(group=None, other=1), []
    monkeypatch.setattr(Pair, "add", lambda self, tensor: tensor.add_(3))
    monkeypatch.setattr("frugal_rl.learn.ranks.distributed.all_reduce", whole.append)

    for tensor in (small, large):
        Ranks(0, 2, pair=pair).average(tensor)

    assert (small[0], large[0]) == (1.5, 0)
    assert [tensor is large for tensor in whole] == [True]
