"""What a process tree holds at this moment, on Linux read from /proc.

Summed RSS counts shared pages once per process. Here anonymous and shared-memory pages are counted
by their proportional share (PSS), and the pages of mapped files (libraries) once per program: that
is the tree's PSS on a machine where nothing else runs, whatever the neighbours are doing.
"""

from __future__ import annotations

import ctypes
import platform
from dataclasses import dataclass
from pathlib import Path

import psutil

KCMP = {"x86_64": 312, "aarch64": 272} if platform.system() == "Linux" else {}
"""Number of the system call that compares two processes (kcmp(2))."""


@dataclass(frozen=True)
class Usage:
    """Bytes that one process holds.

    `anonymous` and `shared` are proportional shares; `files` are resident pages of mapped files;
    `pss` is what the kernel reports with all sharers, inside the tree and outside; `resident` is
    every page that the process sees.
    """

    program: str
    anonymous: int
    shared: int
    files: int
    pss: int
    resident: int


def of_process(process: psutil.Process) -> Usage | None:
    """What one process holds; None if it has ended or may not be looked at."""
    try:
        program = process.name()
        text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    except (OSError, psutil.Error):
        return _portable(process)
    values = {
        line.split(":")[0]: int(line.split()[1]) * 1024
        for line in text.splitlines()[1:]
        if line.endswith("kB")
    }
    if "Pss_Anon" not in values:
        return _portable(process)
    if not _status(process.pid, "RssAnon"):  # it has ended in between
        return None
    # Both from one reading: what is freed between two would look like files, and count twice.
    files = values["Rss"] - values["Anonymous"] - _status(process.pid, "RssShmem")
    return Usage(
        program,
        anonymous=values["Pss_Anon"],
        shared=values["Pss_Shmem"],
        files=max(0, files),
        pss=values["Pss"],
        resident=values["Rss"],
    )


def of_tree(root: psutil.Process | None = None) -> list[Usage]:
    """What a process and all its descendants hold."""
    root = root or psutil.Process()
    try:
        children = root.children(recursive=True)
    except psutil.Error:
        return []
    processes = [root, *(child for child in children if not _starting(child))]
    return [u for u in map(of_process, processes) if u is not None]


def _starting(child: psutil.Process) -> bool:
    """Whether a child has not begun its program: until then it runs in its parent's memory.

    subprocess starts programs so (vfork); counted, the parent would be there twice.
    """
    try:
        parent = child.parent()
    except psutil.Error:
        return True
    return parent is not None and _same_memory(parent.pid, child.pid)


def _same_memory(first: int, second: int) -> bool:
    """Whether two processes have one address space (kcmp(2), KCMP_VM); False where unknown."""
    number = KCMP.get(platform.machine())
    return number is not None and ctypes.CDLL(None).syscall(number, first, second, 1, 0, 0) == 0


def held_bytes(tree: list[Usage]) -> int:
    """Bytes of a tree: shares of anonymous and shared pages, files once per program."""
    files: dict[str, int] = {}
    for usage in tree:
        files[usage.program] = max(files.get(usage.program, 0), usage.files)
    return sum(u.anonymous + u.shared for u in tree) + sum(files.values())


def reset_peak() -> bool:
    """Forget this process's peak; False where the kernel does not offer it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def resident_bytes() -> int:
    """Resident bytes of this process; 10 microseconds."""
    return int(psutil.Process().memory_info().rss)


def anonymous_bytes() -> int:
    """Anonymous resident bytes of this process: what it has allocated and touched."""
    return _status("self", "RssAnon") or resident_bytes()


def peak_resident_bytes() -> int:
    """Peak resident bytes of this process since `reset_peak`, exact, without sampling."""
    peak = _status("self", "VmHWM")
    return peak or resident_bytes()


def _status(pid: int | str, key: str) -> int:
    """One entry of /proc/<pid>/status in bytes; 0 where it is missing."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    return 0


def _portable(process: psutil.Process) -> Usage | None:
    """Without /proc: unique memory where it is offered, else resident memory."""
    try:
        full = process.memory_full_info()
        held = int(getattr(full, "pss", 0) or getattr(full, "uss", 0) or full.rss)
        return Usage(process.name(), held, 0, 0, held, held)
    except psutil.Error:
        return None
