"""The machine that a run may fill: memory, device memory and cores, with where they were read."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from frugal_rl.memory.part import human

GIB = 1 << 30
UNLIMITED = 1 << 60
"""Control groups without a limit report a number near 2^63."""
MAPPED_BYTES = 1 << 30
"""Address space beyond what is held, for files of libraries, stacks and arenas of threads: 980 MiB
of a run of the toy on two threads."""
BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16", "svebf16"}
"""What /proc/cpuinfo says of processors with units for bf16 (x86: AVX512-BF16, AMX; Arm)."""
FIRST_WITH_BF16 = 8.0
"""Compute capability of the first CUDA devices with units for bf16 (Ampere)."""


@dataclass(frozen=True)
class Limit:
    """What a run may hold, in bytes, and the words that say why.

    `vram_bytes` is 0 where there is no accelerator.
    """

    ram_bytes: int
    ram_source: str
    vram_bytes: int = 0
    vram_source: str = "no accelerator"
    cores: int = 1
    free_ram_bytes: int = 0
    """What is free right now; less than the limit where other programs run."""


class PartGib(float):
    """One process's part of what several share evenly; `source` says of what."""

    source: str

    @classmethod
    def of(cls, limit: Limit, processes: int) -> PartGib:
        """An even part of a limit."""
        part = cls(limit.ram_bytes / processes / GIB)
        part.source = f"{limit.ram_source} for {processes} processes"
        return part


def find_limit(
    budget_gib: float | None = None,
    ram_gib: float | None = None,
    vram_gib: float | None = None,
    cores: int | None = None,
    device: str = "auto",
) -> Limit:
    """The smallest of budget, pretended machine, control group, ulimit and physical memory."""
    physical = psutil.virtual_memory()
    options = [(int(physical.total), "physical memory")]
    group = cgroup_limit()
    if group is not None:
        options.append((group, "control group"))
    addresses = address_limit()
    if addresses is not None:
        source = f"address space (ulimit -v, less {MAPPED_BYTES / GIB:g} GiB that libraries map)"
        options.append((max(0, addresses - MAPPED_BYTES), source))
    if ram_gib is not None:
        options = [(int(ram_gib * GIB), f"hardware.ram_gib={ram_gib:g}")]
    free = options[0][0] if ram_gib is not None else int(physical.available)
    if budget_gib is not None:
        part = budget_gib.source if isinstance(budget_gib, PartGib) else ""
        options.append((int(budget_gib * GIB), part or f"memory.budget_gib={budget_gib:g}"))
    ram, source = min(options)
    vram, vram_source = _device_memory(vram_gib, device)
    return Limit(ram, source, vram, vram_source, cores or usable_cores(), free)


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def address_limit() -> int | None:
    """Bytes that `ulimit -v` leaves this process; None without a limit.

    What is mapped counts, not what is held: see `MAPPED_BYTES`.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY or soft >= UNLIMITED else int(soft)


def cgroup_limit(
    root: Path = Path("/sys/fs/cgroup"), of: Path = Path("/proc/self/cgroup")
) -> int | None:
    """The tightest memory limit of this process's control groups, v1 or v2; None without one."""
    try:
        lines = of.read_text().splitlines()
    except OSError:
        return None
    limits = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            limits += _limits_above(root, path, "memory.max")
            limits += _limits_above(root / "unified", path, "memory.max")
        elif "memory" in controllers.split(","):
            limits += _limits_above(root / "memory", path, "memory.limit_in_bytes")
    return min(limits, default=None)


def _limits_above(base: Path, path: str, name: str) -> list[int]:
    """Limits of a group and all its parents; inside a container the path may start at the root."""
    folders = [base]
    for part in Path(path.lstrip("/")).parts:
        folders.append(folders[-1] / part)
    found = []
    for folder in folders:
        try:
            text = (folder / name).read_text().strip()
        except OSError:
            continue
        if text.isdigit() and int(text) < UNLIMITED:
            found.append(int(text))
    return found


def has_accelerator(device: str) -> bool:
    """Whether the run computes on an accelerator, found without importing torch."""
    if device.startswith("cuda"):
        return True
    return device == "auto" and bool(_accelerators())


def device_here(device: str) -> str:
    """Where a measurement runs: on the CPU if a GPU is planned for that this machine lacks."""
    return "cpu" if device.startswith("cuda") and not has_driver() else device


def has_driver() -> bool:
    """Whether a driver of CUDA devices is there: NVIDIA's own, or that of Windows below WSL2."""
    return any(Path(sign).exists() for sign in ("/proc/driver/nvidia/version", "/dev/dxg"))


def has_bf16(device: str, cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the run's arithmetic has units for bf16: the accelerator's, else the processor's.

    Without them bf16 takes a processor about 12 times as long as float32.
    """
    if has_accelerator(device):
        capable = [float(line) for line in _ask_driver("compute_cap")]
        return bool(capable) and capable[0] >= FIRST_WITH_BF16
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return bool(BF16_FLAGS & set(flags.partition(":")[2].split()))


def machine_words(device: str, cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The machine that a run is on, for its report: cores, processor, memory, accelerator."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        lines = []
    model = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")
    limit = find_limit(device=device)
    words = f"{limit.cores} cores of {model or platform.machine()}, {human(limit.ram_bytes)}"
    return ", ".join([words, *(_ask_driver("name") if has_accelerator(device) else ())])


def _device_memory(vram_gib: float | None, device: str) -> tuple[int, str]:
    if vram_gib is not None:
        return int(vram_gib * GIB), f"hardware.vram_gib={vram_gib:g}"
    if device == "cpu":
        return 0, "hardware.device=cpu"
    sizes = _accelerators()
    return (sizes[0], "accelerator 0") if sizes else (0, "no accelerator")


def _accelerators() -> list[int]:
    """Bytes of each CUDA device, as the driver reports them; empty without a driver."""
    if not has_driver():
        return []
    return [int(float(line)) << 20 for line in _ask_driver("memory.total")]


def _ask_driver(what: str) -> list[str]:
    """One value per device, in the driver's own order; empty where it does not answer."""
    command = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]
