"""Does arithmetic alone predict what runs hold, and how long they take? Cells of random sizes.

    python benchmarks/plan_cells.py --seed 20261123 --cells 14

Each kind of run is drawn twice: sizes at random, then others of the same scale; kinds come in an
order that is drawn as well. Each cell is planned and trained for four rollouts in a process of its
own; a replay is filled meanwhile. What is done stays in the results file, and a second call goes on
with the next cells; `--into` names another file. The plan of a second cell may use the pace of the
first one; of its memory only how much of the libraries the kernel had resident. `--table` prints
what is there, `--again 10` measures the worst ten anew.

Seconds of an iteration are judged twice: by the clock, to which other programs add, and by the
processor seconds of the run's own process, to which they add little.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "plan_cells.jsonl"
ALE = "env=gymnasium env.modules=[ale_py] env.id=ALE/"
ATARI = "env.kwargs.frameskip=1 env.wrappers=[{wrapper:gymnasium.wrappers.AtariPreprocessing}]"
GRID = "env.wrappers=[{wrapper:minigrid.wrappers.ImgObsWrapper}]"
HINDSIGHT = "env.episode_steps=4 algo=sac algo.her=true algo.learning_starts=100"
SEEN = "{wrapper:gymnasium.wrappers.FilterObservation,kwargs:{filter_keys:[image,direction]}}"
PICTURES = f"env.wrappers=[{{wrapper:minigrid.wrappers.RGBImgObsWrapper}},{SEEN}]"
WORDS = "env.wrappers=[{wrapper:minigrid.wrappers.DictObservationSpaceWrapper}]"
SELDOM = "algo.train_freq=16 algo.learning_starts=100"
KINDS = (
    ("env=toy", 12000),
    ("env=nclone", 8000),
    ("env=fighting", 2500),
    ("env=mine_daily_small agent=column2d", 1500),
    ("env=nclone env.obs=pixels agent=nature_cnn", 700),
    ("env=fighting env.obs=gray agent=nature_cnn", 700),
    ("env=gymnasium env.id=CartPole-v1", 8000),
    ("env=nclone agent=attention_small", 500),
    ("env=mine_daily_small agent=cnn3d_tiny agent.head=columns", 250),
    ("env=toy algo=dqn algo.learning_starts=100", 1500),
    ("env=gymnasium env.id=Pendulum-v1 algo=sac algo.learning_starts=100", 250),
    ("env=fighting env.obs=rgb agent=nature_cnn", 400),
    ("env=gymnasium env.id=Acrobot-v1", 3000),
    ("env=toy agent.actor=[300,200] agent.critic=[300,200]", 9000),
    ("env=mine_cpit", 2000),
    ("env=nclone memory=baseline", 2500),
    ("env=gymnasium env.id=CartPole-v1 algo=dqn algo.learning_starts=100", 1500),
    ("env=toy vec=shared_memory", 6000),
    ("env=nclone env.obs=full agent=cnn", 400),
    ("env=mine_daily_small env.actions=block agent=pointer", 300),
    ("env=fighting env.obs=half_size agent=nature_cnn", 700),
    ("env=gymnasium env.id=LunarLander-v3 agent.actor=[128,96]", 4000),
    ("env=nclone agent=attention_vision_free", 300),
    ("env=gymnasium env.id=ALE/Pong-v5 env.modules=[ale_py] agent=nature_cnn", 700),
    ("env=mine_cpit memory=baseline", 1000),
    ("env=gymnasium env.id=HalfCheetah-v5", 3000),
    (f"{ALE}Breakout-v5 {ATARI} env.frame_stack=4 agent=nature_cnn", 500),
    (f"{ALE}Seaquest-v5 algo=dqn agent=nature_cnn algo.learning_starts=100", 200),
    ("env=gymnasium env.id=CarRacing-v3 agent=nature_cnn", 250),
    ("env=gymnasium env.id=Humanoid-v5 algo=td3 algo.learning_starts=100", 250),
    ("env=gymnasium env.id=Ant-v5 vec=shared_memory", 1500),
    ("env=gymnasium env.id=CartPole-v1 vec=sb3", 400),
    (f"env=gymnasium env.id=MiniGrid-DoorKey-8x8-v0 {GRID}", 3000),
    (f"env=gymnasium env.id=parking-v0 env.modules=[highway_env] {HINDSIGHT}", 200),
    ("env=nclone vec=threads memory=attention", 4000),
    ("env=nclone agent=attention_gat memory.micro_batch=32", 300),
    ("env=fighting memory.rollout_location=memmap memory.precision=bf16", 2500),
    ("env=toy algo=qr_dqn algo.learning_starts=100 agent.actor=[200]", 1500),
    ("env=toy algo=dqn algo.learning_starts=100 algo.prioritised=true", 1500),
    ("env=mine_daily_small env.obs=columns agent=column2d memory=baseline", 600),
    ("env=gymnasium env.id=BipedalWalker-v3 algo.engine=compiled", 4000),
    ("env=nclone agent.shared=[512] agent.actor=[256] agent.critic=[256]", 6000),
    ("env=gymnasium env.id=Pendulum-v1 algo=tqc algo.learning_starts=100", 200),
    ("env=mine_cpit vec=episodes algo.reward_normalisation=false memory.trajectories=list", 2000),
    (f"env=fighting env.obs=gray algo=dqn agent=nature_cnn {SELDOM}", 600),
    (f"env=gymnasium env.id=CarRacing-v3 algo=sac agent=nature_cnn {SELDOM}", 150),
    ("env=gymnasium env.id=parking-v0 env.modules=[highway_env]", 500),
    (f"env=gymnasium env.id=MiniGrid-Empty-8x8-v0 {PICTURES}", 1000),
    (f"env=gymnasium env.id=MiniGrid-DoorKey-6x6-v0 {WORDS}", 2000),
    ("env=gymnasium env.id=Pendulum-v1 algo=crossq algo.learning_starts=100", 250),
    ("env=nclone agent=attention_simplified_hgt", 200),
    ("env=nclone agent=attention_small memory.gradient_checkpointing=true", 400),
    ("env=nclone memory=sparse agent.actor=[96,96]", 5000),
    ("env=mine_cpit agent=column2d", 600),
)
"""What is run, and the most transitions of one rollout."""
FEW = ("evaluation.episodes=2", "evaluation.num_envs=2", "tracking=disabled")
ITERATIONS = 4


def drawn(dice: random.Random, most: int) -> tuple[int, int, int]:
    """(environments, steps, minibatch), the environments few or many."""
    while True:
        n, t = round(2 ** dice.uniform(1.5, 6)), round(2 ** dice.uniform(3.5, 8))
        if most / 6 <= n * t <= most:
            return n, t, n * t // dice.choice((1, 2, 3, 5))


def beside(dice: random.Random, sizes: tuple[int, int, int], most: int) -> tuple[int, int, int]:
    """Other sizes, each with as many binary digits."""
    scale = [size.bit_length() for size in sizes]
    while True:
        other = drawn(dice, most)
        if [size.bit_length() for size in other] == scale:
            return other


def cells(seed: int) -> list[str]:
    """Command lines, each kind twice, the kinds in any order."""
    dice, rows = random.Random(seed), []
    for kind, most in dice.sample(KINDS, len(KINDS)):
        sizes = drawn(dice, most)
        for n, t, batch in (sizes, beside(dice, sizes, most)):
            words = f"algo.num_envs={n} algo.n_steps={t} algo.batch_size={batch}"
            total = ITERATIONS * n * t
            filled = f" algo.buffer_size={dice.randint(total // 2, total)}"
            replay = filled if "algo.learning_starts" in kind else ""
            rows.append(f"{kind} {words} algo.total_steps={total}{replay}")
    return rows


def kind_of(cell: str) -> str:
    """The words of a cell that name its kind."""
    return cell.partition(" algo.num_envs=")[0]


def train(words: Sequence[str]) -> dict[str, float | bool | None]:
    """What was planned, and what was held and timed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, str(ROOT / "scripts" / "train.py"), *words, *FEW]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [*command, f"hydra.run.dir={folder}"], env=environment, capture_output=True, text=True
        )
        if done.returncode:
            said = f"{done.stdout[-500:]}{done.stderr[-1500:]}"
            raise ChildProcessError(f"{' '.join(words)}\n{said}")
        report = json.loads((folder / "report.json").read_text())
        plan = json.loads((folder / "plan.json").read_text())
        lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
        timed = [line for line in lines if "time/rollout_seconds" in line][1:]
    seconds = [x["time/rollout_seconds"] + x.get("time/update_seconds", 0.0) for x in timed]
    used = [x["time/processor_seconds"] for x in timed]
    duration = plan["duration"] or {}
    return {
        "planned": report["plan/ram_bytes"],
        "measured": report["memory/peak_bytes"],
        "timed": duration.get("timed"),
        "planned_s": duration.get("iteration_seconds"),
        "measured_s": statistics.mean(seconds) if seconds else None,
        "planned_cpu": duration.get("processor_seconds"),
        "measured_cpu": statistics.mean(used) if used else None,
        "parts": {p["name"]: p["ram_bytes"] for p in plan["parts"] if p["ram_bytes"] > 1 << 20},
        "phases": {k: v for k, v in report.items() if k.endswith("_peak_bytes")},
    }


