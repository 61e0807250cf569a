"""Resident and written pages of libraries, beside what the kernel says of whole ranges."""

import mmap
import platform
from pathlib import Path

import numpy as np
import pytest

from frugal_rl.memory import libraries
from frugal_rl.memory.libraries import MappedLibrary, library_bytes, mapped_libraries

PAGE = mmap.PAGESIZE
FILE, OWN, OUT = 1 << 63 | 1 << 61, 1 << 63, 1 << 62
"""Entries of a page: the file's, this process's, one that was swapped out."""
MAPS = """\
1000-3000 r-xp 00000000 08:01 11   /lib/my folder/a.so.6
5000-6000 rw-p 00000000 00:00 0
6000-7000 rw-p 00002000 08:01 11   /lib/my folder/a.so.6
7000-8000 r--p 00000000 08:01 12   /lib/words.txt
9000-c000 r--p 00000000 08:01 13   /lib/b.so
"""
linux = pytest.mark.skipif(platform.system() != "Linux", reason="/proc is Linux's")


def from_here(folder):
    """Opens files of /proc out of a folder."""
    return lambda name, *more, **named: open(folder / Path(name).name, *more, **named)


@pytest.fixture
def told(tmp_path, monkeypatch):
    """The two files of a made-up process, its pages 4 KiB."""
    entries = np.zeros(0xC, np.uint64)
    entries[[1, 2, 6, 9, 10]] = FILE, OWN, OUT, FILE, FILE
    entries[7] = FILE  # of no library
    (tmp_path / "maps").write_text(MAPS)
    (tmp_path / "pagemap").write_bytes(entries.tobytes())
    monkeypatch.setattr(libraries, "PAGESIZE", 0x1000)
    monkeypatch.setattr(libraries, "open", from_here(tmp_path), raising=False)
    return tmp_path


def test_each_range_of_a_library_has_its_pages(told):
    assert mapped_libraries() == [
        MappedLibrary(0x1000, 0x3000, "r-xp", "/lib/my folder/a.so.6", 0x1000, 0x1000),
        MappedLibrary(0x6000, 0x7000, "rw-p", "/lib/my folder/a.so.6", 0, 0x1000),
        MappedLibrary(0x9000, 0xC000, "r--p", "/lib/b.so", 0x2000, 0),
    ]


@pytest.mark.parametrize("missing", ["maps", "pagemap"])
def test_where_the_kernel_does_not_tell_there_are_none(told, missing):
    (told / missing).unlink()

    assert mapped_libraries() == []
    assert library_bytes() == {}


def test_where_it_tells_of_some_pages_only_there_are_none(told):
    whole = (told / "pagemap").read_bytes()
    (told / "pagemap").write_bytes(whole[:-8])

    assert mapped_libraries() == []


def test_a_name_that_is_no_text_is_read_all_the_same(told):
    text = (told / "maps").read_bytes()
    (told / "maps").write_bytes(text.replace(b"words", b"w\xf6rds").replace(b"b.so", b"\xff.so"))

    assert [library.path for library in mapped_libraries()][
        -1
    ] == "/lib/\N{REPLACEMENT CHARACTER}.so"


def test_a_process_without_libraries_has_none(told):
    (told / "maps").write_text("5000-6000 rw-p 00000000 00:00 0\n")

    assert mapped_libraries() == []


def test_bytes_of_a_library_are_those_that_it_shares_with_its_file(monkeypatch):
    ranges = [
        MappedLibrary(0x1000, 0x3000, "r-xp", "/a.so", 4096, 4096),
        MappedLibrary(0x4000, 0x5000, "rw-p", "/a.so", 4096, 0),
        MappedLibrary(0x6000, 0x7000, "r--p", "/b.so", 0, 0),
    ]
    monkeypatch.setattr(libraries, "mapped_libraries", lambda: ranges)

    assert library_bytes() == {"/a.so": 8192, "/b.so": 0}


@linux
def test_they_are_the_kernels_own_sums_of_each_range():
    def sums():
        """Rss - Anonymous, and Anonymous, of each range, in bytes, from /proc/self/smaps."""
        found, head = {}, ()
        for line in Path("/proc/self/smaps").read_text().splitlines():
            words = line.split(maxsplit=5)
            if not words[0].endswith(":"):
                head = (*words[:2], words[5] if len(words) == 6 else "")
            elif words[0] in ("Rss:", "Anonymous:"):
                found.setdefault(head, []).append(1024 * int(words[1]))
        return {
            key: (resident - own, own) for key, (resident, own) in found.items() if ".so" in key[2]
        }

    def ours():
        return {
            (f"{found.start:08x}-{found.end:08x}", found.rights, found.path): (
                found.resident,
                found.written,
            )
            for found in mapped_libraries()
        }

    assert any(ours() == sums() for _ in range(5))  # reading touches pages, and so do other threads
    assert sum(resident for resident, _ in ours().values()) > 1 << 20


@linux
def test_a_page_that_is_written_into_is_this_processs_own(tmp_path):
    path = tmp_path / "three pages.so"
    path.write_bytes(bytes(3 * PAGE))
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 3 * PAGE, access=mmap.ACCESS_COPY)

    def pages():
        [found] = [library for library in mapped_libraries() if library.path == str(path)]
        return found.resident // PAGE, found.written // PAGE

    assert pages() == (0, 0)
    mapped[0] = 1
    resident, written = pages()
    assert written == 1
    assert resident <= 2  # neighbours may come with it
