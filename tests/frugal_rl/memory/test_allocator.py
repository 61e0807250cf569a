"""What the C allocator keeps, and where there is none of its kind."""

import platform
import subprocess
import sys

import pytest

from frugal_rl.memory import allocator
from frugal_rl.memory.allocator import (
    DYNAMIC_MOST_BYTES,
    give_back,
    kept_free_bytes,
    pin_allocator,
    settle,
)

MAPPED_BLOCKS = """
import ctypes
from frugal_rl.memory.allocator import pin_allocator, settle

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd".split()]
    _fields_ += [(f"more{k}", ctypes.c_size_t) for k in range(5)]

libc.mallinfo2.restype = Info

def mapped(mebibytes):
    before = libc.mallinfo2().hblks
    assert libc.malloc(mebibytes << 20)
    return libc.mallinfo2().hblks - before

pin_allocator()
print(mapped(2), mapped(5))
settle()
print(mapped(2), mapped(5))
"""


class Libc:
    """Takes down what it is asked."""

    def __init__(self, trims=1, takes=1):
        self.trims, self.takes, self.asked = trims, takes, []

    def malloc_trim(self, pad):
        self.asked.append(("trim", pad))
        return self.trims

    def mallopt(self, parameter, value):
        self.asked.append((parameter, value))
        return self.takes


@pytest.fixture
def libc(monkeypatch):
    for name in [n for n in allocator.os.environ if n.startswith("MALLOC_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    monkeypatch.delenv(allocator.HUGE_PAGES, raising=False)
    found = Libc()
    monkeypatch.setattr(allocator, "_glibc", lambda: found)
    return found


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        ([], 0),
        ([7, 1000, 30], 2000),
        ([DYNAMIC_MOST_BYTES], 2 * DYNAMIC_MOST_BYTES),
        ([DYNAMIC_MOST_BYTES + 1], 0),
        ([DYNAMIC_MOST_BYTES + 1, 5], 10),
    ],
)
def test_the_heap_keeps_twice_the_largest_block_that_raised_its_threshold(libc, sizes, kept):
    assert kept_free_bytes(iter(sizes)) == kept


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("MALLOC_TRIM_THRESHOLD_", "1", 0),
        ("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=9", 0),
        ("GLIBC_TUNABLES", "glibc.rtld.nns=9", 200),
    ],
)
def test_thresholds_that_were_set_from_outside_do_not_move(libc, monkeypatch, name, value, kept):
    monkeypatch.setenv(name, value)
    assert kept_free_bytes([100]) == kept


def test_without_glibc_nothing_is_kept_pinned_or_given_back(libc, monkeypatch):
    monkeypatch.setattr(allocator, "_glibc", lambda: None)
    assert kept_free_bytes([100]) == 0
    assert pin_allocator() is False
    assert give_back() is False
    assert settle() is False


def test_pinning_sets_three_thresholds_and_large_pages(libc):
    assert pin_allocator() is True
    assert libc.asked == [(-3, 1 << 20), (-1, 16 << 20), (-2, 64 << 10)]
    assert allocator.os.environ[allocator.HUGE_PAGES] == "1"
    libc.takes = 0
    assert pin_allocator() is False


def test_giving_back_keeps_nothing_and_says_whether_it_could(libc):
    assert give_back() is True
    libc.trims = 0
    assert give_back() is False
    assert libc.asked == [("trim", 0)] * 2


def test_settling_raises_the_threshold_and_gives_back(libc):
    assert settle() is True
    assert libc.asked == [(-3, 4 << 20), ("trim", 0)]
    libc.takes = 0
    assert settle() is False


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc's allocator")
def test_activations_are_mapped_until_the_heap_is_settled():
    done = subprocess.run(
        [sys.executable, "-c", MAPPED_BLOCKS], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "1", "0", "1"]


@pytest.mark.parametrize(("system", "library"), [("Darwin", "glibc"), ("Linux", "musl")])
def test_other_systems_have_none(monkeypatch, system, library):
    monkeypatch.setattr(allocator.platform, "system", lambda: system)
    monkeypatch.setattr(allocator.platform, "libc_ver", lambda: (library, "1"))
    assert allocator._glibc() is None
