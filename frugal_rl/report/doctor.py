"""What this machine and installation offer a run, and what to do where something is odd."""

from __future__ import annotations

import json
import os
import platform
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import psutil
from rich.table import Table

from frugal_rl import remembered
from frugal_rl.doing import doing
from frugal_rl.errors import DiskError
from frugal_rl.invocation import installing
from frugal_rl.memory.machine import find_limit, has_accelerator, usable_cores
from frugal_rl.memory.part import human
from frugal_rl.report.speech import Mode, speaking
from frugal_rl.report.terminal import show
from frugal_rl.run.preflight import has_display, writable

LIBRARIES = ("torch", "stable-baselines3", "gymnasium", "numba", "numpy", "hydra-core", "wandb")
EXTRAS = {
    "contrib": ("sb3_contrib", "algo=qr_dqn, tqc, crossq"),
    "play": ("pygame", "windows to play in"),
    "viz": ("pyvista", "mines in three dimensions, reports on W&B"),
    "atari": ("ale_py", "Atari's games"),
    "offline": ("minari", "Minari's data sets"),
    "hpo": ("optuna", "searches"),
    "slurm": ("submitit", "clusters"),
    "ray": ("ray", "launch=ray"),
    "profile": ("memray", "memory by line, TensorBoard"),
    "docs": ("sphinx", "these pages as a site"),
}
"""Extras of the package: a module that each brings, and what it is for."""
LEAST_SHARED_MEMORY = 256 << 20
"""`vec=shared_memory` keeps rows there; containers often offer 64 MiB."""
LEAST_OPEN_FILES = 1024
PACKAGES = ("frugal_rl", "nclone", "npp_rl", "mine_rl_npv", "fighting")


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, what was found, and what to do where it is odd."""

    what: str
    found: str
    remedy: str = ""


def report_doctor(arguments: list[str]) -> None:
    """Print all findings as a table, what is odd alone (`--quiet`), or as JSON (`--json`).

    Raises:
        SystemExit: another word was typed.
    """
    if {"--help", "-h"} & set(arguments):
        print("usage: frugal-rl doctor [--json | --quiet]: --quiet shows what needs to be mended.")
        return
    unknown = [word for word in arguments if word not in ("--json", "--quiet")]
    if unknown:
        sys.exit(f"doctor takes --json or --quiet, not {unknown[0]}.")
    as_json = "--json" in arguments
    with speaking(Mode.json if as_json else Mode.people) as out, doing("looking around"):
        findings = list(examine())
        if as_json:
            found = {"findings": [asdict(finding) for finding in findings]}
            out.write(json.dumps(found, indent=2) + "\n")
        else:
            show(table_of(findings, odd="--quiet" in arguments))


def table_of(findings: list[Finding], odd: bool) -> Table:
    """The findings as a table; `odd` keeps those that need something to be done."""
    table = Table()
    for name in ("what", "found", "what to do"):
        table.add_column(name, overflow="fold")
    for finding in findings:
        if finding.remedy or not odd:
            table.add_row(finding.what, finding.found, finding.remedy)
    return table


def examine() -> Iterator[Finding]:
    """All findings; imports no heavy library."""
    yield Finding("Python", f"{platform.python_version()} ({sys.executable})")
    for name in LIBRARIES:
        yield _library(name)
    for extra, (module, purpose) in EXTRAS.items():
        there = find_spec(module) is not None
        found = "installed" if there else f"not installed: {purpose}"
        yield Finding(f"extra {extra}", found, "" if there else installing(extra))
    yield from _memory()
    yield from _processor()
    yield _accelerator()
    yield _kernels()
    yield from _folders()


def _library(name: str) -> Finding:
    try:
        return Finding(name, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding(name, "missing", installing())


def _memory() -> Iterator[Finding]:
    limit = find_limit()
    little = "libraries alone take 0.5 GiB: ask for more" if limit.ram_bytes < 1 << 30 else ""
    yield Finding("memory", f"{human(limit.ram_bytes)} ({limit.ram_source})", little)
    free = min(limit.free_ram_bytes, limit.ram_bytes)
    busy = "close other programs, or plan with memory.budget_gib=" if free < 2 << 30 else ""
    yield Finding("free memory", human(free), busy)
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    limited = space != resource.RLIM_INFINITY
    yield Finding(
        "address space (ulimit -v)",
        human(space) if limited else "unlimited",
        "ulimit -v unlimited: libraries reserve more than they use" if limited else "",
    )
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    more = f"ulimit -n {most}" if most > files else "ask who runs this machine for more"
    yield Finding("open files (ulimit -n)", f"{files:,}", more if files < LEAST_OPEN_FILES else "")
    if Path("/dev/shm").is_dir():
        total = shutil.disk_usage("/dev/shm").total
        small = "enlarge it (docker: --shm-size=1g), or use vec=batch or vec=threads"
        shut = (
            "" if os.access("/dev/shm", os.W_OK) else "not writable: use vec=batch or vec=threads"
        )
        small = small if total < LEAST_SHARED_MEMORY else ""
        yield Finding("/dev/shm", human(total), shut or small)


def _processor() -> Iterator[Finding]:
    usable, every = usable_cores(), psutil.cpu_count() or 1
    yield Finding("cores", f"{usable} of {every} usable")
    load = psutil.getloadavg()[0]
    busy = "other programs run: timings will be off" if load > usable else ""
    yield Finding("load", f"{load:.1f}", busy)
    threads = os.environ.get("OMP_NUM_THREADS", "")
    clash = "unset OMP_NUM_THREADS, or use hardware.threads=" if threads not in ("", "1") else ""
    yield Finding("OMP_NUM_THREADS", threads or "not set", clash)


def _accelerator() -> Finding:
    if not has_accelerator("auto"):
        return Finding("accelerator", "none; runs on the processor")
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("accelerator", f"the driver does not answer: {error}", "run nvidia-smi")
    return Finding("accelerator", done.stdout.strip().replace("\n", "; "))


def _kernels() -> Finding:
    """Compiled kernels lie beside the code that they come from."""
    specs = [find_spec(name) for name in PACKAGES]
    folders = [Path(p) for s in specs if s for p in s.submodule_search_locations or ()]
    files = sum(1 for folder in folders for _ in folder.rglob("*.nbc"))
    cold = "the first run of each environment compiles for a minute or two" if not files else ""
    return Finding("compiled kernels", f"{files:,}", cold)


def _measurements() -> Finding:
    """What was measured once and is asked for again."""
    try:
        kept = remembered.folder()
    except OSError as error:
        return Finding("measurements kept", "none", f"set HOME ({error})")
    held = sum(f.stat().st_size for f in kept.rglob("*") if f.is_file())
    again = "set HOME to a folder that can be written: every plan measures anew"
    return Finding("measurements kept", f"{human(held)} in {kept}", _shut(kept, again))


def _shut(place: Path, remedy: str) -> str:
    """The remedy where a folder cannot be written to."""
    try:
        writable(place, "")
    except DiskError:
        return remedy
    return ""


def _folders() -> Iterator[Finding]:
    free = shutil.disk_usage(".").free
    full = "free some space" if free < 2 << 30 else ""
    shut = _shut(Path("runs"), "nothing can be written here: change the folder, or hydra.run.dir=")
    yield Finding("disk here", f"{human(free)} free", shut or full)
    yield _measurements()
    mode = os.environ.get("WANDB_MODE", "")
    forced = "unset WANDB_MODE: tracking.wandb= says the same per run" if mode else ""
    yield Finding("WANDB_MODE", mode or "not set", forced)
    display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or ""
    shown = has_display(os.environ)
    filmed = "" if shown else "play needs a window; film instead with video=film.mp4"
    nobody = f"{display}, which leads nowhere" if display else "none"
    yield Finding("display", (display or "any") if shown else nobody, filmed)
