"""Learning N++: success per category on test levels, with random, scripted and cloned-only play.

    python benchmarks/npp_rl_learning.py --minutes 15 --seeds 0 1 2 --folder runs/npp_learning

One process per seed, side by side. Each clones the stored solutions of all training levels, then
learns by PPO until its minutes are over, and plays every test level `--episodes` times. Beside it
random play, the path-following script, and the clone without PPO. Prints one table per seed and
the pooled one; intervals are Wilson's at 95 %.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from frugal_rl.config import compose_run
from frugal_rl.run import RunConfig
from frugal_rl.train.checkpoints import save_checkpoint
from frugal_rl.train.evaluate import PolicyPlayer, RandomPlayer, Score, wilson
from frugal_rl.train.trainer import no_meter
from nclone.config import NppConfig
from nclone.levels.generators import CATEGORIES
from npp_rl.cloned_ppo import ClonedPpoLearner
from npp_rl.evaluation import CategoryScore, markdown_table, score_categories
from npp_rl.heuristic import PathFollower


def run_of(args: argparse.Namespace, seed: int) -> RunConfig:
    overrides = [
        "env=nclone",
        f"agent={args.agent}",
        "algo=cloned_ppo",
        "experiment=npp_fast",
        f"env.levels=[{','.join(args.categories)}]",
        f"seed={seed}",
        "hardware.threads=1",
        "algo.total_steps=1000000000",
        *args.overrides,
    ]
    return compose_run(overrides)


def scores(run: RunConfig, args: argparse.Namespace, players: Any) -> list[CategoryScore]:
    assert isinstance(run.env, NppConfig)
    env = replace(run.env, curriculum=False)
    return score_categories(env, run.encoding(), players, args.categories, args.episodes)


def learn(args: argparse.Namespace, seed: int) -> dict[str, Any]:
    """One seed: clone, PPO for the minutes, scores of both; progress goes to a file."""
    run = run_of(args, seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    start = time.time()
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    learner = run.algo.build(run, vec_env)
    assert isinstance(learner, ClonedPpoLearner)
    result: dict[str, Any] = {"cloning": [asdict(e) for e in learner.history]}
    result["cloning_seconds"] = time.time() - start

    def played() -> list[CategoryScore]:
        policy = learner.policy
        policy.set_training_mode(False)
        return scores(run, args, lambda env: PolicyPlayer(policy, True, env.tables))

    result["cloned only"] = _plain(played())
    curve_file = args.folder / f"curve_{seed}.jsonl"
    begun = time.time()
    with curve_file.open("w") as curve:
        while time.time() - start < 60 * args.minutes:
            metrics = learner.iterate(no_meter)
            point = {"seconds": time.time() - start, "steps": learner.num_steps, **metrics}
            curve.write(json.dumps(point) + "\n")
            curve.flush()
    result["steps"] = learner.num_steps
    result["steps_per_second"] = learner.num_steps / (time.time() - begun)
    result["trained"] = _plain(played())
    save_checkpoint(
        args.folder / f"policy_{seed}.pt", {"policy": dict(learner.policy.state_dict())}
    )
    return result


def baselines(args: argparse.Namespace) -> dict[str, Any]:
    run = run_of(args, 0)
    space = run.env.action_space()
    return {
        "random": _plain(
            scores(run, args, lambda e: RandomPlayer(e.encoding, e.tables, space, seed=0))
        ),
        "follow the path": _plain(scores(run, args, lambda e: PathFollower(e.encoding, e.tables))),
    }


def _plain(rows: list[CategoryScore]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=45.0, help="wall time of each seed")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--agent", default="attention_small")
    parser.add_argument("--categories", nargs="+", default=list(CATEGORIES))
    parser.add_argument("--episodes", type=int, default=1, help="per test level")
    parser.add_argument("--folder", type=Path, default=Path("runs/npp_learning"))
    parser.add_argument("--overrides", nargs="*", default=[])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
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
    rows["cloned only"] = _pooled([s["cloned only"] for s in seeds])
    rows["cloned, then PPO"] = _pooled([s["trained"] for s in seeds])
    steps = ", ".join(f"{s['steps']:,} ({s['steps_per_second']:.0f}/s)" for s in seeds)
    table = markdown_table(rows)
    print(f"{args.agent}, {len(seeds)} seeds, {args.minutes:g} minutes each, steps: {steps}\n")
    print(table)
    (args.folder / "table.md").write_text(table + "\n")


if __name__ == "__main__":
    main()
