"""The C allocator: thresholds pinned at start-up, so that freed blocks go back to the kernel.

glibc raises its mmap threshold each time a large block is freed, and from then on keeps such blocks
in its heap. With the thresholds fixed the peak of an update falls (1021.6 to 918.9 MiB for a
2,048-sample convolution update) and follows the batch size in a straight line.

The thresholds lie above the activations of a small network: at 256 KiB each of them is mapped and
faulted in anew, and an update of 2 x 128 units on 4,096 samples takes 0.27 instead of 0.20 s. Until
the first update has ended they lie lower: what it leaves behind for good would come to lie between
activations in the heap, a further 3.7 MiB for each minibatch (319 instead of 300 MiB).

Blocks that are mapped anew are faulted in by pages of 2 MiB where the kernel allows it: 20 updates
of a convolution network on 256 stacks take 1.0 instead of 1.9 s in the kernel, for 6 MiB more.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterable

M_TRIM_THRESHOLD = -1
M_TOP_PAD = -2
M_MMAP_THRESHOLD = -3
"""Parameters of mallopt (glibc malloc.h)."""
FIRST_THRESHOLD_BYTES = 1024 * 1024
MMAP_THRESHOLD_BYTES = 4 * 1024 * 1024
"""Blocks from this size on are mapped on their own, and unmapped when they are freed: at first, and
once the heap is settled."""
TRIM_THRESHOLD_BYTES = 16 * 1024 * 1024
"""Free bytes at the end of the heap that are kept."""
DYNAMIC_MOST_BYTES = 32 * 1024 * 1024
"""Up to this size a mapped block that is freed raises the thresholds, where they are not pinned."""
SETTLED_HOLES = 0.5
"""Free blocks beside those in use, in a heap where blocks of the same sizes come and go (D. E.
Knuth, The Art of Computer Programming 1, 2.5), as those of later updates do. Graphs are of other
sizes in each minibatch: all of theirs are holes."""
HUGE_PAGES = "THP_MEM_ALLOC_ENABLE"
"""torch reads it at its first tensor (c10/core/impl/alloc_cpu.cpp)."""


def pin_allocator() -> bool:
    """Fix glibc's thresholds for the rest of this process; False where there is no glibc."""
    libc = _glibc()
    if libc is None:
        return False
    os.environ.setdefault(HUGE_PAGES, "1")
    pinned = [
        libc.mallopt(M_MMAP_THRESHOLD, FIRST_THRESHOLD_BYTES),
        libc.mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES),
        libc.mallopt(M_TOP_PAD, 64 * 1024),
    ]
    return all(pinned)


def kept_free_bytes(sizes: Iterable[int]) -> int:
    """What glibc keeps free in its heap once blocks of these sizes came and went.

    A mapped block that is freed sets the threshold of mapping to its size, and that of giving back
    to twice as much; from then on such blocks lie in the heap (mallopt(3), `M_MMAP_THRESHOLD`).
    Zero where the thresholds were set by the environment, or there is no glibc.
    """
    told = any(name.startswith("MALLOC_") for name in os.environ)
    if told or "malloc" in os.environ.get("GLIBC_TUNABLES", "") or _glibc() is None:
        return 0
    return 2 * max((size for size in sizes if size <= DYNAMIC_MOST_BYTES), default=0)


def give_back() -> bool:
    """Return what is free in the heap to the kernel; False where that is not possible."""
    libc = _glibc()
    return libc is not None and bool(libc.malloc_trim(0))


def settle() -> bool:
    """What lives as long as the run is in the heap: activations may lie there too from now on.

    Returns what is free to the kernel as well; False where that is not possible.
    """
    libc = _glibc()
    return (
        libc is not None
        and bool(libc.mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES))
        and give_back()
    )


def _glibc() -> ctypes.CDLL | None:
    if platform.system() != "Linux" or platform.libc_ver()[0] != "glibc":
        return None
    libc = ctypes.CDLL(None)
    libc.mallopt.argtypes = [ctypes.c_int, ctypes.c_int]
    libc.mallopt.restype = ctypes.c_int
    return libc
