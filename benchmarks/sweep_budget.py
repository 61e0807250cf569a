"""A sweep of 24 runs under one budget, watched by an independent sampler; some may be killed.

    python benchmarks/sweep_budget.py [--kill 3] [--gib 6] [--jobs 2] [--launcher joblib]

3 environments x 4 memory profiles x 2 seeds. A process of its own adds up, twice a second,
what all processes of the sweep hold (proportional set size, from /proc), and says each time that
it rose by a quarter of a GiB. With `--kill` so many training processes are ended by SIGKILL at
random times, and the same command is given once more.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil

from frugal_rl.run.cells import cells_in

SIZES = (
    "algo.num_envs=16 algo.n_steps=32 algo.batch_size=256 tracking=disabled evaluation.episodes=2 "
    "evaluation.num_envs=2 checkpoint_every_steps=512 agent=mlp hardware.threads=1"
)
ENVS = "toy,nclone,gymnasium"
SWEPT = "memory=lossless,baseline,parallel,sparse seed=0,1"
SECONDS = 0.5
RISE = 1 << 28


def tree(root: int) -> list[psutil.Process]:
    """A process and all below it."""
    try:
        top = psutil.Process(root)
        return [top, *top.children(recursive=True)]
    except psutil.Error:
        return []


def held(processes: list[psutil.Process]) -> int:
    """Bytes that they hold; shared pages count once."""
    total = 0
    for process in processes:
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue  # it has just ended
    return total


def sample(root: int, told: multiprocessing.connection.Connection) -> None:
    """Look until the sweep has ended; sends the most, how often, and the most processes."""
    most = looks = crowd = said = 0
    while processes := [p for p in tree(root) if p.pid != os.getpid()]:
        most, looks, crowd = max(most, held(processes)), looks + 1, max(crowd, len(processes))
        if processes[0].status() == psutil.STATUS_ZOMBIE:
            break
        if most > said + RISE:
            said = most
            print(f"  {most / 2**30:.2f} GiB in {len(processes)} processes", flush=True)
        time.sleep(SECONDS)
    told.send((most, looks, crowd))


def training(root: int) -> list[psutil.Process]:
    """The processes that train: they were given a folder of their own."""
    found = []
    for process in tree(root)[1:]:
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if any(w.endswith("train.py") for w in words) and "hydra.output_subdir=null" in words:
            found.append(process)
    return found


def kill_some(root: subprocess.Popen[bytes], count: int) -> int:
    """End so many training processes at random times; how many it were."""
    killed = 0
    while killed < count and root.poll() is None:
        time.sleep(random.uniform(5, 15))
        victims = training(root.pid)
        if victims:
            victim = random.choice(victims)
            victim.send_signal(signal.SIGKILL)
            killed += 1
            print(f"killed {victim.pid}", flush=True)
    return killed


def sweep(out: Path, gib: float, launcher: str, kill: int, log: Path) -> int:
    """One call of the sweep; prints what the sampler saw, returns the exit status."""
    words = [*SWEPT.split(), *SIZES.split(), f"sweep.budget_gib={gib:g}"]
    words += [f"sweep.ledger={out / 'ledger.json'}", f"hydra.sweep.dir={out}", *launcher.split()]
    began = time.monotonic()
    with log.open("ab") as file:
        command = [sys.executable, "scripts/train.py", "-m", *words]
        root = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        here, there = multiprocessing.Pipe()
        sampler = multiprocessing.Process(target=sample, args=(root.pid, there))
        sampler.start()
        kill_some(root, kill)
        root.wait()
        most, looks, crowd = here.recv()
        sampler.join()
    ends = Counter(cell.end.value for _, cell in cells_in(out))
    told = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    print(
        f"{told}; most held {most / 2**30:.2f} of {gib:g} GiB in {looks} looks at up to {crowd} "
        f"processes; status {root.returncode} after {time.monotonic() - began:.0f} s, "
        f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime:.0f} s of processor so far",
        flush=True,
    )
    return root.returncode


LAUNCHERS = {
    "joblib": "hydra/launcher=joblib hydra.launcher.n_jobs={jobs}",
    "submitit": "hydra/launcher=submitit_local hydra.launcher.timeout_min=60",
    "ray": "hydra/launcher=ray",
}


def main() -> None:
    """Sweep; with killed runs twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kill", type=int, default=0)
    parser.add_argument("--gib", type=float, default=6)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=1024)
    parser.add_argument("--envs", default=ENVS)
    parser.add_argument("--launcher", choices=LAUNCHERS, default="joblib")
    parser.add_argument("--out", type=Path, default=Path("runs/sweep_budget"))
    given = parser.parse_args()
    if given.out.is_dir() and list(cells_in(given.out)):
        sys.exit(f"{given.out} has jobs of an earlier sweep, which are not repeated; use --out.")
    given.out.mkdir(parents=True, exist_ok=True)
    launcher = LAUNCHERS[given.launcher].format(jobs=given.jobs)
    launcher += f" algo.total_steps={given.steps} env={given.envs}"
    log = given.out / "said.log"
    if sweep(given.out, given.gib, launcher, given.kill, log) and given.kill:
        sweep(given.out, given.gib, launcher, 0, log)


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    main()
