"""By how much the peak of this process, or of its device, grows while something runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from frugal_rl.memory import usage
from frugal_rl.memory.allocator import give_back

FIRST = 64
"""Samples of the first update that is more than a tiny run's; then twice as many, and so on."""
CLEAR_BYTES = 8 << 20
"""Growth between two updates that stands out from pages and thread stacks."""
REACH_BYTES = 512 << 20
"""An update that grows by this much is large enough to tell how larger ones grow."""
SURE_BYTES = 64 << 20
"""Growth from a tiny update on that is believed at once; smaller ones vary by a third."""
AGAIN = 3
"""Times that both ends are measured again."""


@dataclass(frozen=True)
class Line:
    """Bytes as a straight line in the number of samples."""

    fixed: float
    per_sample: float


class Gauge:
    """Growth of the process, or of the device, while something runs."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def held(self) -> int:
        """Bytes held now."""
        if self.device.type == "cuda":
            return int(torch.cuda.memory_allocated(self.device))
        give_back()
        return usage.resident_bytes()

    def growth(self, call: Callable[[], Any]) -> int:
        """Bytes by which the peak during `call` exceeds what was held before."""
        before = self.held()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
            call()
            return int(torch.cuda.max_memory_allocated(self.device)) - before
        usage.reset_peak()
        call()
        return max(0, usage.peak_resident_bytes() - before)

    def line(
        self, call: Callable[[int], Callable[[], Any]], few: int, largest: int, share: float = 1.0
    ) -> Line:
        """The chord from `few` samples, as a tiny run has them, to `largest`.

        Sizes are doubled until the growth stands out and reaches `REACH_BYTES`; what is left up to
        `largest` follows the last doubling. Beyond a `share` of `largest` nothing is measured, but
        for one size. `call(B)` prepares B samples and returns what is to be measured.
        """
        few = max(1, min(few, largest - 1))
        self.growth(call(few))  # loads kernels, starts threads
        least = low = self.growth(call(few))
        small, large = few, few
        reach = min(largest, max(int(share * largest), FIRST))
        while large < reach:
            large = min(max(2 * small, FIRST), reach)
            high = self.growth(call(large))
            slope = (high - low) / (large - small)
            if high > REACH_BYTES and high - low > CLEAR_BYTES:
                break
            small, low = large, high
        if largest == few:
            return Line(0.0, least / few)
        if high - least < SURE_BYTES:  # one of both may have held pages that the other gave back
            least = min(least, *(self.growth(call(few)) for _ in range(AGAIN)))
            high = max(high, *(self.growth(call(large)) for _ in range(AGAIN)))
        whole = high + max(0.0, slope) * (largest - large)
        per_sample = max(0.0, (whole - least) / (largest - few))
        return Line(max(0.0, least - per_sample * few), per_sample)