def known(at: Path) -> dict[str, dict]:
    """What was measured, the last time that it was."""
    lines = at.read_text().splitlines() if at.exists() else []
    return {row["cell"]: row for row in map(json.loads, lines)}


def error_of(row: dict) -> float:
    """How far the plan lies above what was held, as a share."""
    return row["planned"] / row["measured"] - 1


SECONDS = {"clock": ("planned_s", "measured_s"), "processor": ("planned_cpu", "measured_cpu")}
"""Keys of what was planned and measured, of an iteration."""


def factors_of(row: dict) -> dict[str, float]:
    """Planned over measured seconds, by the clock and of the processor, where both are known."""
    if not row["timed"]:
        return {}
    pairs = {how: [row.get(name) for name in names] for how, names in SECONDS.items()}
    return {how: pair[0] / pair[1] for how, pair in pairs.items() if all(pair)}


def of_seconds(row: dict) -> str:
    """Planned, measured and their ratio, by the clock and of the processor; empty where unknown."""
    words, factors = "", factors_of(row)
    for how, names in SECONDS.items():
        values = [f"{row[name]:.3g}" for name in names] if how in factors else ["", ""]
        ratio = f"{factors[how]:.2f}" if how in factors else ""
        words += f"| {' | '.join([*values, ratio])} "
    return words


