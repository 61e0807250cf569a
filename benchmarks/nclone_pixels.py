"""Learning easy levels from two drawn frames only and from vectors only, beside random play.

    python benchmarks/nclone_pixels.py --folder runs/nclone_pixels  # both kinds, 3 seeds
    python benchmarks/nclone_pixels.py --folder runs/nclone_pixels --plot docs/pictures/pixels.png

`pixels` is `experiment=npp_pixels` (no vector but the action mask), `state` the main job. Every
100,000 steps the most likely actions are played for 128 episodes, 32 on each level (evaluation
seed, other starts than in training); a seed ends after `--steps`, or once three evaluations in a
row won everything. Curves are files in the folder, and a run that was cut off goes on from its
last evaluation. Without `--plot` the table of all curves is printed at the end.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from matplotlib.figure import Figure
from stable_baselines3.common.utils import set_random_seed

from frugal_rl.run.checkpoints import load_checkpoint, save_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.evaluate import PolicyPlayer, RandomPlayer, Result, evaluate, evaluation_env
from frugal_rl.run.generators import rng_state, set_rng_state
from frugal_rl.run.trainer import no_meter

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

KINDS = {
    "pixels": ["experiment=npp_pixels"],
    "state": [],
}
EVERY_STEPS, EPISODES, WON_IN_A_ROW = 100_000, 128, 3
COLOURS = {"pixels": "tab:blue", "state": "tab:orange"}


def run_of(kind: str, seed: int, steps: int, overrides: list[str]) -> RunConfig:
    words = ["env=nclone", "memory=parallel", *KINDS[kind], f"seed={seed}", "hardware.threads=1"]
    run = compose_run([*words, f"algo.total_steps={steps}", *overrides])
    return replace(run, evaluation=replace(run.evaluation, episodes=EPISODES))


def point(result: Result, steps: int, seconds: float) -> dict[str, Any]:
    levels = {name: score.means["success"] for name, score in result.levels.items()}
    success = result.score.means["success"]
    return {"steps": steps, "seconds": seconds, "success": success, "levels": levels}


def learn(run: RunConfig, curve: Path) -> None:
    """One seed; appends a line to `curve` per evaluation."""
    lines = [json.loads(line) for line in curve.read_text().splitlines()] if curve.exists() else []
    done = lines[-WON_IN_A_ROW:]
    if len(done) == WON_IN_A_ROW and all(p["success"] == 1 for p in done):
        return
    set_random_seed(run.seed)
    torch.set_num_threads(1)
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    eval_env, learner = evaluation_env(run), run.algo.build(run, vec_env)
    kept, before = curve.with_suffix(".pt"), 0.0
    if lines and kept.exists():
        content = load_checkpoint(kept)
        learner.load(content["learner"])
        set_rng_state(content["rng"])
        before = lines[-1]["seconds"]
    began, won = time.process_time(), 0
    due = (learner.num_steps // EVERY_STEPS + 1) * EVERY_STEPS
    while learner.num_steps < run.algo.total_steps and won < WON_IN_A_ROW:
        learner.iterate(no_meter)
        if learner.num_steps < due:
            continue
        due += EVERY_STEPS
        player = PolicyPlayer(learner.policy, True, eval_env.tables)
        spent = before + time.process_time() - began
        found = point(evaluate(run, eval_env, player), learner.num_steps, spent)
        won = won + 1 if found["success"] == 1 else 0
        save_checkpoint(kept, {"learner": learner.state(), "rng": rng_state()})
        with curve.open("a") as file:
            file.write(json.dumps(found) + "\n")
        print(curve.stem, json.dumps(found), flush=True)


def random_play(run: RunConfig, episodes: int) -> dict[str, Any]:
    run = replace(run, evaluation=replace(run.evaluation, episodes=episodes))
    env = evaluation_env(run)
    player = RandomPlayer(run.encoding(), env.tables, env.action_space, run.evaluation.seed)
    return point(evaluate(run, env, player), 0, 0.0)


def read(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted(folder.glob("*.jsonl"))
    }


def table(curves: dict[str, list[dict[str, Any]]], chance: dict[str, Any]) -> None:
    names = list(chance["levels"])
    print("| run | all won first at, steps | last steps | CPU seconds | success | by level |")
    print("|---|---|---|---|---|---|")
    print(f"| random play | - | - | - | {chance['success']:.1%} | {by_level(chance, names)} |")
    for name, points in curves.items():
        first = next((f"{p['steps']:,}" for p in points if p["success"] == 1), "never")
        last = points[-1]
        print(
            f"| {name} | {first} | {last['steps']:,} | {last['seconds']:.0f} "
            f"| {last['success']:.1%} | {by_level(last, names)} |"
        )


def by_level(found: dict[str, Any], names: list[str]) -> str:
    return ", ".join(f"{name} {found['levels'].get(name, 0):.0%}" for name in names)


def plot(curves: dict[str, list[dict[str, Any]]], chance: float, path: Path) -> None:
    figure = Figure(figsize=(7.5, 4), layout="constrained")
    axes = figure.add_subplot()
    seen: set[str] = set()
    for name, points in curves.items():
        kind = name.partition("_")[0]
        axes.plot(
            [0.0, *(p["steps"] / 1e6 for p in points)],
            [100 * chance, *(100 * p["success"] for p in points)],
            color=COLOURS[kind], linewidth=1.4, alpha=0.8,
            label=None if kind in seen else f"{kind} only, one line per seed",
        )  # fmt: skip
        seen.add(kind)
    axes.axhline(100 * chance, color="grey", linestyle=":", label="random play")
    axes.set_xlabel("environment steps, millions")
    axes.set_ylabel("evaluation episodes won, %")
    axes.set_ylim(0, 118)  # room for the legend
    axes.set_yticks(range(0, 101, 20))
    axes.set_xlim(left=0)
    axes.legend(loc="upper left")
    unfinished = path.with_suffix(".part.png")
    figure.savefig(unfinished, dpi=110)
    unfinished.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--folder", type=Path, default=Path("runs/nclone_pixels"))
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=2_000_000)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--overrides", nargs="*", default=[], help="of both kinds")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    chance = random_play(run_of("state", 0, args.steps, args.overrides), 4 * EPISODES)
    if args.plot:
        plot(read(args.folder), chance["success"], args.plot)
        return
    for seed in args.seeds:
        for kind in args.kinds:
            learn(
                run_of(kind, seed, args.steps, args.overrides), args.folder / f"{kind}_{seed}.jsonl"
            )
    table(read(args.folder), chance)


if __name__ == "__main__":
    main()
