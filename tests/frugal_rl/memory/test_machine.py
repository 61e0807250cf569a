"""The limit is the smallest of budget, pretended machine, control group and physical memory."""

import subprocess
import sys
from pathlib import Path

import psutil

from frugal_rl.memory.machine import GIB, cgroup_limit, find_limit
from frugal_rl.memory.part import human


def group(folder: Path, controllers: str, path: str, files: dict[str, str]) -> int | None:
    for name, text in files.items():
        at = folder / "sys" / name
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text)
    (folder / "cgroup").write_text(f"0:{controllers}:{path}\n")
    return cgroup_limit(folder / "sys", folder / "cgroup")


def test_the_tightest_group_above_a_process_counts_in_version_two(tmp_path):
    files = {"memory.max": "max", "a/memory.max": "3000", "a/b/memory.max": "5000"}

    assert group(tmp_path, "", "/a/b", files) == 3000


def test_version_one_is_read_too(tmp_path):
    files = {"memory/memory.limit_in_bytes": "9223372036854771712",
             "memory/job/memory.limit_in_bytes": "7000"}  # fmt: skip

    assert group(tmp_path, "memory", "/job", files) == 7000
    assert group(tmp_path, "cpuset,memory", "/job", files) == 7000
    assert group(tmp_path, "cpuset,memory_but_another", "/job", files) is None


def test_inside_a_container_the_path_may_not_exist_and_the_root_limit_counts(tmp_path):
    assert group(tmp_path, "", "/not/there", {"memory.max": "4096"}) == 4096


def test_without_a_limit_there_is_none(tmp_path):
    assert group(tmp_path, "", "/", {"memory.max": "max"}) is None
    assert cgroup_limit(tmp_path, tmp_path / "missing") is None


def test_budget_and_pretended_machine_beat_the_real_one():
    assert find_limit(ram_gib=1000).ram_bytes == 1000 * GIB
    assert find_limit(budget_gib=2, ram_gib=1000).ram_source == "memory.budget_gib=2"
    assert find_limit().ram_bytes <= psutil.virtual_memory().total
    assert find_limit(vram_gib=16, device="cpu").vram_bytes == 16 * GIB
    assert find_limit(device="cpu").vram_bytes == 0


def test_bytes_are_said_in_the_unit_that_suits_them():
    assert [human(n) for n in (12, 1536, 5 << 20, 3 << 30, 100 << 40)] == [
        "12 B", "1.5 KiB", "5.0 MiB", "3.0 GiB", "100.0 TiB",
    ]  # fmt: skip


def test_the_address_space_limit_is_a_budget():
    code = (
        "import resource\n"
        "hard = resource.getrlimit(resource.RLIMIT_AS)[1]\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, hard))\n"
        "from frugal_rl.memory.machine import find_limit\n"
        "found = find_limit()\n"
        "print(found.ram_bytes, found.ram_source)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    source = "address space (ulimit -v, less 1 GiB that libraries map)\n"
    assert done.stdout.split(maxsplit=1) == [str(2 << 30), source]
