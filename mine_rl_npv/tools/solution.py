"""A schedule with its certificate, as text and as files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from frugal_rl.memory.usage import peak_resident_bytes
from mine_rl_npv.data.instance import Instance
from mine_rl_npv.data.solutions import write_pit
from mine_rl_npv.data.whole_files import write_whole
from mine_rl_npv.optimise.check import SLACK, Verdict

ONLY_IF = "ONLY IF"


@dataclass(frozen=True)
class Solution:
    """A schedule with its certificate."""

    instance: Instance
    method: str
    shares: np.ndarray | None
    """(n, D, T) float64; None where the method gives a bound or a pit only."""
    verdict: Verdict
    upper: float
    """Certified bound; nan where none was computed."""
    seconds: float
    bound_seconds: float
    pit: np.ndarray | None = None
    notes: tuple[str, ...] = field(default=())
    condition: str = ""
    """What was taken for granted, without which none of it holds; empty where all was stated."""

    @property
    def gap_percent(self) -> float:
        """100 (bound - value) / bound."""
        if self.upper == 0:
            return 0.0 if self.verdict.value == 0 else float("nan")
        return 100.0 * (self.upper - self.verdict.value) / abs(self.upper)

    def report(self) -> str:
        """The lines that the script prints; values with all their digits."""
        lines = [
            f"instance   {self.instance.name} ({self.instance.blocks} blocks, "
            f"{self.instance.graph.arcs} arcs, {self.instance.periods} periods)",
            f"method     {self.method}",
            f"value      {self.verdict.value!r}",
            f"bound      {self.upper!r}",
            f"gap        {self.gap_percent:.4f} %",
            f"time       {self.seconds:.3f} s (bound {self.bound_seconds:.3f} s)",
            f"memory     {peak_mib():.0f} MiB peak",
            f"feasible   {self.feasible_line()}",
            f"slopes     {self.slopes_line()}",
        ]
        return "\n".join([*lines, *self.notes])

    def summary(self) -> dict[str, Any]:
        """The same numbers by name."""
        return {
            "instance": self.instance.name,
            "method": self.method,
            "value": self.verdict.value,
            "bound": self.upper,
            "gap_percent": self.gap_percent,
            "seconds": self.seconds,
            "bound_seconds": self.bound_seconds,
            "peak_mib": peak_mib(),
            "feasible": self.verdict.feasible,
            "faults": list(self.verdict.faults),
            "slopes": self.slopes_line(),
            "notes": list(self.notes),
            "only_if": self.condition,
        }

    def feasible_line(self) -> str:
        """Whether the schedule keeps every rule, and under which condition."""
        if not self.verdict.feasible:
            return "; ".join(self.verdict.faults)
        return f"yes, {ONLY_IF} {self.condition}" if self.condition else "yes"

    def slopes_line(self) -> str:
        """The audit in one line, or why there is none."""
        if self.verdict.slopes is not None:
            line = self.verdict.slopes.line()
            return f"{ONLY_IF} {self.condition}: {line}" if self.condition else line
        if self.instance.slopes is None:
            return "not audited: this instance lists precedences, no angles"
        return "not audited: a pit or bound alone"


def too_heavy(instance: Instance, choice: bool) -> Iterator[str]:
    """A line for each limit that paying blocks pass by themselves in every period.

    Args:
        instance: the mine.
        choice: whether destinations may share a block; a period is that of the whole block anyway.
    """
    use = instance.destination_use.min(axis=1) if choice else instance.use
    value = instance.destination_value.max(axis=1) if choice else instance.value
    for r, name in enumerate(instance.limit_names):
        most = float(instance.high[r].max())
        heavy = (use[:, r] > most * (1 + SLACK)) & (value > 0)
        if not heavy.any():
            continue
        least = instance.destination_use[heavy, :, r].min(axis=1)
        split = not choice and bool(np.all(least <= most))
        yield (
            f"heavy      {int(heavy.sum())} of {int((value > 0).sum())} paying blocks stay: blocks "
            f"are dug whole in one period, the lightest of these takes {use[heavy, r].min():,.0f} "
            f"of {name}, and no period has more than {most:,.0f}. Raise the limit"
            f"{', or let destinations share blocks: problem=pcpsp' if split else ''}"
        )


def peak_mib() -> float:
    """Peak resident memory of this program in MiB."""
    return peak_resident_bytes() / 2**20


def write_solution(solution: Solution, path: str | Path) -> None:
    """Writes the MineLib solution file: `block destination period fraction`, or the pit's ids."""
    if solution.pit is not None:
        write_pit(solution.pit, path)
        return
    rows = np.argwhere(solution.shares > 1e-12)
    write_whole(
        Path(path),
        (f"{b} {d} {t} {_digits(solution.shares[b, d, t])}" for b, d, t in rows.tolist()),
    )


def _digits(share: float) -> str:
    """Six digits, or all of them where a limit that is met exactly needs them."""
    short = f"{share:.6f}"
    return short if float(short) == share else repr(float(share))
