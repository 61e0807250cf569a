"""Rows of a minibatch that are equal, so that a network computes each of them once.

Sums over a minibatch round by their order, so groups are numbered by first sight: the same however
a field is stored.
"""

from __future__ import annotations

import torch
from torch import Tensor


def distinct(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Ids [B] -> distinct ids [D] ascending, and [B] the place of each id among them.

    A network that reads each distinct static row once and gathers its output by the second tensor
    saves the computation as interning saves the bytes.
    """
    unique, inverse = torch.unique(ids, sorted=True, return_inverse=True)
    return unique, inverse


def by_first_sight(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Ids [B] -> [D] the first place of each distinct id in order of places, and [B] its group."""
    unique, inverse = distinct(ids)
    places = torch.arange(len(ids), device=ids.device)
    first = torch.full_like(unique, len(ids)).scatter_reduce(0, inverse, places, "amin")
    firsts, order = torch.sort(first)
    return firsts, torch.argsort(order)[inverse]


def rows_at(values: Tensor, index: Tensor) -> Tensor:
    """Values [n, ...], index [...] int64 -> [*shape of index, ...]; its gradient repeats itself.

    That of `values[index]` is summed on CPUs in an order which the threads race for, so that equal
    runs differ, and takes 1.5 to 5 times as long.
    """
    flat = values.index_select(0, index.reshape(-1))
    return flat.reshape(*index.shape, *values.shape[1:])


def content_ids(rows: Tensor) -> Tensor:
    """Rows [B, ...] -> [B] int64, equal where rows are equal to the bit."""
    words = rows.contiguous().flatten(1).view(torch.uint8).view(len(rows), -1)
    keys = words.sum(dim=1, dtype=torch.int64)
    ids = torch.full_like(keys, -1)
    while len(left := torch.nonzero(ids < 0).flatten()):
        alike = left[keys[left] == keys[left[0]]]
        same = (words[alike] == words[alike[0]]).all(dim=1)
        ids[alike[same]] = left[0]
    return ids
