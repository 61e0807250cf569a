"""The main job beside busy processes: its steps per second as a share of those of alone.

    python benchmarks/busy_run.py [--loops 8] [--rounds 6] [--before COMMIT] [--also WORD ...]

The run goes on all the time; processes that never rest are stopped and woken in turns, so that
either rate comes from the same minute. A job of T threads beside L loops on C cores can have
C T / (T + L) of them: the fair share, of which 0.7 is asked for. `--before` measures an older tree
in the same turns, `--also` the same job with one more override each. Last result: see
benchmarks/busy_run.md.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from paired_speed import FIRST_STEPS, MAIN_JOB, checked_out
from run_rates import HERE, Watched

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS = 10**8
LINES = 3
"""Lines of metrics in a turn: about two seconds of a run that is alone."""


@contextmanager
def loops(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many processes that would never rest, stopped."""
    words = [sys.executable, "-c", "while True: pass"]
    started = [subprocess.Popen(words) for _ in range(count)]
    try:
        tell(started, signal.SIGSTOP)
        yield started
    finally:
        for process in started:
            process.kill()


def tell(processes: list[subprocess.Popen[bytes]], what: signal.Signals) -> None:
    """Stop or wake all of them."""
    for process in processes:
        process.send_signal(what)


def watch(run: Watched, step: int) -> None:
    """Until the run has told of a step."""
    while run.look() < step:
        time.sleep(0.005)


def rate(run: Watched, lines: int) -> float:
    """Steps per second of one turn."""
    run.wake()
    began = len(run.seen)
    while len(run.seen) < began + lines + 1:  # the first line may have begun in another turn
        watch(run, run.step + 1)
    run.sleep()
    (first, at, _), (last, end, _) = run.seen[began], run.seen[-1]
    return (last - first) / (end - at)


def fair_share(busy: int) -> float:
    """Of the speed of alone, what a job on all cores keeps beside so many loops."""
    cores = os.cpu_count() or 1
    return cores / (cores + busy)


def measure(runs: dict[str, Watched], busy: int, rounds: int) -> dict[str, list[float]]:
    """Each run's share of its own speed of alone, one per round."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    with loops(busy) as beside:
        for number in range(rounds):
            for name, run in runs.items():
                alone = rate(run, LINES)
                tell(beside, signal.SIGCONT)
                crowded = rate(run, LINES)
                tell(beside, signal.SIGSTOP)
                found[name].append(crowded / alone)
                print(f"round {number + 1}: {name}, alone {alone:,.0f} steps/s, "
                      f"beside {busy} {crowded:,.0f}", flush=True)  # fmt: skip
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--loops", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--before", help="a commit, or a folder with it")
    parser.add_argument("--also", nargs="*", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        job = [*MAIN_JOB, f"algo.total_steps={STEPS}"]  # ended from here
        jobs = {"now": (job, HERE)}
        jobs |= {word: ([*job, word], HERE) for word in options.also}
        if options.before:
            jobs["before"] = job, stack.enter_context(checked_out(options.before))
        runs = {
            name: Watched(folder / str(number), words, FIRST_STEPS, STEPS, tree)
            for number, (name, (words, tree)) in enumerate(jobs.items())
        }
        for name, run in runs.items():
            print(f"starting {name}", flush=True)
            stack.callback(run.end)
            run.begin()
            watch(run, FIRST_STEPS)
            run.sleep()
        found = measure(runs, options.loops, options.rounds)
    fair = fair_share(options.loops)
    print("| tree | of its speed of alone | least to largest | of the fair share |")
    print("|---|---|---|---|")
    for name, shares in found.items():
        middle = median(shares)
        print(f"| {name} | 1/{1 / middle:.1f} | 1/{1 / min(shares):.1f} to "
              f"1/{1 / max(shares):.1f} | {middle / fair:.2f} |")  # fmt: skip


if __name__ == "__main__":
    main()
