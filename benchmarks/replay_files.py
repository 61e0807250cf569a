"""What a replay's segments take on disk, planned before and counted afterwards.

    python benchmarks/replay_files.py [number ...]

Odd sizes, short and long episodes, one save and many, rings that turn, large rows and small ones:
each cell is trained in a process of its own, and the files in its `checkpoints/replay` are counted.
`expected` is what the plan says; `ends known` is the same arithmetic with as many episodes as the
run really had (no plan can know them); `most` is the plan's bound, which no file may exceed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from frugal_rl.memory.facts import replay_on_disk
from frugal_rl.memory.replay_file import Data, file_bytes
from frugal_rl.run.compose import compose_run
from frugal_rl.run.segments import Segments

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


def ends_of(folder: Path) -> float:
    """The share of steps in the newest segment's ring that ended an episode."""
    segments = Segments(folder)
    replay = segments.load()["replay"][0]
    steps, n = replay["_dones"].shape
    return float(np.count_nonzero(replay["_dones"])) / (min(steps, int(replay["count"])) * n)


def cell(words: list[str]) -> tuple[int, int, int, int, int]:
    """Expected, expected where the ends are known, at most, counted, and files."""
    run = compose_run(words)
    told = replay_on_disk(run)
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, str(ROOT / "scripts" / "train.py"), *words]
        done = subprocess.run(
            [*command, f"hydra.run.dir={out}"], capture_output=True, text=True, env=os.environ
        )
        if done.returncode:
            raise SystemExit(done.stderr[-2000:])
        folder = Path(out, "checkpoints", "replay")
        sizes = [file.stat().st_size for file in folder.iterdir()]
        known = file_bytes(run, run.algo.size(run), Data(ends_of(folder)))
    expected, most = told["replay_file_bytes"], told["replay_file_most_bytes"]
    return expected, known, most, sum(sizes), len(sizes)


def main() -> None:
    numbers = [int(number) for number in sys.argv[1:]] or range(len(CELLS))
    off: list[tuple[float, float, bool]] = []
    print("| cell | files | bytes | expected | ends known | at most |\n" + "|---" * 6 + "|")
    for number in numbers:
        expected, known, most, counted, files = cell([*CELLS[number].split(), *ALL])
        off.append((expected / counted - 1, known / counted - 1, most >= counted))
        print(f"| `{CELLS[number]}` | {files} | {counted:,} | {off[-1][0]:+.1%} | "
              f"{off[-1][1]:+.1%} | {most:,} |", flush=True)  # fmt: skip
    within = [sum(abs(row[i]) <= 0.05 for row in off) for i in (0, 1)]
    worst = [max((row[i] for row in off), key=abs) for i in (0, 1)]
    print(f"\n{len(off)} cells: {within[0]} within 5 % (worst {worst[0]:+.1%}); with their ends "
          f"known {within[1]} (worst {worst[1]:+.1%}); {sum(row[2] for row in off)} below the "
          "plan's bound")  # fmt: skip


if __name__ == "__main__":
    main()
