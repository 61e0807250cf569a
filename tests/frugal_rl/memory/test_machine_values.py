"""Limits, devices and cores, from numbers that the test has given to a machine."""

import resource
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from frugal_rl.memory import machine
from frugal_rl.memory.machine import (
    GIB,
    Limit,
    address_limit,
    find_limit,
    has_accelerator,
    has_bf16,
    usable_cores,
)

MIB = 1 << 20


@pytest.fixture
def bare(monkeypatch):
    """A machine of 8 GiB, 3 of them free, five cores, no group, no ulimit, no device."""
    memory = SimpleNamespace(total=8 * GIB, available=3 * GIB)
    monkeypatch.setattr(machine.psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(machine, "usable_cores", lambda: 5)
    monkeypatch.setattr(machine, "cgroup_limit", lambda: None)
    monkeypatch.setattr(machine, "address_limit", lambda: None)
    monkeypatch.setattr(machine, "_accelerators", list)
    return monkeypatch


def test_a_bare_machine_is_its_memory_and_cores(bare):
    assert find_limit() == Limit(8 * GIB, "physical memory", 0, "no accelerator", 5, 3 * GIB)


ADDRESSES = "address space (ulimit -v, less 1 GiB that libraries map)"


@pytest.mark.parametrize(
    ("group", "addresses", "ram", "budget", "limit", "source"),
    [
        (2 * GIB, None, None, None, 2, "control group"),
        (9 * GIB, None, None, None, 8, "physical memory"),
        (None, 2 * GIB, None, None, 1, ADDRESSES),
        (None, GIB // 2, None, None, 0, ADDRESSES),
        (2 * GIB, GIB, 64, None, 64, "hardware.ram_gib=64"),
        (None, None, 64, 0.5, 0.5, "memory.budget_gib=0.5"),
        (None, None, None, 7, 7, "memory.budget_gib=7"),
        (None, None, None, 9, 8, "physical memory"),
    ],
)
def test_the_smallest_limit_counts_and_is_named(group, addresses, ram, budget, limit, source, bare):
    bare.setattr(machine, "cgroup_limit", lambda: group)
    bare.setattr(machine, "address_limit", lambda: addresses)
    found = find_limit(budget, ram)

    assert (found.ram_bytes, found.ram_source) == (limit * GIB, source)
    assert found.free_ram_bytes == (ram or 3) * GIB


@pytest.mark.parametrize(
    ("devices", "vram", "device", "found"),
    [
        ([2 * GIB, GIB], None, "auto", (2 * GIB, "accelerator 0")),
        ([2 * GIB], None, "cpu", (0, "hardware.device=cpu")),
        ([2 * GIB], 0.25, "auto", (GIB // 4, "hardware.vram_gib=0.25")),
        ([], 0.25, "cpu", (GIB // 4, "hardware.vram_gib=0.25")),
        ([], None, "cuda", (0, "no accelerator")),
    ],
)
def test_a_device_has_the_memory_that_is_pretended_else_its_own(devices, vram, device, found, bare):
    bare.setattr(machine, "_accelerators", lambda: devices)
    limit = find_limit(vram_gib=vram, cores=2, device=device)

    assert (limit.vram_bytes, limit.vram_source) == found
    assert limit.cores == 2


@pytest.mark.parametrize(
    ("device", "devices", "has"),
    [("cpu", [GIB], False), ("auto", [GIB], True), ("auto", [], False), ("cuda:1", [], True)],
)
def test_a_run_has_an_accelerator_where_it_names_one_or_one_is_there(device, devices, has, bare):
    bare.setattr(machine, "_accelerators", lambda: devices)

    assert has_accelerator(device) is has


@pytest.mark.parametrize(("answer", "has"), [(["8.0"], True), (["7.5", "9.0"], False), ([], False)])
def test_an_accelerator_computes_in_bf16_from_ampere_on(answer, has, bare):
    asked = []
    bare.setattr(machine, "_ask_driver", lambda what: asked.append(what) or answer)

    assert has_bf16("cuda") is has
    assert asked == ["compute_cap"]


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("flags\t\t: fpu avx512_bf16 sse", True),
        ("model\t: x\nflags : fpu amx_bf16\n", True),
        ("Features : fp asimd svebf16", True),
        ("flags : fpu avx512f", False),
        ("model : bf16", False),
        ("", False),
    ],
)
def test_a_processor_says_in_its_flags_whether_it_computes_in_bf16(text, has, tmp_path, bare):
    (tmp_path / "cpuinfo").write_text(text)

    assert has_bf16("cpu", tmp_path / "cpuinfo") is has
    assert has_bf16("cpu", tmp_path / "missing") is False


def test_the_driver_is_asked_for_plain_numbers(monkeypatch):
    asked = []

    def answer(command, **options):
        asked.append((command, options))
        return SimpleNamespace(stdout=" 40960 \n\n16384\n")

    monkeypatch.setattr(machine.subprocess, "run", answer)
    monkeypatch.setattr(Path, "exists", lambda path: str(path) == "/proc/driver/nvidia/version")

    assert machine._accelerators() == [40960 * MIB, 16384 * MIB]
    ((command, options),) = asked
    assert command == [
        "nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits",
    ]  # fmt: skip
    assert options == {"capture_output": True, "text": True, "timeout": 5, "check": True}
    monkeypatch.setattr(machine.subprocess, "run", lambda *a, **k: 1 / 0)
    monkeypatch.setattr(Path, "exists", lambda path: False)
    assert machine._accelerators() == []


@pytest.mark.parametrize(
    ("sign", "device", "here"),
    [
        ("/proc/driver/nvidia/version", "cuda:1", "cuda:1"),
        ("/dev/dxg", "cuda", "cuda"),
        ("/proc/nothing", "cuda", "cpu"),
        ("/proc/nothing", "auto", "auto"),
    ],
)
def test_a_gpu_is_measured_on_where_its_driver_is_which_nobody_is_asked_for(
    sign, device, here, monkeypatch
):
    monkeypatch.setattr(machine.subprocess, "run", lambda *a, **k: pytest.fail("asked"))
    monkeypatch.setattr(Path, "exists", lambda path: str(path) == sign)

    assert machine.device_here(device) == here


@pytest.mark.parametrize(
    "error", [OSError(), subprocess.TimeoutExpired("x", 5), subprocess.CalledProcessError(9, "x")]
)
def test_a_driver_that_does_not_answer_has_no_device(error, monkeypatch):
    def fail(*command, **options):
        raise error

    monkeypatch.setattr(machine.subprocess, "run", fail)
    monkeypatch.setattr(Path, "exists", lambda path: True)

    assert machine._accelerators() == []


@pytest.mark.parametrize(
    ("soft", "limit"),
    [(resource.RLIM_INFINITY, None), (1 << 60, None), ((1 << 60) - 1, (1 << 60) - 1), (7, 7)],
)
def test_a_ulimit_is_one_below_what_nothing_has(soft, limit, monkeypatch):
    asked = []
    monkeypatch.setattr(machine.resource, "getrlimit", lambda what: asked.append(what) or (soft, 9))

    assert address_limit() == limit
    assert asked == [resource.RLIMIT_AS]


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: {0, 2, 5} if pid == 0 else {})
    assert usable_cores() == 3
    monkeypatch.delattr(machine.os, "sched_getaffinity")
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 7)
    assert usable_cores() == 7
    monkeypatch.setattr(machine.os, "cpu_count", lambda: None)
    assert usable_cores() == 1
