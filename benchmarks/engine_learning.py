"""Learning by both engines, and beside collecting: equal tasks, seeds and steps, in turns.

    python benchmarks/engine_learning.py [TASK ...] [--seeds 0 1 2]
    python benchmarks/engine_learning.py --table

Each run is `scripts/train.py` with `algo.engine=exact` or `compiled`, the latter with and without
`algo.overlap=true`, in turn. A row per run is
added to `--results`, and what stands there is not run again. Besides the last evaluation, and
random play in the same episodes, a row has the return of training episodes at four quarters of the
steps, and the processor seconds of collecting and learning. That both engines compute the same is
another question: `pytest tests/frugal_rl/learn/test_compiled.py` compares them update by update.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("results") / "engine_learning.jsonl"
ENGINES = {
    "exact": ["algo.engine=exact"],
    "compiled": ["algo.engine=compiled"],
    "compiled, overlapped": ["algo.engine=compiled", "algo.overlap=true"],
}
TASKS = {
    "main job": "env=nclone memory=parallel algo.total_steps=2000000 evaluation.episodes=128",
    "Duel": "env=fighting experiment=duel_features env.emulator=native evaluation.every_steps=0 "
    "evaluation.episodes=100",
    "mine": "env=mine_daily_small env.deposits=1 env.eval_deposits=0 env.deposit.nx=12 "
    "env.deposit.ny=12 env.deposit.nz=8 env.max_steps=200 agent=mlp algo.total_steps=600000 "
    "evaluation.episodes=32",
    "CartPole": "env=gymnasium env.id=CartPole-v1 algo.total_steps=150000 evaluation.episodes=32",
}
QUARTERS = 4
RETURN = "episode/return"
"""Of the training episodes that ended in a rollout."""


def trained(task: str, engine: str, seed: int) -> dict[str, Any]:
    """One run, and what its folder tells of it."""
    own = [*ENGINES[engine], f"seed={seed}", "tracking=disabled"]
    with tempfile.TemporaryDirectory() as folder:
        words = [*TASKS[task].split(), *own, f"hydra.run.dir={folder}/run"]
        subprocess.run([sys.executable, "scripts/train.py", *words], cwd=ROOT, check=True)
        run = Path(folder) / "run"
        summary = json.loads((run / "summary.json").read_text())
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rollouts = [line for line in lines if "time/processor_seconds" in line]
    names = ("eval/success", "eval/return", "random/success", "random/return")
    return {
        "task": task,
        "engine": engine,
        "seed": seed,
        "steps": summary["num_steps"],
        "processor_seconds": sum(line["time/processor_seconds"] for line in rollouts),
        "quarters": quarters(rollouts, summary["num_steps"]),
        **{name: summary[name] for name in names if name in summary},
    }


def quarters(lines: list[dict[str, Any]], steps: int) -> list[float]:
    """Mean return of training episodes in each quarter of the steps."""
    told = [(line["step"], line[RETURN]) for line in lines if RETURN in line]
    parts: list[list[float]] = [[] for _ in range(QUARTERS)]
    for step, found in told:
        parts[min(QUARTERS - 1, (step - 1) * QUARTERS // steps)].append(found)
    return [mean(part) if part else float("nan") for part in parts]


def table(rows: list[dict[str, Any]]) -> str:
    """A line per task and engine, all seeds."""
    lines = [
        "| task | engine | seeds | success, each seed | return, each seed | random play | "
        "training return by quarters, mean of seeds | processor s, mean |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for task in TASKS:
        for engine in ENGINES:
            found = [r for r in rows if (r["task"], r["engine"]) == (task, engine)]
            if not found:
                continue
            found.sort(key=lambda row: row["seed"])
            success = ", ".join(f"{100 * r['eval/success']:.1f} %" for r in found)
            returns = ", ".join(f"{r['eval/return']:.3g}" for r in found)
            chance = mean(r["random/return"] for r in found)
            curves = zip(*(r["quarters"] for r in found), strict=True)
            curve = ", ".join(f"{mean(quarter):.3g}" for quarter in curves)
            seconds = mean(r["processor_seconds"] for r in found)
            seeds = ", ".join(str(r["seed"]) for r in found)
            lines.append(
                f"| {task} | {engine} | {seeds} | {success} | {returns} | {chance:.3g} | "
                f"{curve} | {seconds:.0f} |"
            )
    return "\n".join(lines)


def read(path: Path) -> list[dict[str, Any]]:
    """All rows so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def main() -> None:
    """Run what is missing, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=list(TASKS), metavar="TASK")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print what stands there, run nothing")
    args = parser.parse_args()
    asked = [(t, s, e) for t in args.tasks for s in args.seeds for e in ENGINES]
    there = {(r["task"], r["seed"], r["engine"]) for r in read(args.results)}
    for task, seed, engine in [] if args.table else [a for a in asked if a not in there]:
        row = trained(task, engine, seed)
        with args.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
    print(table(read(args.results)))


if __name__ == "__main__":
    main()
