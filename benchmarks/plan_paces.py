"""Does a plan say how long? Seconds of an iteration, predicted beside measured, many kinds of run.

    python benchmarks/plan_paces.py --seconds 50    # goes on where it stopped
    python benchmarks/plan_paces.py --table         # what is known

Each kind of `plan_cells.py` is trained twice for four rollouts, the second time with other sizes of
the same scale. The second one is planned with what the first one took, and is the only one that is
judged; nothing is fitted. All runs are trained in one process, which saves their imports: other
programs use the machine, so a table of many rows comes from many short calls.

Each row is judged twice: by the clock, to which other programs add, and by the processor seconds of
the process, to which they add little. What is remembered is kept apart from the user's.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from plan_cells import ITERATIONS, KINDS, beside, drawn

from frugal_rl.errors import ConfigError

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "plan_paces.jsonl"
FEW = ("evaluation.episodes=0", "tracking=disabled", "hardware.threads=1")
BAR = 1.5


class Kept:
    """A log that keeps what was logged."""

    def __init__(self) -> None:
        self.lines: list[dict[str, float]] = []

    def metrics(self, step, values) -> None:
        """Numbers at one step of the run."""
        self.lines.append(dict(values))

    def summary(self, values) -> None:
        """Not looked at."""

    def file(self, path) -> None:
        """Not looked at."""


def pairs(seed: int) -> Iterator[tuple[str, list[str]]]:
    """(kind, two command lines), the kinds in any order."""
    dice = random.Random(seed)
    for kind, most in dice.sample(KINDS, len(KINDS)):
        sizes = drawn(dice, most)
        lines = []
        for n, t, batch in (sizes, beside(dice, sizes, most)):
            total = ITERATIONS * n * t
            words = f"{kind} algo.num_envs={n} algo.n_steps={t} algo.batch_size={batch}"
            filled = f" algo.buffer_size={total}" if "algo.learning_starts" in kind else ""
            lines.append(f"{words} algo.total_steps={total}{filled}")
        yield kind, lines


def trained(line: str) -> dict[str, float | None]:
    """Seconds of an iteration, planned and measured, by the clock and of the processor."""
    from frugal_rl.learn.on_policy_config import OnPolicyConfig
    from frugal_rl.learn.timing import pace_of
    from frugal_rl.memory.duration import estimate
    from frugal_rl.memory.probe import Probe
    from frugal_rl.run.compose import compose_run
    from frugal_rl.run.trainer import train

    with tempfile.TemporaryDirectory() as name:
        run = replace(compose_run([*line.split(), *FEW]), run_dir=name)
        probe = None
        if isinstance(run.algo, OnPolicyConfig) and not hasattr(run.algo, "learner_parts"):
            try:
                probe = Probe(0, 0.0, 0, 0, 0, pace=pace_of(run))
            except (NotImplementedError, RuntimeError):
                probe = None  # what it sees decides how much it computes
        planned, log = estimate(run, probe), Kept()
        train(run, log)
    timed = [x for x in log.lines if "time/rollout_seconds" in x][1:]
    clock = [x["time/rollout_seconds"] + x["time/update_seconds"] for x in timed]
    used = [x["time/processor_seconds"] for x in timed]
    known = planned is not None and planned.timed
    return {
        "planned_s": planned.iteration_seconds if known else None,
        "measured_s": statistics.mean(clock),
        "planned_cpu": planned.processor_seconds if known else None,
        "measured_cpu": statistics.mean(used),
    }


def rows() -> list[dict]:
    """What is known."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    return [json.loads(line) for line in lines]


def table() -> str:
    """Cell by cell, and how many lie within the bar."""
    lines, factors = [], {"s": [], "cpu": []}
    for row in rows():
        words = f"| `{row['cell']}` "
        for unit, found in factors.items():
            planned, measured = row[f"planned_{unit}"], row[f"measured_{unit}"]
            found.append(planned / measured)
            words += f"| {planned:.3g} | {measured:.3g} | {found[-1]:.2f} "
        lines.append(words + "|")
    closing = []
    for how, found in zip(("clock", "processor"), factors.values(), strict=True):
        within = sum(1 / BAR <= f <= BAR for f in found)
        closing.append(
            f"{how}: {within} of {len(found)} within a factor of {BAR}, lowest {min(found):.2f}, "
            f"highest {max(found):.2f}, median {statistics.median(found):.2f}."
        )
    head = "| cell | planned s | measured s | factor | planned cpu s | measured cpu s | factor |"
    return "\n".join([head, "|---" + "|---:" * 6 + "|", *lines, "", *closing])


def main() -> None:
    """Train some pairs that are not known yet, print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=20261125, help="which sizes are drawn")
    options.add_argument("--seconds", type=float, default=50, help="begin no pair after these")
    options.add_argument("--skip", default="ALE|parking", help="kinds with one of these words")
    options.add_argument("--table", action="store_true", help="print what is known")
    asked, began = options.parse_args(), time.monotonic()
    done = {row["kind"] for row in rows()}
    with tempfile.TemporaryDirectory() as home:
        os.environ["HOME"] = home  # nothing of the user's is used, or left behind
        for kind, lines in [] if asked.table else pairs(asked.seed):
            skipped = any(word in kind for word in asked.skip.split("|") if word)
            if kind in done or skipped or time.monotonic() - began > asked.seconds:
                continue
            try:
                found = [trained(line) for line in lines][1]
            except ConfigError as error:  # an extra that is not installed
                print(f"left out: {kind}: {error}", file=sys.stderr)
                continue
            with RESULTS.open("a") as file:
                file.write(json.dumps({"kind": kind, "cell": lines[1], **found}) + "\n")
            print(f"{time.monotonic() - began:.0f} s {lines[1]} {found}", file=sys.stderr)
    print(table() if rows() else "nothing is known")


if __name__ == "__main__":
    main()
