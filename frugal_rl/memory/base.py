"""A bare process: interpreter, libraries, one small environment, the tracker beside it.

Measured once per kind of installation in a process of its own, and remembered in the user's cache
folder. The arithmetic that refuses a hopeless run uses a constant instead and imports nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from frugal_rl.memory.machine import has_accelerator
from frugal_rl.memory.part import Confidence, Part
from frugal_rl.run import RunConfig

MIB = 1 << 20
TYPICAL_BYTES = 300 * MIB
"""CPython 3.11 with torch 2.13 (CPU), stable-baselines3 2.9, numba 0.68, hydra 1.3, wandb 0.31."""
TYPICAL_TRACKER_BYTES = 40 * MIB
"""wandb 0.31's service process, offline."""
CONTEXT_BYTES = 500 * MIB
"""A CUDA context; between 0.3 and 0.6 GiB by device and driver."""
TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class Base:
    """Bytes of a process that is about to train, and of the tracker's process beside it."""

    process_bytes: int
    tracker_bytes: int
    confidence: Confidence
    device: bool = False

    @property
    def parts(self) -> tuple[Part, ...]:
        """As lines of the plan."""
        parts = [
            Part(
                "interpreter and libraries", "a process of its own that imports the same",
                self.process_bytes, CONTEXT_BYTES if self.device else 0,
                confidence=self.confidence,
            )
        ]  # fmt: skip
        if self.tracker_bytes:
            parts.append(
                Part("tracker", "W&B's service process", self.tracker_bytes,
                     confidence=Confidence.calibrated)
            )  # fmt: skip
        return tuple(parts)


def arithmetic_base(run: RunConfig) -> Base:
    """What was measured before on this machine, else a typical installation; imports nothing."""
    process = remembered(run) or TYPICAL_BYTES
    return Base(process, _tracker(run), Confidence.calibrated, has_accelerator(run.hardware.device))


def measured_base(run: RunConfig) -> Base:
    """What a process holds that imports the same and steps two environments; remembered."""
    process = remembered(run)
    if process is None:
        process = _measure(run)
        _remember(run, process)
    return Base(process, _tracker(run), Confidence.probed, has_accelerator(run.hardware.device))


def _tracker(run: RunConfig) -> int:
    return 0 if run.tracking.wandb == "disabled" else TYPICAL_TRACKER_BYTES


def cache_folder() -> Path:
    """Where measurements are remembered between runs."""
    return Path.home() / ".cache" / "frugal-rl"


def remembered(run: RunConfig) -> int | None:
    """The bytes that an earlier measurement of this installation found."""
    try:
        stored = json.loads((cache_folder() / f"base_{_key(run)}.json").read_text())
        return int(stored["bytes"])
    except (OSError, ValueError, KeyError):
        return None


def _remember(run: RunConfig, count: int) -> None:
    """A cache that cannot be written costs a second measurement, nothing else."""
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=cache_folder(), delete=False) as file:
            json.dump({"bytes": count}, file)
        os.replace(file.name, cache_folder() / f"base_{_key(run)}.json")
    except OSError:
        return


def _key(run: RunConfig) -> str:
    """What the bytes of a bare process depend on: versions, and the code that it imports."""
    versions = [f"{n}={_version(n)}" for n in ("torch", "stable-baselines3", "numba", "wandb")]
    kinds = [f"{type(x).__module__}.{type(x).__qualname__}" for x in (run.env, run.agent, run.vec)]
    words = [sys.version, *versions, *kinds, run.tracking.wandb, run.hardware.device, _sources(run)]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]


def _sources(run: RunConfig) -> str:
    """Newest change of the environment's package and of ours: new code is measured anew."""
    packages = {__name__.split(".")[0], type(run.env).__module__.split(".")[0]}
    folders = [Path(str(sys.modules[p].__file__)).parent for p in packages if p in sys.modules]
    return str(max((f.stat().st_mtime_ns for d in folders for f in d.rglob("*.py")), default=0))


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "none"


def _measure(run: RunConfig) -> int:
    """Bytes of a fresh process, its two environments not counted."""
    request: dict[str, Any] = {"values": dict(run.resolved), "plugins": run.resolved.get("plugins")}
    done = subprocess.run(
        [sys.executable, "-m", "frugal_rl.memory.bare_process"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        return TYPICAL_BYTES
    return int(json.loads(done.stdout.splitlines()[-1])["bytes"])
