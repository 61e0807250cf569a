"""The meter: what a run really holds, phase by phase, and whether it grows.

The main process's peak is the kernel's own high-water mark, reset at each phase, so that nothing
between two samples is missed. Other processes of the tree are sampled by a thread.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

from frugal_rl.memory import libraries, usage
from frugal_rl.memory.part import Phase

if TYPE_CHECKING:
    from frugal_rl.memory.plan import Plan

SAMPLE_SECONDS = 1.0
"""Reading a tree's shares costs about 5 milliseconds per 250 MiB."""
FAST_SAMPLE_SECONDS = 0.02
"""Where the kernel keeps no high-water mark."""


@dataclass
class Peaks:
    """The most that was held in one phase, in bytes."""

    ram: int = 0
    pss: int = 0
    device_allocated: int = 0
    device_reserved: int = 0


@dataclass(frozen=True)
class Growth:
    """How memory changed from rollout to rollout: bytes per rollout, over how many."""

    bytes_per_rollout: float
    rollouts: int
    leak: bool

    @property
    def verdict(self) -> str:
        """In words."""
        if self.rollouts < MIN_ROLLOUTS:
            return f"not known after {self.rollouts} rollouts"
        size = f"{self.bytes_per_rollout / 1024:+,.1f} KiB per rollout"
        return f"leak: {size}" if self.leak else f"steady ({size})"


MIN_ROLLOUTS = 8
"""Fewer than this say nothing about growth."""
MOST_ROLLOUTS = 512
"""More are thinned out: all pairs of 7,500 took 850 MiB and 12 s at the end of a run."""
LEAK_SHARE = 0.01
"""Growth over the observed rollouts that is a leak, as a share of what is held."""
LEAK_BYTES = 4 << 20
"""Growth over the observed rollouts below which nothing is called a leak."""


