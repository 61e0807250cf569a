"""A bare training process: interpreter, libraries, loaded kernels, the tracker beside it.

Measured once per installation, by a tiny run of the toy in a process of its own, and remembered in
the user's cache folder; `plan=probe` measures a tiny run of the very kind. The arithmetic that
refuses a hopeless run at once takes a constant, and starts nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from importlib import metadata
from numbers import Real
from typing import TYPE_CHECKING, Any

from frugal_rl import remembered
from frugal_rl.memory.child import ask_child
from frugal_rl.memory.kernels import MEASURED_CODE, note_ready, package_of
from frugal_rl.memory.machine import device_here, has_accelerator
from frugal_rl.memory.part import Confidence, Kind, Part, Phase

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

MIB = 1 << 20
TYPICAL_BYTES = 520 * MIB
"""CPython 3.11 with torch 2.13 (CPU), stable-baselines3 2.9, numba 0.68, hydra 1.3, wandb 0.31."""
CONTEXT_BYTES = 500 * MIB
"""A CUDA context; between 0.3 and 0.6 GiB by device and driver."""
WITHOUT_GPU = ", on the CPU here: what CUDA's libraries hold comes on top"
TINY = {"num_envs": 4, "n_steps": 4, "batch_size": 8, "total_steps": 48}
"""Three rollouts, so that what happens only once is over."""
LIBRARIES = "libraries"
"""Beside the phases of what is remembered: bytes of each library while they were measured."""
BARE = ("MlpAgent", "PpoConfig")
"""The classes of network and learner with which an installation is measured."""
TINY_EVALUATION_STEPS = 32
"""Where the run evaluates on its way, so does the tiny one, before its last rollout."""


@dataclass(frozen=True)
class Base:
    """Bytes of the process tree in each phase, without anything that the plan counts by size."""

    by_phase: Mapping[Phase, int]
    confidence: Confidence
    device: bool = False
    found: bool = True
    """False is a guess, to refuse a hopeless run by."""

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
            Confidence.calibrated: "this installation" if self.found else "a typical one",
        }
        here = self.device and device_here("cuda") == "cpu"
        always = Part(
            "interpreter and libraries",
            how.get(self.confidence, "") + (WITHOUT_GPU if here else ""),
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
    few = min(2, run.evaluation.num_envs)  # one world alone would have kernels of its own
    evaluation = replace(run.evaluation, every_steps=between, episodes=few, num_envs=few)
    mode = "disabled" if run.tracking.wandb == "disabled" else "offline"
    return replace(
        run,
        env=env,
        algo=algo,
        evaluation=evaluation,
        checkpoint_every_steps=0,
        resume=None,
        tracking=replace(run.tracking, wandb=mode),
        memory=replace(run.memory, budget_gib=None, max_hours=None),
    )


def arithmetic_base(run: RunConfig) -> Base:
    """A typical installation; starts and imports nothing."""
    device = has_accelerator(run.hardware.device)
    return replace(Base.everywhere(TYPICAL_BYTES, Confidence.calibrated, device), found=False)


def measured_peaks(run: RunConfig) -> dict[Phase, int]:
    """The peaks of a tiny run of this kind by phase, measured now.

    Raises:
        ConfigError: the tiny run failed; carries the last line of what it said.
    """
    answer: dict[str, Any] = ask_child("frugal_rl.run.dry_run", run, "Measuring a tiny run")
    if answer["compiled"]:  # compiling takes a quarter of a GiB: the second run loads
        answer = ask_child("frugal_rl.run.dry_run", run, "Measuring a tiny run")
    keep_libraries(run, answer.pop("libraries", {}))
    note_ready(run, answer)
    return phases_of(answer["bytes"])


def phases_of(found: Mapping[str, int]) -> dict[Phase, int]:
    """Bytes of every phase; one that was not measured holds the most."""
    most = max(found.values())
    return {phase: int(found.get(phase.value, most)) for phase in Phase}


def installed_base(run: RunConfig) -> Base:
    """A bare process of this installation, and what this kind of run loads beside it."""
    kept = remembered.read(f"installation_{_installation(run)}")
    if not kept:
        kept = ask_child("frugal_rl.run.bare", run, "Measuring this installation, once")["bytes"]
        kept = {**kept, **_libraries_seen(*_bare(run))}
        remembered.write(f"installation_{_installation(run)}", kept)
    beside = sum(getattr(type(x), "libraries_bytes", 0) for x in (run.env, run.agent, run.algo))
    held = {phase: count + beside for phase, count in _as_seen_last(kept, *_bare(run)).items()}
    return Base(held, Confidence.calibrated, has_accelerator(run.hardware.device))


def kept_base(run: RunConfig) -> Base | None:
    """What `plan=probe` found for this kind of run; None where nobody asked."""
    kept = remembered.read(f"base_{_kind(run)}")
    if not kept:
        return None
    return Base(
        _as_seen_last(kept, *_network_of(run)),
        Confidence.probed,
        has_accelerator(run.hardware.device),
    )


def keep_base(run: RunConfig, base: Base) -> None:
    """Remember what a kind of run holds beside what is planned by size."""
    held = {phase.value: count for phase, count in base.by_phase.items()}
    remembered.write(f"base_{_kind(run)}", {**held, **_libraries_seen(*_network_of(run))})


def keep_libraries(run: RunConfig, found: Mapping[str, int]) -> None:
    """Remember how much of each library was resident in the last run of its network and learner."""
    if found:
        remembered.write(_libraries_name(*_network_of(run)), found)


def _libraries_seen(*network: str) -> dict[str, Any]:
    """What the last run saw of libraries, as an entry beside peaks that were measured with it."""
    seen = remembered.read(_libraries_name(*network))
    return {LIBRARIES: seen} if seen else {}


def _as_seen_last(kept: Mapping[str, Any], *network: str) -> dict[Phase, int]:
    """Bytes of every phase, with libraries as resident as the last run of this machine saw them.

    Pages that the kernel has dropped from its cache, or read again, since the peaks were measured
    move all runs alike: by up to 50 MiB within a day.
    """
    then = kept.get(LIBRARIES, {})
    now = (remembered.read(_libraries_name(*network)) or {}) if then else {}
    moved = sum(now[name] - count for name, count in then.items() if name in now)
    peaks = phases_of({name: count for name, count in kept.items() if name != LIBRARIES})
    return {phase: count + moved for phase, count in peaks.items()}


def _network_of(run: RunConfig) -> tuple[str, str, str]:
    """What decides which pages of libraries are resident: network, learner, what is given back."""
    return type(run.agent).__name__, type(run.algo).__name__, run.memory.library_pages.value


def _bare(run: RunConfig) -> tuple[str, str, str]:
    return (*BARE, run.memory.library_pages.value)


def _libraries_name(*network: str) -> str:
    return f"libraries_{remembered.fingerprint(sys.version, sys.prefix, *network)}"


def _installation(run: RunConfig) -> str:
    """What an installation's libraries hold depends on: versions, cores, tracker, device."""
    names = ("torch", "stable-baselines3", "numba", "wandb", "numpy", "hydra-core", "gymnasium")
    versions = [f"{n}={metadata.version(n)}" for n in names]
    hardware = [run.tracking.wandb, run.hardware.device, str(os.cpu_count())]
    kept = (run.memory.allocator, run.memory.library_pages)
    code = remembered.code_digest(*MEASURED_CODE)
    return remembered.fingerprint(sys.version, *versions, *hardware, *kept, code)


def _kind(run: RunConfig) -> str:
    """What a tiny run's peak depends on beside the installation: everything but numbers."""
    small = tiny(run)
    kinds = [repr(x) for x in (small.env, small.agent, small.vec, small.memory)]
    kinds += [type(small.algo).__name__, repr(_ways(small.algo))]
    flags = [f"visualization={small.visualization}", f"evaluates={small.evaluation.every_steps}"]
    code = remembered.code_digest(package_of(run))
    return remembered.fingerprint(_installation(run), *kinds, *flags, code)


def _ways(algo: Any) -> dict[str, Any]:
    """What a learner does, without its sizes and rates; what it does side by side is planned."""
    values = {f.name: getattr(algo, f.name) for f in fields(algo) if f.name != "overlap"}
    return {n: v for n, v in values.items() if isinstance(v, bool) or not isinstance(v, Real)}
