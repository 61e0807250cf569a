"""From an action log to what a network reads: depths, voxel planes, open columns, column features.

An entry is the number of the mined block plus one (0: nothing), with the day it was mined on;
`NOWHERE` as day says that the block found no room and its column is closed. B samples, S + 1
entries each, C columns.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mine_rl_npv.rules.steps import NOWHERE

CLOSED = 128
"""Bit of a depth that says: this column offers nothing any more."""


@njit(cache=True, nogil=True)
def column_depths(entry, day, mine, owner, owner_first, depth):
    """Depth (B, C) uint8 from entries (B, S + 1) int32 and days (B, S + 1) uint16.

    mine (B,) ids; owner: column of each block, a mine's blocks from `owner_first` (K + 1,) on.
    """
    for i in range(entry.shape[0]):
        depth[i] = 0
        first = owner_first[mine[i]]
        for s in range(entry.shape[1]):
            if entry[i, s] > 0:
                c = owner[first + entry[i, s] - 1]
                if day[i, s] == NOWHERE:
                    depth[i, c] |= CLOSED
                else:
                    depth[i, c] += 1


@njit(cache=True, nogil=True)
def pit_planes(entry, day, mine, cell, cell_first, planes):
    """Planes (B, 2, cells) float32: mined flag, and extraction day, 0 where unmined."""
    for i in range(entry.shape[0]):
        planes[i] = 0.0
        first = cell_first[mine[i]]
        for s in range(entry.shape[1]):
            if entry[i, s] > 0 and day[i, s] != NOWHERE:
                at = cell[first + entry[i, s] - 1]
                planes[i, 0, at] = 1.0
                planes[i, 1, at] = day[i, s]


@njit(cache=True, nogil=True)
def open_columns(
    depth,
    mine,
    column_first,
    owner,
    owner_first,
    pointer,
    pointer_first,
    index,
    index_first,
    destinations,
    mask,
):
    """Mask (B, C * D) bool: columns whose next block waits for nothing, by each destination.

    A block is mined when its place in its column is above the column's depth.
    """
    columns = depth.shape[1]
    for i in range(depth.shape[0]):
        k = mine[i]
        pf, af, of = pointer_first[k], index_first[k], owner_first[k]
        for c in range(columns):
            dug = depth[i, c] & 127
            b = column_first[k, c] + dug
            free = b < column_first[k, c + 1] and depth[i, c] < CLOSED
            if free:
                for j in range(pointer[pf + b], pointer[pf + b + 1]):
                    p = index[af + j]
                    q = owner[of + p]
                    if p - column_first[k, q] >= (depth[i, q] & 127):
                        free = False
                        break
            for d in range(destinations):
                mask[i, c * destinations + d] = free


@njit(cache=True, nogil=True)
def column_features(depth, mask, mine, column_first, view, view_first, out):
    """Out (B, C, F + 2) float32: features of each column's next block, depth, openness.

    view: features (F) of each block; columns that are dug out show zeros. mask (B, C) bool.
    Features lie innermost: rows are copied whole, and convolutions on CPUs like it so.
    """
    width = view.shape[1]
    for i in range(depth.shape[0]):
        k = mine[i]
        for c in range(depth.shape[1]):
            dug = depth[i, c] & 127
            b = column_first[k, c] + dug
            some = b < column_first[k, c + 1]
            for f in range(width):
                out[i, c, f] = view[view_first[k] + b, f] if some else np.float32(0)
            out[i, c, width] = np.float32(dug) / np.float32(64)
            out[i, c, width + 1] = np.float32(1) if mask[i, c] else np.float32(0)


@njit(cache=True, nogil=True)
def mark_planes(entry, day, cell, cell_first, mine, planes):
    """Writes the last entries (N,) into planes (N, 2, cells)."""
    for n in range(entry.shape[0]):
        if entry[n] > 0 and day[n] != NOWHERE:
            at = cell[cell_first[mine[n]] + entry[n] - 1]
            planes[n, 0, at] = 1.0
            planes[n, 1, at] = day[n]
