"""The plan: what a run will hold, part by part and phase by phase, before anything is allocated.

Arithmetic comes first, so that a hopeless run is refused at once and without importing torch; only
a run that passes it is probed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from frugal_rl.memory.base import (
    Base,
    arithmetic_base,
    installed_base,
    keep_base,
    kept_base,
    measured_peaks,
    tiny,
)
from frugal_rl.memory.choices import Precision
from frugal_rl.memory.duration import Duration, estimate
from frugal_rl.memory.first_look import look_at_rows, weigh_environment, weigh_workers
from frugal_rl.memory.honour import is_saved_by
from frugal_rl.memory.machine import Limit, find_limit, has_accelerator
from frugal_rl.memory.part import ONCE_STARTED, Confidence, Kind, Part, Phase, human
from frugal_rl.memory.probe import Planning, Probe, ProbeUpdate
from frugal_rl.memory.replay_data import look_at_play
from frugal_rl.memory.savings import SAVINGS
from frugal_rl.memory.sizes import (
    environment_parts,
    learner_parts,
    rollout_parts,
    side_by_side,
)
from frugal_rl.observation.choices import Label

if TYPE_CHECKING:
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.run.config import RunConfig

MARGIN = 0.03
"""A plan may lie above what is measured; below it, never by more than this."""
LEAST_MARGIN_BYTES = 14 << 20
"""Scratch of matrix products and of threads, which tiny updates do not need."""
TRACKER_BYTES = 24 << 20
"""What W&B holds after its first minutes beyond a tiny run: 503 -> 522 MiB over the main job."""
NOTHING_SAVED = "none"
"""Label of the "before" that others are measured against."""
TIGHT = 0.9
"""Share of the limit from which a plan is called tight."""


@dataclass(frozen=True)
class Peak:
    """Bytes held at the worst moment of a phase."""

    ram_bytes: int
    vram_bytes: int


@dataclass(frozen=True)
class Plan:
    """All parts of a run and the limit that they must stay below."""

    parts: tuple[Part, ...]
    limit: Limit
    profile: str = "custom"
    label: str = "lossless"
    probed: bool = False
    """Whether the learner's activations are in it, or arithmetic only."""
    transitions: int = 1
    """Steps times environments of one rollout."""
    base: Base | None = None
    """The bare process that was counted."""
    probe: Probe | None = None
    """What was measured of the learner."""
    duration: Duration | None = None
    """How long it takes; None where nothing like it was timed."""

    def peak(self, phase: Phase) -> Peak:
        """The sum of the parts that are alive in a phase."""
        alive = [p for p in self.parts if phase in p.phases]
        return Peak(sum(p.ram_bytes for p in alive), sum(p.vram_bytes for p in alive))

    @property
    def peak_phase(self) -> Phase:
        """The phase with the highest peak in memory."""
        return max(Phase, key=lambda p: self.peak(p).ram_bytes)

    @property
    def ram_bytes(self) -> int:
        """The highest peak in memory."""
        return self.peak(self.peak_phase).ram_bytes

    @property
    def vram_bytes(self) -> int:
        """The highest peak on the accelerator."""
        return max(self.peak(p).vram_bytes for p in Phase)

    def bytes_of(self, *kinds: Kind) -> int:
        """What parts of these kinds hold together, in memory and on the accelerator."""
        return sum(p.ram_bytes + p.vram_bytes for p in self.parts if p.kind in kinds)

    @property
    def rollout_bytes(self) -> int:
        """What the rollout allocates, wherever it lies."""
        return self.bytes_of(Kind.rollout)

    @property
    def bytes_per_transition(self) -> float:
        """The rollout's bytes for one step of one environment."""
        return self.rollout_bytes / self.transitions

    @property
    def fits(self) -> bool:
        """Whether every phase stays below the limits."""
        return self.ram_bytes <= self.limit.ram_bytes and (
            self.vram_bytes <= self.limit.vram_bytes or self.vram_bytes == 0
        )

    @property
    def verdict(self) -> str:
        """`fits`, `tight` (above nine tenths of a limit) or `does not fit`."""
        if not self.fits:
            return "does not fit"
        tight = self.ram_bytes > TIGHT * self.limit.ram_bytes or (
            self.vram_bytes > TIGHT * self.limit.vram_bytes
        )
        return "tight" if tight else "fits"

    @property
    def largest(self) -> Part:
        """The largest part of the worst phase, on the side whose limit is passed."""
        on_device = self.vram_bytes > self.limit.vram_bytes and self.vram_bytes > 0
        alive = [p for p in self.parts if on_device or self.peak_phase in p.phases]
        return max(alive, key=lambda p: p.vram_bytes if on_device else p.ram_bytes)

    def as_dict(self) -> dict[str, Any]:
        """Plain values: for JSON, the run folder and W&B (`plan/*`)."""
        return {
            "profile": self.profile,
            "label": self.label,
            "verdict": self.verdict,
            "probed": self.probed,
            "ram_bytes": self.ram_bytes,
            "vram_bytes": self.vram_bytes,
            "rollout_bytes": self.rollout_bytes,
            "bytes_per_transition": self.bytes_per_transition,
            "limit_ram_bytes": self.limit.ram_bytes,
            "limit_vram_bytes": self.limit.vram_bytes,
            "limit_source": self.limit.ram_source,
            "peak_phase": self.peak_phase.value,
            "phases": {p.value: vars(self.peak(p)) for p in Phase},
            "parts": [_part_values(p) for p in self.parts],
            "duration": self.duration and self.duration.as_dict(),
        }


