"""Pages of libraries that this process has mapped, as Linux tells them.

/proc/self/smaps has the same numbers, of all ranges: the kernel walks every page that a process
holds, and 20 lines a range are read. Kernels that numba compiles are a range each.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from mmap import PAGESIZE

import numpy as np

ENTRY = np.dtype(np.uint64)
PRESENT, SWAPPED, OF_FILE = (ENTRY.type(bit) for bit in (63, 62, 61))
"""Bits of a page's entry (Documentation/admin-guide/mm/pagemap.rst of Linux)."""
ONE = ENTRY.type(1)


@dataclass(frozen=True)
class MappedLibrary:
    """A range of addresses to which a library's file is mapped; sizes in bytes."""

    start: int
    end: int
    rights: str
    """As `r-xp`: read, write, execute, private."""
    path: str
    resident: int
    """Of the file's own pages."""
    written: int
    """Of pages that this process wrote into, swapped out or resident: they are its own."""


def library_bytes() -> dict[str, int]:
    """Resident bytes of each library that this process has mapped, without what it wrote into them.

    How many of a library's pages are resident depends on what the kernel has of its file at the
    moment: it maps the neighbours of a page that is touched where it has them.
    """
    held: dict[str, int] = {}
    for library in mapped_libraries():
        held[library.path] = held.get(library.path, 0) + library.resident
    return held


def mapped_libraries() -> list[MappedLibrary]:
    """The ranges of all libraries of this process; none where the kernel tells no pages."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            found = [line.split(maxsplit=5) for line in file.read().splitlines() if ".so" in line]
        ranges = [_range(words[0]) for words in found]
        resident, written = _pages(ranges)
    except OSError:
        return []
    return [
        MappedLibrary(*each, words[1], words[5], here, own)
        for each, words, here, own in zip(ranges, found, resident, written, strict=True)
    ]


def _range(text: str) -> tuple[int, int]:
    start, end = text.split("-")
    return int(start, 16), int(end, 16)


def _pages(ranges: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Bytes of each range that are the file's and resident, and those that were written into."""
    if not ranges:
        return [], []
    sizes = [(end - start) // PAGESIZE * ENTRY.itemsize for start, end in ranges]
    with open("/proc/self/pagemap", "rb", buffering=0) as file:
        told = b"".join(
            os.pread(file.fileno(), size, start // PAGESIZE * ENTRY.itemsize)
            for size, (start, _) in zip(sizes, ranges, strict=True)
        )
    if len(told) < sum(sizes):
        raise OSError("/proc/self/pagemap has no entry for some pages")
    entries = np.frombuffer(told, ENTRY)
    begins = np.cumsum([0, *sizes[:-1]]) // ENTRY.itemsize
    here, of_file = entries >> PRESENT, entries >> OF_FILE
    kinds = here & of_file, (here & ~of_file) | (entries >> SWAPPED & ONE)
    resident, written = (np.add.reduceat(pages, begins) * ENTRY.type(PAGESIZE) for pages in kinds)
    return resident.tolist(), written.tolist()
