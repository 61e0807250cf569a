"""A search of 30 trials that is killed and goes on: return against memory, and its picture.

    python benchmarks/search_front.py [--trials 30] [--jobs 2] [--kill-after 11] [--out FOLDER]

CartPole: step size, width of the networks and number of environments. When so many trials have
ended, the search is ended by SIGKILL, its trials with it; the same command is given again. What
was known before must stand as it was, and all trials must be there at the end.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import optuna
import psutil
from optuna.trial import FrozenTrial

RUNS = (
    "env=gymnasium env.id=CartPole-v1 agent=mlp tracking=disabled hardware.threads=1 "
    "memory=lossless algo.n_steps=64 algo.batch_size=256 algo.n_epochs=8 algo.total_steps=16384 "
    "evaluation.episodes=16 evaluation.every_steps=8192"
).split()
SPACE = (
    "algo.learning_rate=log(1e-4,1e-2)",
    "agent.actor=choice([8],[64,64],[512,512])",
    "agent.critic=choice([8],[512,512])",
    "algo.num_envs=choice(4,16,64)",
)


def started(given: argparse.Namespace) -> subprocess.Popen[str]:
    """The search, its output as text."""
    space = ",".join(f"'{words}'" for words in SPACE)
    own = [f"space=[{space}]", f"trials={given.trials}", f"jobs={given.jobs}", f"out={given.out}"]
    command = [sys.executable, "scripts/search.py", *RUNS, *own]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def said(line: str) -> bool:
    """Print what a search says of a trial, and of its end."""
    if line.startswith("trial ") or "Error" in line or "search." in line:
        print(line.rstrip(), flush=True)
    return line.startswith("trial ")


def known(out: Path) -> dict[int, FrozenTrial]:
    """The trials of the storage, by number."""
    study = optuna.load_study(study_name="search", storage=f"sqlite:///{out / 'study.db'}")
    return {trial.number: trial for trial in study.trials}


def killed(given: argparse.Namespace) -> dict[int, FrozenTrial]:
    """Search until so many trials have ended, then end everything; what the storage holds."""
    search, count = started(given), 0
    assert search.stdout is not None
    for line in search.stdout:
        count += said(line)
        if count == given.kill_after:
            break
    for process in [*psutil.Process(search.pid).children(recursive=True), search]:
        process.send_signal(signal.SIGKILL)
    search.communicate()
    found = known(given.out)
    print(f"killed: {told(found)}", flush=True)
    return found


def told(trials: dict[int, FrozenTrial]) -> str:
    """How many trials there are of each end."""
    names = [trial.state.name.lower() for trial in trials.values()]
    return ", ".join(f"{names.count(name)} {name}" for name in sorted(set(names)))


def main() -> None:
    """Search, kill, search on, look."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kill-after", type=int, default=11)
    parser.add_argument("--out", type=Path, default=Path("runs/search_front"))
    given = parser.parse_args()
    shutil.rmtree(given.out, ignore_errors=True)
    began = time.monotonic()
    before = {n: t for n, t in killed(given).items() if t.state.is_finished()}
    search = started(given)
    assert search.stdout is not None
    for line in search.stdout:
        said(line)
    search.wait()
    after = known(given.out)
    kept = all(
        (after[n].params, after[n].values, after[n].state) == (t.params, t.values, t.state)
        for n, t in before.items()
    )
    print(f"status {search.returncode}: {told(after)} after {time.monotonic() - began:.0f} s")
    print(f"the {len(before)} ended before the kill {'stand as they were' if kept else 'CHANGED'}")
    print((given.out / "search.md").read_text())


if __name__ == "__main__":
    main()
