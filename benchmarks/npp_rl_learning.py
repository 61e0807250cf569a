"""Learning N++: success per category on test levels, with random, scripted and cloned-only play.

    python benchmarks/npp_rl_learning.py [--steps 8000000] [--seeds 0 1 2] [--folder FOLDER]
    python benchmarks/npp_rl_learning.py --plot docs/pictures/npp_learning.png --folder FOLDER

One process and one thread per seed, side by side. Each clones the stored solutions of all training
levels, then learns by PPO, and plays every test level once, with sampled and with the most probable
actions. Beside it random play, the path-following script, and the clone without PPO. Prints each
seed's table and the pooled one; intervals are Wilson's at 95 %. Minutes are processor time: what
the run takes on a core of its own, whatever else the machine does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from matplotlib.figure import Figure

from frugal_rl.run.checkpoints import save_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.evaluate import PolicyPlayer, RandomPlayer, Score, wilson
from frugal_rl.run.trainer import no_meter
from nclone.config import NppConfig
from nclone.levels.generators import PLAIN
from npp_rl.evaluation import CategoryScore, markdown_table, score_categories
from npp_rl.heuristic import PathFollower

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.run.config import RunConfig


def run_of(args: argparse.Namespace, seed: int) -> RunConfig:
    overrides = [
        "env=nclone",
        f"agent={args.agent}",
        "algo=cloned_ppo",
        "experiment=npp_fast",
        "tracking=disabled",
        f"env.levels=[{','.join(args.categories)}]",
        f"seed={seed}",
        "hardware.threads=1",
        f"algo.total_steps={args.steps}",
        *args.overrides,
    ]
    return compose_run(overrides)


def scores(run: RunConfig, args: argparse.Namespace, players: Any) -> list[dict[str, Any]]:
    assert isinstance(run.env, NppConfig)
    env = replace(run.env, curriculum=False)
    found = score_categories(env, run.encoding(), players, args.categories, args.episodes)
    return [asdict(row) for row in found]


def both_ways(run: RunConfig, args: argparse.Namespace, policy: FrugalPolicy) -> dict[str, Any]:
    """The policy's scores with sampled and with the most probable actions."""
    policy.set_training_mode(False)
    return {
        name: scores(run, args, lambda env, d=best: PolicyPlayer(policy, d, env.tables))
        for name, best in (("sampled", False), ("most probable", True))
    }


def learn(args: argparse.Namespace, seed: int) -> dict[str, Any]:
    """One seed: clone, PPO, scores of both; progress goes to a file."""
    run = run_of(args, seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    clock = time.process_time
    start = clock()
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    learner = run.algo.build(run, vec_env)
    result: dict[str, Any] = {"cloning_minutes": (clock() - start) / 60}
    result["cloning"] = [asdict(e) for e in getattr(learner, "history", [])]
    result["cloned only"] = both_ways(run, args, learner.policy)
    begun = clock()
    with (args.folder / f"curve_{seed}.jsonl").open("w") as curve:
        minutes = result["cloning_minutes"]
        while learner.num_steps < args.steps and minutes < args.minutes:
            metrics = learner.iterate(no_meter)
            minutes = result["cloning_minutes"] + (clock() - begun) / 60
            point = {"minutes": minutes, "steps": learner.num_steps, **metrics}
            curve.write(json.dumps(point) + "\n")
            curve.flush()
    result["minutes"] = minutes
    result["steps"] = learner.num_steps
    result["steps_per_second"] = learner.num_steps / (clock() - begun)
    result["trained"] = both_ways(run, args, learner.policy)
    weights = {"policy": dict(learner.policy.state_dict())}
    save_checkpoint(args.folder / f"policy_{seed}.pt", weights)
    return result


def baselines(args: argparse.Namespace) -> dict[str, Any]:
    """Random play, and the script, which reads the graph whatever the agent reads."""
    run = run_of(args, 0)
    graph = compose_run(["env=nclone", "env.obs=graph"])
    space = run.env.action_space()
    return {
        "random": scores(run, args, lambda e: RandomPlayer(e.encoding, e.tables, space, seed=0)),
        "follow the path": scores(graph, args, lambda e: PathFollower(e.encoding, e.tables)),
    }


def _pooled(seeds: list[list[dict[str, Any]]]) -> list[CategoryScore]:
    """Episodes of all seeds together, category by category."""
    pooled = []
    for rows in zip(*seeds, strict=True):
        count = sum(r["score"]["episodes"] for r in rows)
        wins = sum(r["score"]["episodes"] * r["score"]["means"]["success"] for r in rows)
        low, high = wilson(wins, count)
        share = sum(r["time_share"] for r in rows) / len(rows)
        score = Score(count, {"success": wins / count}, low, high)
        pooled.append(CategoryScore(rows[0]["category"], score, share))
    return pooled


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=8_000_000, help="of PPO, each seed")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop a seed after these")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--agent", default="attention_fast")
    parser.add_argument("--categories", nargs="+", default=list(PLAIN))
    parser.add_argument("--episodes", type=int, default=1, help="per test level")
    parser.add_argument("--folder", type=Path, default=Path("runs/npp_learning"))
    parser.add_argument("--overrides", nargs="*", default=[])
    parser.add_argument("--plot", type=Path, help="draw the curves of an earlier run instead")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    return parser