def draw_up(run: RunConfig, probe: ProbeUpdate | None = None) -> Plan:
    """The run's plan, whether it fits or not; without `probe`, by arithmetic alone."""
    if probe is None:
        return assemble(run, arithmetic_base(run), None)
    # The probe compiles kernels, so that the tiny run does not.
    found = probe(run) if own_parts(run) is None else None
    return assemble(run, measured_base(run, found), found)


def own_parts(run: RunConfig) -> list[Part] | None:
    """What a learner that keeps no rollout says of itself; None where a probe has to look."""
    says = getattr(run.algo, "learner_parts", None)
    return None if says is None else [_of_learner(part) for part in says(run)]


def _of_learner(part: Part) -> Part:
    """A part that says nothing of its kind is none of an environment."""
    return replace(part, kind=Kind.learner) if part.kind is Kind.environment else part


def measured_base(run: RunConfig, found: Probe | None) -> Base:
    """What a bare process of this kind holds: as a probe found it, else as the installation does.

    With `plan=probe` it is what a tiny run held in each phase beyond what is planned for its sizes.
    """
    weigh_environment(run)
    weigh_workers(run)
    look_at_play(run)
    look_at_rows(run)  # and compile; a tiny run is measured when all of that is over
    if run.plan is not Planning.probe:
        return kept_base(run) or installed_base(run)
    nothing = Base.everywhere(0, Confidence.probed, has_accelerator(run.hardware.device))
    base = residual(tiny(run), found, nothing, measured_peaks(run))
    keep_base(run, base)
    return base


def residual(run: RunConfig, found: Probe | None, nothing: Base, peaks: dict[Phase, int]) -> Base:
    """What a run held in each phase beyond what is planned for its sizes."""
    planned = assemble(run, nothing, found)
    held = {p: max(0, peaks[p] - planned.peak(p).ram_bytes) for p in Phase}
    return replace(nothing, by_phase=held)


def assemble(run: RunConfig, base: Base, probe: Probe | None) -> Plan:
    """The plan from arithmetic and what was measured."""
    encoding = run.encoding()
    hardware, memory = run.hardware, run.memory
    limit = find_limit(
        memory.budget_gib, hardware.ram_gib, hardware.vram_gib, hardware.cores, hardware.device
    )
    learner = own_parts(run)
    looked = probe is not None or (learner is not None and base.found)
    if learner is None:
        own_kind = base.confidence is Confidence.probed  # its tiny run held a first update as well
        learner = rollout_parts(run, encoding)
        learner += learner_parts(run, encoding, probe, not own_kind)
    for choice in (run.agent, run.algo):
        own: list[Part] = getattr(choice, "parts", lambda run: [])(run)
        learner += [_of_learner(part) for part in own]
    if getattr(run.algo, "overlap", False):
        learner = side_by_side(learner)
    parts = (*base.parts, *environment_parts(run, encoding), *learner)
    if looked and base.process_bytes:
        if run.tracking.wandb != "disabled":
            parts += (TRACKER,)
        parts += (margin_of(parts),)
    transitions = run.algo.n_steps * run.algo.num_envs
    named = memory.profile, label_of(run, encoding)
    return Plan(parts, limit, *named, looked, transitions, base, probe, estimate(run, probe))


def label_of(run: RunConfig, encoding: Encoding) -> str:
    """What a plan's savings cost; `none` where there is none, as with `memory=baseline`."""
    dense = all(form == "dense" for form in encoding.choice.values())
    if dense and not any(is_saved_by(saving, run) for saving in SAVINGS):
        return NOTHING_SAVED
    overlap = getattr(run.algo, "overlap", False)
    return (Label.capacity if overlap else cost_of(run.memory, encoding)).value


def cost_of(memory: MemoryProfile, encoding: Encoding) -> Label:
    """The dearest of what the profile says, of switches typed beside it, and of the fields' forms.

    Example:
        >>> from frugal_rl import compose
        >>> run = compose("env=toy env.fields.speed=half")
        >>> cost_of(run.memory, run.encoding()).value
        'precision'
    """
    found = {memory.label, *(row.codec.label for row in encoding.rows)}
    if memory.precision is not Precision.float32 or memory.micro_batch:
        found.add(Label.precision)
    return next(label for label in reversed(Label) if label in found)


TRACKER = Part(
    "tracker",
    "what W&B holds later",
    TRACKER_BYTES,
    kind=Kind.process,
    confidence=Confidence.calibrated,
    phases=ONCE_STARTED,
)


def margin_of(parts: tuple[Part, ...]) -> Part:
    """Room for what no shape tells: pages that libraries touch, scratch of kernels."""
    unsure = sum(p.ram_bytes for p in parts if p.confidence is not Confidence.exact)
    formula = f"{MARGIN:.0%} of what is not exact, at least {human(LEAST_MARGIN_BYTES)}"
    count = max(int(MARGIN * unsure), LEAST_MARGIN_BYTES)
    return Part("margin", formula, count, kind=Kind.process, confidence=Confidence.calibrated)


def _part_values(part: Part) -> Mapping[str, Any]:
    return {
        "name": part.name,
        "formula": part.formula,
        "ram_bytes": part.ram_bytes,
        "vram_bytes": part.vram_bytes,
        "shared": part.shared,
        "confidence": part.confidence.value,
        "phases": sorted(p.value for p in part.phases),
    }
