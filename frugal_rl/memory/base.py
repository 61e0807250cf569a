"""A bare training process: interpreter, libraries, loaded kernels, the tracker beside it.

Measured by a tiny run in a process of its own, and remembered in the user's cache folder. The
arithmetic that refuses a hopeless run takes what is remembered, or a constant, and starts nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugal_rl.memory.child import ask_child
from frugal_rl.memory.machine import has_accelerator
from frugal_rl.memory.part import Confidence, Kind, Part, Phase

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

MIB = 1 << 20
TYPICAL_BYTES = 520 * MIB
"""CPython 3.11 with torch 2.13 (CPU), stable-baselines3 2.9, numba 0.68, hydra 1.3, wandb 0.31."""
CONTEXT_BYTES = 500 * MIB
"""A CUDA context; between 0.3 and 0.6 GiB by device and driver."""
TINY = {"num_envs": 4, "n_steps": 4, "batch_size": 8, "total_steps": 48}
"""Three rollouts, so that what happens only once is over."""
TINY_EVALUATION_STEPS = 32
"""Where the run evaluates on its way, so does the tiny one, before its last rollout."""


@dataclass(frozen=True)
class Base:
    """Bytes of the process tree in each phase, without anything that the plan counts by size."""

    by_phase: Mapping[Phase, int]
    confidence: Confidence
    device: bool = False

    @classmethod
    def everywhere(cls, count: int, confidence: Confidence, device: bool = False) -> Base:
        """The same bytes in every phase."""
        return cls(dict.fromkeys(Phase, count), confidence, device)

    @property
    def process_bytes(self) -> int:
        """What is there in every phase."""
        return min(self.by_phase.values())

    @property
    def parts(self) -> list[Part]:
        """As lines of the plan: what is always there, and what a tiny phase held beyond that."""
        how = {
            Confidence.probed: "a tiny run in a process of its own",
            Confidence.calibrated: "a typical installation",
        }
        always = Part(
            "interpreter and libraries",
            how.get(self.confidence, ""),
            self.process_bytes,
            CONTEXT_BYTES if self.device else 0,
            confidence=self.confidence,
            kind=Kind.process,
        )
        beyond = [
            Part(
                f"a tiny {phase.value}",
                "what it held beyond interpreter and libraries",
                count - self.process_bytes,
                confidence=self.confidence,
                phases=frozenset({phase}),
                kind=Kind.process,
            )
            for phase, count in self.by_phase.items()
            if count > self.process_bytes
        ]
        return [always, *beyond]


def tiny(run: RunConfig) -> RunConfig:
    """The same run at the smallest sizes: what is left of its peak is the base."""
    algo: Any = replace(run.algo, **TINY)  # type: ignore[type-var]
    algo = getattr(algo, "tiny", lambda: algo)()
    env: Any = getattr(run.env, "tiny", lambda: run.env)()
    between = TINY_EVALUATION_STEPS if run.evaluation.every_steps else 0
    evaluation = replace(run.evaluation, every_steps=between, episodes=1, num_envs=1)
    mode = "disabled" if run.tracking.wandb == "disabled" else "offline"
    return replace(
        run,
        env=env,
        algo=algo,
        evaluation=evaluation,
        checkpoint_every_steps=0,
        resume=None,
        tracking=replace(run.tracking, wandb=mode),
        memory=replace(run.memory, budget_gib=None),
    )


def arithmetic_base(run: RunConfig) -> Base:
    """A typical installation; starts and imports nothing."""
    device = has_accelerator(run.hardware.device)
    return Base.everywhere(TYPICAL_BYTES, Confidence.calibrated, device)


def measured_peaks(run: RunConfig) -> dict[Phase, int]:
    """The peaks of a tiny run of this kind by phase, measured once and remembered.

    Raises:
        ConfigError: the tiny run failed; carries the last line of what it said.
    """
    peaks = remembered(run)
    if peaks is None:
        answer = _measure(run)
        if answer["compiled"]:  # compiling takes a quarter of a GiB: the second run loads
            answer = _measure(run)
        peaks = answer["bytes"]
        _remember(run, peaks)
    most = max(peaks.values())
    return {phase: int(peaks.get(phase.value, most)) for phase in Phase}


def cache_folder() -> Path:
    """Where measurements are remembered between runs."""
    return Path.home() / ".cache" / "frugal-rl"


def remembered(run: RunConfig) -> dict[str, int] | None:
    """The bytes by phase that an earlier measurement of this installation found."""
    try:
        stored = json.loads((cache_folder() / f"base_{_key(run)}.json").read_text())
        return {str(name): int(count) for name, count in stored["bytes"].items()}
    except (OSError, ValueError, KeyError, AttributeError):
        return None


def _remember(run: RunConfig, peaks: dict[str, int]) -> None:
    """A cache that cannot be written costs a second measurement, nothing else."""
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=cache_folder(), delete=False) as file:
            json.dump({"bytes": peaks}, file)
        os.replace(file.name, cache_folder() / f"base_{_key(run)}.json")
    except OSError:
        return


def _key(run: RunConfig) -> str:
    """What the peak of a tiny run depends on: versions, code, and everything but sizes."""
    names = ("torch", "stable-baselines3", "numba", "wandb", "numpy")
    versions = [f"{n}={metadata.version(n)}" for n in names]
    small = tiny(run)
    kinds = [repr(x) for x in (small.env, small.agent, small.algo, small.vec, small.memory)]
    hardware = [small.tracking.wandb, small.hardware.device, str(small.hardware.threads)]
    hardware.append(f"visualization={small.visualization}")
    words = [sys.version, *versions, *kinds, *hardware, _sources(run)]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]


def _sources(run: RunConfig) -> str:
    """Newest change of the environment's package and of ours: new code is measured anew."""
    packages = {__name__.split(".")[0], type(run.env).__module__.split(".")[0]}
    folders = [Path(str(sys.modules[p].__file__)).parent for p in packages if p in sys.modules]
    return str(max((f.stat().st_mtime_ns for d in folders for f in d.rglob("*.py")), default=0))


def _measure(run: RunConfig) -> dict[str, Any]:
    answer: dict[str, Any] = ask_child("frugal_rl.run.dry_run", run, "Measuring a tiny run")
    return answer
