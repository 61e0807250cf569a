"""The processes of `benchmarks/engine.py`, asked in turns."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from engine_rltools import build

HERE = Path(__file__).resolve().parent
STEPS, EPOCHS, BATCH, OBSERVED, ACTIONS = 128, 4, 2048, 64, 4
POOLS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
"""What libraries of matrix products read when they are loaded."""
PAUSE_SECONDS = 0.3
"""After a turn on several threads: those of OpenMP wait 0.2 s for more work without sleeping."""


@dataclass(frozen=True)
class Seconds:
    """Of one iteration, by the clock and of the processor."""

    collect_wall: float
    collect: float
    update_wall: float
    update: float

    def of_update(self, clock: bool) -> float:
        """Of the update alone."""
        return self.update_wall if clock else self.update

    def of_all(self, clock: bool) -> float:
        """Of collecting and the update."""
        return self.of_update(clock) + (self.collect_wall if clock else self.collect)


@dataclass(frozen=True)
class Case:
    """One workload."""

    num_envs: int
    hidden: int
    threads: int

    @property
    def words(self) -> list[str]:
        """As every trainer's program reads it."""
        sizes = (self.num_envs, self.hidden, BATCH, STEPS, EPOCHS)
        return [str(size) for size in sizes]

    @property
    def steps(self) -> int:
        """Environment steps of one iteration; an update reads each EPOCHS times."""
        return self.num_envs * STEPS

    @property
    def flops(self) -> int:
        """Of an update's matrix products: forward, and twice that back, but for d loss / d X."""
        first, second, last = OBSERVED * self.hidden, self.hidden**2, self.hidden
        trunks = 2 * (first + second) + (ACTIONS + 1) * last
        return 2 * (3 * trunks - 2 * first) * self.steps * EPOCHS


class Peer:
    """A trainer in a process of its own, on as many cores as it has threads."""

    def __init__(self, command: list[str], threads: int) -> None:
        own = {**os.environ, **dict.fromkeys(POOLS, str(threads))}
        everywhere = os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(everywhere)[-threads:])  # jax counts cores when it loads
        self.pause = PAUSE_SECONDS if threads > 1 else 0.0
        self.process = subprocess.Popen(
            command, env=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        os.sched_setaffinity(0, everywhere)
        self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args!r} has ended; its last words stand above.")
        return line

    def ask(self) -> Seconds:
        """One iteration."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        found = Seconds(*map(float, self._line().split()))
        time.sleep(self.pause)
        return found

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def command(name: str, case: Case, pythons: dict[str, str]) -> list[str]:
    """What starts a trainer; `pythons` names the interpreters of those that need their own."""
    if name == "RLtools":
        sizes = dict(
            zip(("NUM_ENVS", "HIDDEN", "BATCH", "STEPS", "EPOCHS"), case.words, strict=True)
        )
        fixed = {"OBSERVED": str(OBSERVED), "ACTIONS": str(ACTIONS)}
        return [str(build(pythons[name], sizes | fixed))]
    if name == "SBX":
        return [pythons[name], str(HERE / "engine_sbx.py"), *case.words]
    return [sys.executable, str(HERE / "engine_peers.py"), name, *case.words, str(case.threads)]
