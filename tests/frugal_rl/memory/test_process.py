"""What a run does to its own process: pages of libraries go back, and nothing else does."""

import ctypes
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from frugal_rl.memory import process
from frugal_rl.memory.choices import Allocator, LibraryPages
from frugal_rl.memory.libraries import MappedLibrary, library_bytes
from frugal_rl.memory.part import Phase
from frugal_rl.memory.process import give_back_pages, settle_process, settled
from frugal_rl.memory.profile import MemoryProfile

GIVEN_BACK = MemoryProfile()
KEPT = replace(GIVEN_BACK, library_pages=LibraryPages.kept)
MIB = 1 << 20


def test_pages_of_libraries_go_back_and_come_again_when_they_are_needed():
    product = np.ones((64, 64)) @ np.ones((64, 64))
    before = sum(library_bytes().values())

    gone = give_back_pages()
    left = sum(library_bytes().values())

    assert gone > before // 2
    stayed = max(before - gone, 0)  # looking touches pages too, and those go as well
    assert left < stayed + 8 * MIB  # what looking needs is there again
    assert np.array_equal(np.ones((64, 64)) @ np.ones((64, 64)), product)


def test_what_was_written_or_can_be_and_what_is_not_there_is_left_alone(monkeypatch):
    asked = []
    libc = SimpleNamespace(madvise=_Function(asked))
    monkeypatch.setattr(process.ctypes, "CDLL", lambda name: libc)
    ranges = [
        MappedLibrary(0x1000, 0x3000, "r-xp", "/a.so", 8192, 0),
        MappedLibrary(0x4000, 0x5000, "r-xp", "/a.so", 4096, 4096),  # a debugger's break
        MappedLibrary(0x5000, 0x6000, "rw-p", "/a.so", 4096, 0),
        MappedLibrary(0x6000, 0x7000, "r--p", "/a.so", 0, 0),
        MappedLibrary(0x8000, 0x9000, "r--p", "/b.so.1", 4096, 0),
    ]
    monkeypatch.setattr(process, "mapped_libraries", lambda: ranges)

    assert give_back_pages() == 8192 + 4096
    assert asked == [(0x1000, 0x2000, 4), (0x8000, 0x1000, 4)]
    assert libc.madvise.argtypes[0] is ctypes.c_void_p  # an address is longer than an int


def test_pages_that_the_kernel_does_not_take_are_not_counted(monkeypatch):
    refusing = SimpleNamespace(madvise=_Function([], answer=-1))
    monkeypatch.setattr(process.ctypes, "CDLL", lambda name: refusing)

    assert give_back_pages() == 0


def test_other_systems_keep_their_pages(monkeypatch):
    monkeypatch.setattr(process.platform, "system", lambda: "Darwin")
    monkeypatch.setattr(process, "mapped_libraries", lambda: pytest.fail("read"))

    assert give_back_pages() == 0


@pytest.mark.parametrize("allocator", list(Allocator))
@pytest.mark.parametrize("pages", list(LibraryPages))
def test_the_start_of_a_run_reads_both_switches(allocator, pages, monkeypatch):
    done = []
    monkeypatch.setattr(process, "pin_allocator", lambda: done.append("pinned"))
    monkeypatch.setattr(process, "give_back_pages", lambda: done.append("given back"))
    settle_process(replace(GIVEN_BACK, allocator=allocator, library_pages=pages))

    pinned = ["pinned"] if allocator is Allocator.pinned else []
    assert done == pinned + (["given back"] if pages is LibraryPages.given_back else [])


def test_pages_go_back_before_all_phases_and_behind_the_first_of_each(monkeypatch):
    happened: list[str] = []
    monkeypatch.setattr(process, "give_back_pages", lambda: happened.append("back"))

    @contextmanager
    def phase(which):
        happened.append(f"{which.value} begins")
        try:
            yield
        finally:
            happened.append(f"{which.value} ends")

    watched = settled(GIVEN_BACK, phase)
    for which in (Phase.rollout, Phase.update, Phase.rollout):
        with watched(which):
            happened.append("inside")
    with pytest.raises(ValueError, match="broken"), watched(Phase.checkpoint):
        raise ValueError("broken")

    first = ["back", "rollout begins", "inside", "rollout ends", "back"]
    second = ["update begins", "inside", "update ends", "back"]
    failed = ["checkpoint begins", "checkpoint ends", "back"]
    assert happened == [*first, *second, *first[1:-1], *failed]
    assert settled(KEPT, phase) is phase


class _Function:
    """A C function that notes what it is asked."""

    argtypes: list[object]

    def __init__(self, asked: list[tuple[int, ...]], answer: int = 0) -> None:
        self.asked, self.answer = asked, answer

    def __call__(self, *given: int) -> int:
        self.asked.append(given)
        return self.answer