def plot(args: argparse.Namespace) -> None:
    """Share of training episodes won over steps, mean of twenty rollouts, and over minutes."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    by_steps, by_minutes = figure.subplots(1, 2, sharey=True)
    for seed in args.seeds:
        lines = (args.folder / f"curve_{seed}.jsonl").read_text().splitlines()
        points = [json.loads(line) for line in lines]
        won = np.convolve([p["episode/success"] for p in points], np.full(20, 1 / 20), "valid")
        for axes, name, scale in ((by_steps, "steps", 1e6), (by_minutes, "minutes", 1.0)):
            axes.plot([p[name] / scale for p in points[19:]], won, label=f"seed {seed}")
    by_steps.set(xlabel="PPO steps, millions", ylabel="training episodes won", ylim=(0, 1))
    by_minutes.set(xlabel="minutes of one core, cloning included")
    by_steps.legend()
    for axes in (by_steps, by_minutes):
        axes.grid(alpha=0.3)
    unfinished = args.plot.with_suffix(".part.png")
    figure.savefig(unfinished, dpi=110)
    unfinished.replace(args.plot)


def main() -> None:
    args = arguments().parse_args()
    if args.plot:
        plot(args)
        return
    args.folder.mkdir(parents=True, exist_ok=True)
    if args.one is not None:
        result = learn(args, args.one)
        (args.folder / f"seed_{args.one}.json").write_text(json.dumps(result, indent=1))
        return
    command = [sys.executable, *sys.argv]
    running = [subprocess.Popen([*command, "--one", str(seed)]) for seed in args.seeds]
    if any(process.wait() for process in running):
        sys.exit("A seed failed; its message is above.")
    seeds = [json.loads((args.folder / f"seed_{s}.json").read_text()) for s in args.seeds]
    rows = {name: _pooled([found]) for name, found in baselines(args).items()}
    for stage in ("cloned only", "trained"):
        for way in ("sampled", "most probable"):
            for number, found in zip(args.seeds, seeds, strict=True):
                if stage == "trained":
                    rows[f"{stage}, {way}, seed {number}"] = _pooled([found[stage][way]])
            rows[f"{stage}, {way}, all seeds"] = _pooled([s[stage][way] for s in seeds])
    table = markdown_table(rows)
    for number, s in zip(args.seeds, seeds, strict=True):
        print(
            f"seed {number}: {s['cloning_minutes']:.1f} minutes of cloning, {s['minutes']:.1f} in "
            f"all, {s['steps']:,} steps, {s['steps_per_second']:,.0f} steps per processor second"
        )
    print(f"\n{args.agent} {' '.join(args.overrides)}\n\n{table}")
    (args.folder / "table.md").write_text(table + "\n")


if __name__ == "__main__":
    main()