@dataclass
class MemoryMeter:
    """Measures the process tree while it is entered; hand `phase` to the trainer."""

    sample_seconds: float = SAMPLE_SECONDS
    peaks: dict[Phase, Peaks] = field(default_factory=dict)
    after_rollouts: list[int] = field(default_factory=list)
    """What was held after every `stride`-th rollout."""
    stride: int = 1
    libraries: dict[str, int] = field(default_factory=dict)
    """Resident bytes of each library once an update was made; empty before."""
    _rollouts: int = 0
    _others: int = 0
    _shared_out: int = 0
    _pss: int = 0
    _phase: Phase = Phase.start
    _fast_peak: int = 0
    _exact: bool = True

    def __enter__(self) -> MemoryMeter:
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._exact = usage.reset_peak()
        self._look()
        self._thread = threading.Thread(target=self._sample, name="memory meter", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        """Attribute what happens inside to a phase; before the first one a run starts."""
        if self._phase is Phase.start:
            self._note(Phase.start)
        self._phase = phase
        self._begin()
        try:
            yield
        finally:
            self._end(phase)

    def held_bytes(self) -> int:
        """Bytes that the tree holds now: this process exactly, the others as last sampled."""
        return usage.resident_bytes() - self._shared_out + self._others

    @property
    def peak_bytes(self) -> int:
        """The most that the tree held in any phase."""
        return max((p.ram for p in self.peaks.values()), default=self.held_bytes())

    @property
    def growth(self) -> Growth:
        """The trend over rollouts: the median slope between all pairs, the first fifth left out."""
        held = self.after_rollouts[len(self.after_rollouts) // 5 + 1 :]
        count = len(held)
        if count < MIN_ROLLOUTS:
            return Growth(0.0, count, False)
        slope = median_slope(held)
        total = slope * (count - 1)
        third = count // 3
        goes_on = median_slope(held[-max(4, third) :]) > 0.25 * slope
        limit = max(LEAK_BYTES, LEAK_SHARE * held[-1])
        leak = total > limit and goes_on
        return Growth(slope / self.stride, count * self.stride, leak)

    def metrics(self) -> dict[str, float]:
        """Numbers for the log: what is held, and the peak of each phase so far."""
        numbers = {"memory/held_bytes": float(self.held_bytes())}
        for phase, peaks in self.peaks.items():
            numbers[f"memory/{phase.value}_peak_bytes"] = float(peaks.ram)
            if peaks.device_reserved:
                numbers[f"memory/{phase.value}_device_bytes"] = float(peaks.device_reserved)
        return numbers

    def summary(self, plan: Plan | None = None) -> dict[str, Any]:
        """The run's measured memory, beside what was predicted."""
        growth = self.growth
        numbers: dict[str, Any] = {
            "memory/peak_bytes": self.peak_bytes,
            "memory/peak_pss_bytes": max((p.pss for p in self.peaks.values()), default=self._pss),
            "memory/growth_bytes_per_rollout": growth.bytes_per_rollout,
            "memory/growth": growth.verdict,
            "memory/leak": growth.leak,
        }
        device = max((p.device_reserved for p in self.peaks.values()), default=0)
        if device:
            numbers["memory/peak_device_bytes"] = device
        for phase, peaks in self.peaks.items():
            numbers[f"memory/{phase.value}_peak_bytes"] = peaks.ram
        if plan is not None:
            numbers["plan/ram_bytes"] = plan.ram_bytes
            numbers["memory/predicted_over_measured"] = plan.ram_bytes / max(1, self.peak_bytes)
        return numbers

    def note_rollout(self) -> None:
        """Remember what is held after a rollout: of a long run every so-manieth, evenly spread."""
        if self._rollouts % self.stride == 0:
            self.after_rollouts.append(usage.anonymous_bytes())
        self._rollouts += 1
        if len(self.after_rollouts) > MOST_ROLLOUTS:
            del self.after_rollouts[1::2]
            self.stride *= 2

    def _begin(self) -> None:
        if self._exact:
            usage.reset_peak()
        self._fast_peak = 0
        device = _cuda()
        if device is not None:
            device.reset_peak_memory_stats()

    def _note(self, phase: Phase) -> None:
        """Count the most that was held since the last reset as a phase's."""
        peak = usage.peak_resident_bytes() if self._exact else self._fast_peak
        peak = max(peak, usage.resident_bytes())
        with self._lock:
            kept = self.peaks.setdefault(phase, Peaks())
            kept.ram = max(kept.ram, peak - self._shared_out + self._others)
            kept.pss = max(kept.pss, self._pss)

    def _end(self, phase: Phase) -> None:
        self._note(phase)
        kept, device = self.peaks[phase], _cuda()
        if device is not None:
            kept.device_allocated = max(kept.device_allocated, device.max_memory_allocated())
            kept.device_reserved = max(kept.device_reserved, device.max_memory_reserved())
        if phase is Phase.rollout:
            self.note_rollout()
        if phase is Phase.update and not self.libraries:
            self.libraries = libraries.library_bytes()

    def _sample(self) -> None:
        """The thread: shares of the tree now and then, this process's size often if it must."""
        wait = self.sample_seconds if self._exact else FAST_SAMPLE_SECONDS
        elapsed = 0.0
        while not self._stop.wait(wait):
            self._fast_peak = max(self._fast_peak, usage.resident_bytes())
            elapsed += wait
            if elapsed >= self.sample_seconds:
                elapsed = 0.0
                self._look()

    def _look(self) -> None:
        """Shares of the tree: what others hold, and which of our resident pages they count."""
        tree = usage.of_tree()
        if not tree:
            return
        own = tree[0]
        own_held = own.anonymous + own.shared + own.files
        with self._lock:
            self._others = max(0, usage.held_bytes(tree) - own_held)
            self._shared_out = max(0, own.resident - own_held)
            self._pss = sum(u.pss for u in tree)
            kept = self.peaks.setdefault(self._phase, Peaks())
            kept.pss = max(kept.pss, self._pss)
            kept.ram = max(kept.ram, usage.held_bytes(tree))


def median_slope(values: list[int]) -> float:
    """Theil and Sen's slope: the median over all pairs, which a few jumps do not move."""
    slopes = sorted(
        (values[j] - values[i]) / (j - i)
        for i in range(len(values))
        for j in range(i + 1, len(values))
    )
    return slopes[len(slopes) // 2] if slopes else 0.0


def _cuda() -> Any:
    """torch.cuda where it is in use; torch is never imported for it."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    return torch.cuda
