"""What each part of the N++ agent is worth: success on test levels after equal processor time.

    python benchmarks/npp_rl_ablation.py [--cells NAME ...] [--seeds 0 1 2] [--minutes 10]
    python benchmarks/npp_rl_ablation.py --table

One cell after the other, each with cloning and PPO inside the same minutes of processor time and a
constant learning rate, on all nine older categories; then the 64 test levels of each are played
once, with sampled actions and without looking ahead. A row per cell and seed is added to
`--results`, and what stands there is not run again; `--table` prints what stands there, seeds
pooled, with Wilson's interval at 95 %. Compare cells of one seed: they ran on one machine, one
after the other.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from npp_rl_learning import scores

from frugal_rl.run.compose import compose_run
from frugal_rl.run.evaluate import PolicyPlayer, wilson
from frugal_rl.run.trainer import no_meter
from nclone.levels.generators import PLAIN

RESULTS = Path(__file__).with_name("results") / "npp_rl_ablation.jsonl"
SHOWN = ("simplest_with_mines", "medium", "complex", "exploration", "mine_heavy")
BASE = "foresight"


@dataclass(frozen=True)
class Cell:
    """One line of the table: in what it differs from the first."""

    overrides: tuple[str, ...] = ()
    agent: str = "attention_foresight"
    algo: str = "cloned_ppo"
    experiment: str = "npp_fast"
    passes: int = 3
    """Over the demonstrations, before PPO; 0 leaves cloning out."""


FEWER = "algo.cloning.validation=0.7"
"""Three tenths of the levels, seen once: as long as others clone with all of them, three times."""
LESSONS = (
    "algo.teacher.rounds=2",
    "algo.teacher.levels=256",
    "algo.teacher.epochs=1",
    "algo.teacher.budget_frames=20000",
)
"""A third of the lessons that a run has unless asked otherwise, so that PPO keeps most minutes."""

CELLS = {
    BASE: Cell(),
    "without foresight": Cell(agent="attention_fast"),
    "without the path ahead": Cell(("agent.path_features=0",)),
    "without the tiles around": Cell(("agent.window_features=0",)),
    "without the dangers around": Cell(("agent.hazard_features=0",)),
    "without attention over objectives": Cell(("agent.objectives.head=none",)),
    "graph network in place of both": Cell(
        ("algo.cloning.batch_size=4096", FEWER), agent="attention_small", passes=1
    ),
    "pixels in place of all": Cell((FEWER,), agent="cnn", experiment="npp_pixels", passes=1),
    "without cloning": Cell(passes=0),
    "lessons of the searcher": Cell(LESSONS, algo="dagger_ppo"),
    "curriculum of categories": Cell(("env.curriculum=true",)),
    "evolved levels": Cell(("env.evolved=1024",)),
}


def learned(name: str, seed: int, minutes: float) -> dict[str, Any]:
    """Clone, learn until the minutes are over, play the test levels."""
    cell = CELLS[name]
    run = compose_run(
        [
            "env=nclone",
            f"agent={cell.agent}",
            f"algo={cell.algo}",
            f"experiment={cell.experiment}",
            f"env.levels=[{','.join(PLAIN)}]",
            f"seed={seed}",
            "tracking=disabled",
            "hardware.threads=1",
            "algo.total_steps=1000000000",
            "algo.learning_rate=5e-4",
            f"algo.cloning.epochs={cell.passes}",
            *cell.overrides,
        ]
    )
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    start, limit = time.process_time(), 60 * minutes
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    learner: Any = run.algo.build(run, vec_env)
    cloned = time.process_time() - start
    while time.process_time() - start < limit:
        learner.iterate(no_meter)
    spent = time.process_time() - start
    learner.policy.set_training_mode(False)
    asked = argparse.Namespace(categories=list(PLAIN), episodes=1)
    played = scores(run, asked, lambda env: PolicyPlayer(learner.policy, False, env.tables))
    wins = {
        row["category"]: round(row["score"]["episodes"] * row["score"]["means"]["success"])
        for row in played
    }
    return {
        "cell": name,
        "seed": seed,
        "minutes": round(spent / 60, 2),
        "cloning_minutes": round(cloned / 60, 2),
        "steps": learner.num_steps,
        "levels": played[0]["score"]["episodes"],
        "won": wins,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The cells' shares of test levels won, seeds pooled, in percent."""
    lines = ["| cell | seeds | minutes | PPO steps | all nine | " + " | ".join(SHOWN) + " |"]
    lines.append("|---" * (5 + len(SHOWN)) + "|")
    for name in CELLS:
        found = [row for row in rows if row["cell"] == name]
        if not found:
            continue
        count = sum(row["levels"] for row in found)
        parts = [
            _share([row["won"][c] for row in found for c in names], count * len(names))
            for names in (PLAIN, *((c,) for c in SHOWN))
        ]
        minutes = np.mean([row["minutes"] for row in found])
        steps = np.mean([row["steps"] for row in found])
        seeds = ", ".join(map(str, sorted(row["seed"] for row in found)))
        lines.append(f"| {name} | {seeds} | {minutes:.1f} | {steps:,.0f} | {' | '.join(parts)} |")
    return "\n".join(lines)


def _share(wins: list[int], count: int) -> str:
    low, high = wilson(sum(wins), count)
    return f"{100 * sum(wins) / count:.0f} ({100 * low:.0f}-{100 * high:.0f})"


def read(path: Path) -> list[dict[str, Any]]:
    """All rows so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", nargs="+", default=list(CELLS), choices=list(CELLS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print what stands there, run nothing")
    args = parser.parse_args()
    if args.table:
        print(table(read(args.results)))
        return
    for seed in args.seeds:
        for name in args.cells:
            if any((row["cell"], row["seed"]) == (name, seed) for row in read(args.results)):
                continue
            row = learned(name, seed, args.minutes)
            with args.results.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(table([row]).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
