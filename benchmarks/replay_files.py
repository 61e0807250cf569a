"""What a replay's segments take on disk, planned before and counted afterwards.

    python benchmarks/replay_files.py [number ...]

Odd sizes, short and long episodes, one save and many, rings that turn, large rows and small ones:
each cell is trained in a process of its own, and the files in its `checkpoints/replay` are counted.
`first` is what the plan says of an environment that was never run, after a moment of random play;
`again` what it says once a run of the same kind with another seed has been there; `most` is the
plan's bound, which no file may exceed. All is remembered in a folder of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from frugal_rl import remembered
from frugal_rl.memory.facts import replay_on_disk
from frugal_rl.memory.replay_data import look_at_play
from frugal_rl.run.compose import compose_run

ROOT = Path(__file__).resolve().parents[1]
GYM = "env=gymnasium env.id="
CELLS = (
    "env=toy algo=dqn algo.num_envs=5 algo.n_steps=87 algo.total_steps=1740 algo.buffer_size=1484",
    "env=toy algo=dqn algo.num_envs=3 algo.n_steps=61 algo.total_steps=7013 algo.buffer_size=20011",
    "env=toy algo=qr_dqn algo.num_envs=7 algo.n_steps=40 algo.total_steps=3001 "
    "algo.buffer_size=997 checkpoint_every_steps=500",
    "env=toy algo=dqn algo.prioritised=true algo.num_envs=8 algo.n_steps=64 algo.total_steps=2500 "
    "algo.buffer_size=3333 evaluation.every_steps=1000",
    f"{GYM}Pendulum-v1 algo=sac algo.num_envs=4 algo.n_steps=64 algo.total_steps=3000 "
    "algo.buffer_size=20000",
    f"{GYM}Pendulum-v1 algo=td3 algo.num_envs=3 algo.n_steps=64 algo.total_steps=5003 "
    "algo.buffer_size=1777",
    f"{GYM}CartPole-v1 algo=qr_dqn algo.num_envs=8 algo.n_steps=32 algo.total_steps=6000 "
    "algo.buffer_size=3000",
    f"{GYM}CartPole-v1 algo=dqn algo.num_envs=1 algo.n_steps=99 algo.total_steps=1980 "
    "algo.buffer_size=1774",
    f"{GYM}Acrobot-v1 algo=dqn algo.num_envs=4 algo.n_steps=99 algo.total_steps=4001 "
    "algo.buffer_size=100000",
    f"{GYM}Pendulum-v1 algo=crossq algo.num_envs=5 algo.n_steps=20 algo.total_steps=901 "
    "algo.buffer_size=700",
    f"{GYM}MountainCarContinuous-v0 algo=tqc algo.num_envs=2 algo.n_steps=50 "
    "algo.total_steps=2001 algo.buffer_size=50001 checkpoint_every_steps=700",
    "env=nclone algo=dqn algo.num_envs=6 algo.n_steps=50 algo.total_steps=3001 "
    "algo.buffer_size=2500",
    "env=fighting algo=dqn algo.num_envs=4 algo.n_steps=50 algo.total_steps=2001 "
    "algo.buffer_size=5500",
)
ALL = ("algo.learning_starts=100", "algo.train_freq=16", "evaluation.episodes=2",
       "evaluation.num_envs=2", "tracking=disabled")  # fmt: skip


OTHER_SEED = "seed=7"


def train(words: list[str]) -> list[int]:
    """Bytes of each segment that a run leaves."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, str(ROOT / "scripts" / "train.py"), *words]
        done = subprocess.run(
            [*command, f"hydra.run.dir={out}"], capture_output=True, text=True, env=os.environ
        )
        if done.returncode:
            raise SystemExit(done.stderr[-2000:])
        return [file.stat().st_size for file in Path(out, "checkpoints", "replay").iterdir()]


def cell(words: list[str]) -> tuple[int, int, int, int, int]:
    """Expected at first, after a run, at most; counted, and files."""
    for kept in remembered.folder().glob("replay_[rp]*_*.json"):
        kept.unlink()
    run = compose_run(words)
    look_at_play(run)
    first = replay_on_disk(run)["replay_file_bytes"]
    train([*words, OTHER_SEED])
    told, sizes = replay_on_disk(run), train(words)
    again, most = told["replay_file_bytes"], told["replay_file_most_bytes"]
    return first, again, most, sum(sizes), len(sizes)


def measure(numbers: list[int]) -> None:
    """The table, and how many cells are within 5 %."""
    off: list[tuple[float, float, bool]] = []
    print("| cell | files | bytes | first | again | at most |\n" + "|---" * 6 + "|")
    for number in numbers:
        first, again, most, counted, files = cell([*CELLS[number].split(), *ALL])
        off.append((first / counted - 1, again / counted - 1, most >= counted))
        print(f"| `{CELLS[number]}` | {files} | {counted:,} | {off[-1][0]:+.1%} | "
              f"{off[-1][1]:+.1%} | {most:,} |", flush=True)  # fmt: skip
    within = [sum(abs(row[i]) <= 0.05 for row in off) for i in (0, 1)]
    worst = [max((row[i] for row in off), key=abs) for i in (0, 1)]
    print(f"\n{len(off)} cells: {within[0]} within 5 % at first (worst {worst[0]:+.1%}); after a "
          f"run {within[1]} (worst {worst[1]:+.1%}); {sum(row[2] for row in off)} below the "
          "plan's bound")  # fmt: skip


def main() -> None:
    """Measure in a home that knows this installation, and nothing of any replay."""
    numbers = [int(number) for number in sys.argv[1:]] or list(range(len(CELLS)))
    with tempfile.TemporaryDirectory() as home:
        known = Path(home, ".cache", "frugal-rl")
        if remembered.folder().is_dir():
            shutil.copytree(remembered.folder(), known)
        os.environ["HOME"] = home
        measure(numbers)


if __name__ == "__main__":
    main()
