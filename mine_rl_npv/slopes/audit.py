"""Slopes audited on coordinates alone: no precedence graph is read, and no code shared with it.

The blocks above a mined block that lie within the run of the slope, or over its footprint, must be
mined no later than it. The graph's builder searches cells; this looks at every block of a strip.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from mine_rl_npv.slopes.cone import PATTERNS, Slopes

SLACK = 1e-6
"""Shares by period are compared, and metres measured, with this slack."""


@dataclass(frozen=True)
class SlopeAudit:
    """What looking at the coordinates found."""

    blocks: int
    """Mined blocks whose cones were tested."""
    pairs: int
    """Blocks found in those cones, one by one."""
    broken: np.ndarray
    """(m,) int64 mined blocks below something that is mined later or never."""
    held: np.ndarray
    """(m,) int64 for each of them one block that should have gone first."""
    words: str
    """The rule that was tested."""

    @property
    def kept(self) -> bool:
        """Whether every wall is as flat as the rule wants it, at the end of every period."""
        return len(self.broken) == 0

    def faults(self) -> list[str]:
        """One sentence per undercut block, at most five."""
        rows = zip(self.broken[:5].tolist(), self.held[:5].tolist(), strict=True)
        found = [
            f"block {b} undercuts block {a} by its coordinates ({self.words}): {a} stays longer"
            for b, a in rows
        ]
        more = len(self.broken) - len(found)
        return found + ([f"{more} more blocks undercut their slopes"] if more > 0 else [])

    def line(self) -> str:
        """The audit in one line."""
        if not self.kept:
            return f"BROKEN: {len(self.broken)} of {self.blocks} mined blocks ({self.words})"
        return (
            f"kept: {self.words}; {self.blocks} mined blocks, {self.pairs} blocks in their cones "
            "tested on coordinates"
        )


def audit_slopes(slopes: Slopes, by_then: np.ndarray) -> SlopeAudit:
    """Tests the cone of every mined block in order of mining.

    Args:
        slopes: the rule and the places of n blocks.
        by_then: (n, T) float64 share of each block that is mined by the end of each period.
    """
    never = by_then.shape[1]
    started = by_then > SLACK
    complete = by_then >= by_then[:, -1:] - SLACK
    start = np.where(started.any(axis=1), started.argmax(axis=1), never)
    whole = (by_then[:, -1] >= 1 - SLACK) & started.any(axis=1)
    done = np.where(whole, complete.argmax(axis=1), never)
    pattern = PATTERNS.index(slopes.pattern) + 1 if slopes.pattern else 0
    broken, pairs = np.full(len(start), -1, np.int64), 0
    for centre, edge in _places(slopes):
        order = np.lexsort((centre[:, 0], centre[:, 2]))
        level = np.cumsum(np.diff(centre[order, 2], prepend=centre[order[0], 2]) > SLACK)
        first = np.searchsorted(level, np.arange(level[-1] + 2)).astype(np.int64)
        pairs = max(
            pairs,
            _undercuts(
                centre,
                edge,
                slopes.run,
                slopes.reach,
                pattern,
                order,
                level,
                first,
                start,
                done,
                np.ascontiguousarray(by_then),
                broken,
            ),
        )
    found = np.flatnonzero(broken >= 0)
    return SlopeAudit(int((start < never).sum()), pairs, found, broken[found], slopes.words)


def _places(slopes: Slopes) -> list[tuple[np.ndarray, np.ndarray]]:
    """Centroids and edges: on the lattice, and by angle alone where the file has others."""
    rows = (slopes.centre, slopes.stated, slopes.edge)
    centre, stated, edge = map(np.ascontiguousarray, rows)  # one order: compiled once
    if slopes.pattern or np.array_equal(centre, stated):
        return [(centre, edge)]
    return [(centre, edge), (stated, edge * 1e-6)]


@njit(cache=True)
def _undercuts(
    centre, edge, run, reach, pattern, order, level, first, start, done, by_then, broken
):
    """Marks in `broken` (n,) one block that each mined block undercuts; counts tested pairs."""
    n, periods = by_then.shape
    flattest = run.max()
    widest = edge.max()
    pairs = 0
    low = centre[order[0], 2]
    for at in range(n):
        b = order[at]
        if start[b] >= periods:
            continue
        bench = round((centre[b, 2] - low) / edge[b, 2])
        for above in range(level[at] + 1, level[n - 1] + 1):
            z = centre[order[first[above]], 2] - centre[b, 2]
            if z > reach * (1 + 1e-9):
                break
            far = z * flattest if pattern == 0 else (z / edge[b, 2] + 0.5) * widest
            far = max(far, widest) + 1e-6
            left, right = first[above], first[above + 1]
            while left < right:
                middle = (left + right) // 2
                if centre[order[middle], 0] < centre[b, 0] - far:
                    left = middle + 1
                else:
                    right = middle
            for k in range(left, first[above + 1]):
                a = order[k]
                x, y = centre[a, 0] - centre[b, 0], centre[a, 1] - centre[b, 1]
                if x > far:
                    break
                if abs(y) > far or not _stands_on(x, y, z, edge[a], edge[b], run, pattern, bench):
                    continue
                pairs += 1
                if done[a] > start[b]:
                    for t in range(periods):
                        if by_then[b, t] > by_then[a, t] + 1e-6:
                            broken[b] = a
    return pairs


@njit(cache=True)
def _stands_on(x, y, z, upper, lower, run, pattern, bench):
    """Whether a block at (x, y, z) metres from a lower one rests on it under the slope rule."""
    beside = 2 * z < 0.98 * (upper[2] + lower[2])  # as blocks of a level whose heights waver
    over = 2 * abs(x) < 0.98 * (upper[0] + lower[0]) and 2 * abs(y) < 0.98 * (upper[1] + lower[1])
    if over and not beside:
        return True
    if pattern == 0:
        clockwise = np.degrees(np.arctan2(x, y))
        if clockwise < 0:
            clockwise += 360.0
        allowed = z * run[int(clockwise) % 360]
        return np.hypot(x, y) <= allowed + 1e-6
    east, north, up = np.round(abs(x) / lower[0]), np.round(abs(y) / lower[1]), z / lower[2]
    if pattern == 1:
        return east + north <= up + 1e-6
    if max(east, north) > up + 1e-6:
        return False
    if pattern == 2:
        return True
    rest = np.round(up)
    diagonal = np.floor(rest / 2) + (rest % 2 if bench % 2 == 0 else 0)
    return east + north <= rest + diagonal + 1e-6
