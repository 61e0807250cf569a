"""What a run does to its own process so that it holds less: its allocator, pages of its libraries.

Importing torch, registering its operators and loading compiled kernels touch pages of libraries
that training never looks at again: of 463 MiB that the main job held, 139 were such. They are given
back; one that is needed once more comes from the kernel's copy of the file, as it came at first.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from frugal_rl.memory.allocator import pin_allocator
from frugal_rl.memory.choices import Allocator, LibraryPages
from frugal_rl.memory.libraries import mapped_libraries

if TYPE_CHECKING:
    from frugal_rl.memory.part import Phase
    from frugal_rl.memory.profile import MemoryProfile

MADV_DONTNEED = 4
"""madvise(2): the pages may go; a page of a file that was not written comes back from it."""


def settle_process(memory: MemoryProfile) -> None:
    """Pin the allocator, give pages of libraries back: before torch is loaded, and once it is."""
    if memory.allocator is Allocator.pinned:
        pin_allocator()
    if memory.library_pages is LibraryPages.given_back:
        give_back_pages()


def settled(
    memory: MemoryProfile, phase: Callable[[Phase], AbstractContextManager[Any]]
) -> Callable[[Phase], AbstractContextManager[Any]]:
    """The phases of a run; pages go back before all of them, and behind the first time of each.

    That is what loads the most; looking for pages takes 10 milliseconds, too long for every time.
    """
    if memory.library_pages is LibraryPages.kept:
        return phase
    seen: set[Phase] = set()

    @contextmanager
    def watched(which: Phase) -> Iterator[None]:
        if not seen:
            give_back_pages()
        first = which not in seen
        seen.add(which)
        try:
            with phase(which):
                yield
        finally:
            if first:
                give_back_pages()

    return watched


def give_back_pages() -> int:
    """Let go of the resident pages of libraries; returns their bytes, 0 where that cannot be done.

    Left alone is a range into which anybody wrote, be it a linker or a debugger: what was written
    stands nowhere else.
    """
    if platform.system() != "Linux":
        return 0
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    gone = 0
    for library in mapped_libraries():
        if library.written or "w" in library.rights or not library.resident:
            continue
        size = library.end - library.start
        if libc.madvise(library.start, size, MADV_DONTNEED) == 0:
            gone += library.resident
    return gone
