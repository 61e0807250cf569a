"""Which levels to train on: one agent per mix, judged on levels that none of them trained on.

    python benchmarks/npp_rl_transfer.py train NAME --levels plain lively [--minutes 15] [--agent A]
    python benchmarks/npp_rl_transfer.py judge NAME NAME ... [--judged lively drawn] [--agent A]

`plain` names the nine older categories, `lively` rooms, machines and marathon; whatever else is
named is a level as `env.levels` takes it. One seed per run, one thread; minutes are processor time,
cloning included. The policy is written every minute, so that a run that is stopped leaves one.
`judge` plays the test levels of each category, the bundled and the drawn levels, each `--episodes`
times with sampled actions, beside random play, the path-following script and the searcher; with
`--overrides agent.lookahead.samples=16` it looks ahead.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from frugal_rl.run.checkpoints import load_checkpoint, save_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.evaluate import RandomPlayer, Score, play_episodes, policy_player
from frugal_rl.run.trainer import no_meter
from nclone.levels.bundled import bundled_names
from nclone.levels.generators import LIVELY, PLAIN
from nclone.levels.sources import open_levels
from nclone.search.proof import Prover
from npp_rl.heuristic import PathFollower

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

SETS = {"plain": PLAIN, "lively": LIVELY, "bundled": bundled_names(), "drawn": ("drawn",)}
SEED = 1_000_003
SAVE_SECONDS = 60.0


def run_of(agent: str, levels: list[str], overrides: list[str]) -> RunConfig:
    """The fast experiment on the named levels."""
    names = [name for group in levels for name in SETS.get(group, (group,))]
    settings = ["env=nclone", f"agent={agent}", "algo=cloned_ppo", "experiment=npp_fast"]
    settings += ["tracking=disabled", "hardware.threads=1", f"env.levels=[{','.join(names)}]"]
    return compose_run([*settings, *overrides])


def train(args: argparse.Namespace) -> None:
    """Clone and learn until the minutes are over; write policy, curve and what it took."""
    folder = args.folder / args.names[0]
    folder.mkdir(parents=True, exist_ok=True)
    run = run_of(args.agent, args.levels, args.overrides)
    torch.manual_seed(run.seed)
    torch.set_num_threads(1)
    started, limit = time.process_time(), 60 * args.minutes
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    learner: Any = run.algo.build(run, vec_env)
    cloned = (time.process_time() - started) / 60
    print(f"cloned after {cloned:.1f} minutes: {learner.history[-1]}", flush=True)
    saved = time.monotonic()
    with (folder / "curve.jsonl").open("w") as curve:
        while time.process_time() - started < limit and learner.num_steps < run.algo.total_steps:
            metrics = learner.iterate(no_meter)
            minutes = (time.process_time() - started) / 60
            curve.write(json.dumps({"minutes": minutes, "steps": learner.num_steps, **metrics}))
            curve.write("\n")
            if time.monotonic() - saved > SAVE_SECONDS:
                curve.flush()
                _write(folder, learner, args, minutes, cloned)
                saved = time.monotonic()
    _write(folder, learner, args, (time.process_time() - started) / 60, cloned)
    print(f"{learner.num_steps:,} steps in {(time.process_time() - started) / 60:.1f} minutes")


def _write(
    folder: Path, learner: Any, args: argparse.Namespace, minutes: float, cloned: float
) -> None:
    save_checkpoint(folder / "policy.pt", {"policy": dict(learner.policy.state_dict())})
    facts = {"levels": args.levels, "overrides": args.overrides, "minutes": minutes}
    facts |= {"cloning_minutes": cloned, "steps": learner.num_steps}
    (folder / "facts.json").write_text(json.dumps(facts))


def groups_of(judged: list[str]) -> list[tuple[str, tuple[str, ...]]]:
    """What stands in one column: a category, or all levels of another set."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for name in judged:
        members = SETS.get(name, (name,))
        apart = name in ("plain", "lively")
        found += [(m, (m,)) for m in members] if apart else [(name, tuple(members))]
    return found


def score(run: RunConfig, levels: tuple[str, ...], make: Any, episodes: int) -> Score:
    """Every level of a group played the same number of times."""
    env: Any = replace(run.env, levels=levels, eval_levels=(), curriculum=False)
    count = len(open_levels(levels, "eval"))
    vec_env = env.make_vec(count, run.encoding(), run.memory, None, "eval")
    try:
        with torch.random.fork_rng():
            torch.manual_seed(SEED)
            return Score.of(play_episodes(vec_env, make(vec_env), count * episodes, SEED, 0))
    finally:
        vec_env.close()


def searched(levels: tuple[str, ...]) -> Score:
    """The searcher within its usual budget, led by distances and then without them."""
    prover = Prover()
    found = [prover.solution(level) is not None for level in open_levels(levels, "eval")]
    return Score.of({"success": np.array(found, float)})


def judge(args: argparse.Namespace) -> None:
    """Print a table: players as rows, groups of levels as columns."""
    torch.set_num_threads(1)
    groups = groups_of(args.judged)
    print("| player | " + " | ".join(name for name, _ in groups) + " |")
    print("|---" * (len(groups) + 1) + "|")
    graph = compose_run(["env=nclone", "env.obs=graph"])
    run = run_of(args.agent, ["walk"], args.overrides)
    space = run.env.action_space()
    rows: list[tuple[str, Any, Any]] = [
        ("random", run, lambda e: RandomPlayer(e.encoding, e.tables, space, seed=0)),
        ("follow the path", graph, lambda e: PathFollower(e.encoding, e.tables)),
    ]
    for name, config, make in [] if args.bare else rows:
        _row(name, [score(config, levels, make, args.episodes) for _, levels in groups])
    if not args.bare:
        _row("searcher", [searched(levels) for _, levels in groups])
    for name in args.names:
        policy = _policy(run, args.folder / name / "policy.pt")
        make = lambda e, p=policy: policy_player(run, p, e, args.greedy)  # noqa: E731
        began = time.process_time()
        found = [score(run, levels, make, args.episodes) for _, levels in groups]
        seconds = time.process_time() - began
        _row(name, found)
        steps = sum(s.episodes * s.means["length"] for s in found)
        print(
            f"{name}: {seconds:.0f} processor seconds, {1000 * seconds / steps:.1f} ms a decision",
            file=sys.stderr,
        )


def _policy(run: RunConfig, path: Path) -> Any:
    vec_env = run.env.make_vec(1, run.encoding(), run.memory, None, "eval")
    policy = replace(run.algo, cloning=replace(run.algo.cloning, epochs=0)).build_policy(  # type: ignore[attr-defined]
        run, vec_env
    )
    policy.load_state_dict(load_checkpoint(path)["policy"])
    policy.set_training_mode(False)
    return policy


def _row(name: str, scores: list[Score]) -> None:
    cells = [
        f"{100 * s.means['success']:.0f} ({100 * s.success_low:.0f}-{100 * s.success_high:.0f})"
        for s in scores
    ]
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=("train", "judge"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--levels", nargs="+", default=["plain"])
    parser.add_argument("--judged", nargs="+", default=list(SETS))
    parser.add_argument("--agent", default="attention_fast", help="of all that are named")
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--episodes", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("runs/npp_transfer"))
    parser.add_argument("--overrides", nargs="*", default=[])
    parser.add_argument("--greedy", action="store_true", help="most probable actions")
    parser.add_argument("--bare", action="store_true", help="without random play and searcher")
    args = parser.parse_args()
    (train if args.task == "train" else judge)(args)


if __name__ == "__main__":
    main()