def table(found: dict[str, dict]) -> str:
    """Predicted and measured, cell by cell; the median and the worst."""
    rows, errors = [], []
    for cell, row in found.items():
        errors.append(error_of(row))
        mib = [f"{row[name] / 2**20:.0f}" for name in ("planned", "measured")]
        rows.append(f"| `{cell}` | {mib[0]} | {mib[1]} | {errors[-1]:+.1%} {of_seconds(row)}|")
    sizes = [abs(e) for e in errors]
    below = sum(e < -0.03 for e in errors)
    closing = (
        f"{len(errors)} cells, busy: median {statistics.median(sizes):.1%}, "
        f"worst {max(sizes):.1%}, lowest {min(errors):+.1%}, {below} more than 3 % below, "
        f"{sum(s > 0.1 for s in sizes)} off by more than 10 %."
    )
    for how in SECONDS:
        factors = [f[how] for f in map(factors_of, found.values()) if how in f]
        if factors:
            within = sum(1 / 1.5 <= f <= 1.5 for f in factors)
            closing += f"\nSeconds ({how}): {within} of {len(factors)} within a factor of 1.5, "
            closing += f"lowest {min(factors):.2f}, highest {max(factors):.2f}."
    head = "| cell | planned MiB | measured MiB | error | planned s | measured s | factor "
    head += "| planned cpu s | measured cpu s | factor |"
    return "\n".join([head, "|---" + "|---:" * 9 + "|", *rows, "", closing])


def main() -> None:
    """Measure some cells that are not known yet, print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cells", type=int, default=12, help="how many to measure now")
    options.add_argument("--seed", type=int, default=20261123, help="which sizes are drawn")
    options.add_argument("--seconds", type=float, default=1e9, help="begin no cell after these")
    options.add_argument("--again", type=int, default=0, help="measure the worst so many anew")
    options.add_argument("--like", default="", help="only kinds that hold these words")
    options.add_argument("--skip", default="", help="no kinds with one of these words, by |")
    options.add_argument("--least", type=int, default=0, help="only kinds of so large rollouts")
    options.add_argument("--into", type=Path, default=RESULTS, help="where rows are kept")
    options.add_argument("--table", action="store_true", help="print what is known")
    asked, began = options.parse_args(), time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs is ended as well
    done = known(asked.into)
    large = [kind for kind, most in KINDS if most >= asked.least]
    left_out = asked.skip.split("|") if asked.skip else []
    drawn_now = [
        cell
        for cell in cells(asked.seed)
        if asked.like in cell
        and kind_of(cell) in large
        and not any(word in cell for word in left_out)
    ]
    missing = [cell for cell in drawn_now if cell not in done][: asked.cells]
    if asked.again:
        missing = sorted(done, key=lambda cell: -abs(error_of(done[cell])))[: asked.again]
    failed = 0
    for cell in [] if asked.table else missing:
        if time.monotonic() - began > asked.seconds:
            break
        try:
            row = {"cell": cell, **train(cell.split())}
        except ChildProcessError as error:
            print(f"failed: {error}", file=sys.stderr, flush=True)
            failed += 1
            continue
        with asked.into.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{error_of(row):+.1%} {cell}", file=sys.stderr, flush=True)
    print(table(known(asked.into)))
    if failed:
        print(f"{failed} cells failed, see above.")


if __name__ == "__main__":
    main()
