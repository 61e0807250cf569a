"""PPO with a 3D CNN on the daily mine, against greedy, on deposits it has never seen.

    python benchmarks/mine_daily.py [--seconds 300] [--seed 0] [override ...]

Deposits of 20 x 20 x 10 by seed; 64 to train on, 16 held out; 500 days, as the guide caps them.
Weights are chosen by what they earn on 16 of the training deposits; the held-out ones are dug once,
at the end. Prints the mean share of the pit's undiscounted value that each way to dig has earned,
and on how many held-out deposits the policy is ahead of which greedy rule. The clock counts
processor seconds of one thread, so that a busy machine changes nothing.

`LP bound` is certified: no digger, whatever it knows, earns more on average. A day digs one block,
so 500 days are 20 periods of 25 blocks, each at the discount of its first day; `LP, TopoSort` digs
in the order of that relaxation, block by block at each day's own discount.

Greedy digs the open column whose next block is worth most (`greedy`); with the look-ahead of the
policy's own features, the one whose best run of blocks from the top is worth most, in all (`run`)
or per block (`run mean`); or the one in the best floating cone (`cone`), which knows what lies
under every neighbour.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch

from frugal_rl.observation.history import History
from frugal_rl.run.compose import compose_run
from frugal_rl.run.evaluate import PolicyPlayer
from frugal_rl.run.trainer import no_meter
from mine_rl_npv.optimise.bound import relaxation
from mine_rl_npv.optimise.orders import cone_order
from mine_rl_npv.optimise.problem import prepare
from mine_rl_npv.tools.risk import toposort_plan
from mine_rl_npv.vec_env import MineBatch

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Instance
    from mine_rl_npv.game import MineGame
    from mine_rl_npv.rules.layout import MineLayout

RIVALS = ("greedy", "run", "run mean", "cone")
CHUNK = 25
"""Days of a period of the relaxation."""
JUDGED = 16
"""Training deposits by which weights are chosen."""


def play(run, choose, split: str = "eval") -> np.ndarray:
    """Share earned on each held-out, or judged training, deposit (deposits,); one pit each."""
    held = run.env.mines().chosen(split)[:JUDGED]
    batch = MineBatch(run.env.game(len(held)), run.encoding(), held)
    batch.reset(0)
    for n, mine in enumerate(held):
        batch.game.begin(np.array([n]), np.array([mine]))
    history = History(batch.encoding, len(held), run.env.episode_steps)
    rows = history.reset(batch.rows())
    share = np.full(len(held), np.nan)
    while np.isnan(share).any():
        step = batch.step(choose(batch.game, rows))
        if step.ended is not None:
            first = np.isnan(share[step.ended.index])
            share[step.ended.index[first]] = step.ended.stats["share"][first]
        rows, _ = history.push(step.rows, step.done)
    return share


def best_open(game: MineGame, worth: dict[int, np.ndarray]) -> np.ndarray:
    """The open column whose next block has the highest worth, by mine."""
    actions = np.zeros(game.num_worlds, np.int64)
    for n in range(game.num_worlds):
        k = int(game.pits.mine[n])
        opened = np.flatnonzero(game.pits.place[n] >= 0)
        block = game.mines.layouts[k].column_start[opened] + game.pits.depth[n, opened]
        actions[n] = opened[worth[k][block].argmax()]
    return actions


def best_runs(layout: MineLayout) -> tuple[np.ndarray, np.ndarray]:
    """Per block, of the runs of blocks from it downwards: the best sum, and the best mean."""
    value, start = layout.value[:, 0], layout.column_start
    best, mean = value.copy(), value.copy()
    for first, stop in pairwise(start):
        for b in range(first, stop):
            sums = np.cumsum(value[b:stop])
            best[b] = sums.max()
            mean[b] = (sums / np.arange(1, len(sums) + 1)).max()
    return best, mean


def planned(run) -> dict[str, np.ndarray]:
    """Shares (deposits,) of the relaxation's certified bound, and of digging in its order."""
    mines = run.env.mines()
    shares = {"LP bound": [], "LP, TopoSort": []}
    game = run.env.game(1)
    for k in mines.chosen("eval")[:JUDGED].tolist():
        layout, scale = mines.layouts[k], float(game.arena.scale[k])
        timed = in_chunks(layout, run.env.episode_steps, run.env.yearly_rate)
        bound = relaxation(timed)
        shares["LP bound"].append(bound.upper / scale)
        period = toposort_plan(timed, bound)
        mined = np.flatnonzero(period >= 0)
        rank = np.argsort(timed.graph.order)
        order = mined[np.lexsort((rank[mined], period[mined]))]
        daily = (1.0 + run.env.yearly_rate) ** (-np.arange(len(order)) / 365.0)
        shares["LP, TopoSort"].append(float(timed.value[order] @ daily) / scale)
    return {name: np.array(found) for name, found in shares.items()}


def in_chunks(layout: MineLayout, days: int, yearly_rate: float) -> Instance:
    """The daily mine as periods of `CHUNK` days, a block each; the first day's discount for all."""
    instance = layout.instance
    value = np.zeros(instance.blocks)
    value[layout.block] = layout.value[:, 0]
    periods = -(-days // CHUNK)
    return replace(
        instance,
        value=value,
        use=np.ones((instance.blocks, 1)),
        low=np.zeros((1, periods)),
        high=np.full((1, periods), float(CHUNK)),
        periods=periods,
        rate=(1.0 + yearly_rate) ** (CHUNK / 365.0) - 1.0,
        destination_value=value[:, None],
        destination_use=np.ones((instance.blocks, 1, 1)),
    )


def players(run) -> dict:
    mines = run.env.mines()
    rng = np.random.default_rng(0)
    worth = {name: {} for name in RIVALS}
    for k in mines.chosen("eval").tolist():
        layout = mines.layouts[k]
        worth["greedy"][k] = layout.value[:, 0]
        worth["run"][k], worth["run mean"][k] = best_runs(layout)
        problem = prepare(layout.instance)
        by_block = np.zeros(layout.instance.blocks)
        by_block[problem.inside] = cone_order(problem)
        worth["cone"][k] = by_block[layout.block]  # from the instance's order to the environment's

    def random(game, rows):
        return np.array([rng.choice(np.flatnonzero(m)) for m in game.masks()])

    def rule(name):
        return lambda game, rows: best_open(game, worth[name])

    return {"random": random} | {name: rule(name) for name in worth}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--every", type=float, default=30.0, help="CPU seconds between two trials")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("overrides", nargs="*")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    run = compose_run(
        [
            "env=mine_daily_small",
            "experiment=mine_daily",
            "agent=cnn3d_tiny",
            "agent.head=columns",
            "agent.channels_last=true",
            "hardware.threads=1",
            f"seed={args.seed}",
            *args.overrides,
        ]
    )
    shares = {name: play(run, choose) for name, choose in players(run).items()}
    for name, share in (planned(run) | shares).items():
        print(f"{name:12s} mean share {share.mean():.5f}", flush=True)
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    learner = run.algo.build(run, vec_env)
    player = PolicyPlayer(learner.policy, deterministic=True)
    started, wall = time.process_time(), time.perf_counter()
    best, kept, at, last, metrics = -np.inf, {}, 0, -args.every, {}
    while True:
        spent = time.process_time() - started
        if spent - last >= args.every or spent > args.seconds:
            last = spent
            share = play(run, lambda game, rows: player(rows), "train").mean()
            if share > best:
                best, at = share, learner.num_steps
                kept = {name: w.clone() for name, w in learner.policy.state_dict().items()}
            print(
                f"seed {args.seed}  {spent:5.0f} CPU s  {time.perf_counter() - wall:6.0f} wall s  "
                f"{learner.num_steps:8d} steps  training deposits {share:.5f}  explained variance "
                f"{metrics.get('train/explained_variance', 0.0):.3f}",
                flush=True,
            )
            if spent > args.seconds:
                break
        metrics = learner.iterate(no_meter)
    learner.policy.load_state_dict(kept)
    share = play(run, lambda game, rows: player(rows))
    ahead = ", ".join(f"{name} {int((share > shares[name]).sum())}" for name in RIVALS)
    print(
        f"seed {args.seed}  held out {share.mean():.5f}  weights of {at} steps  ahead of {ahead} "
        f"of {len(share)}  {time.perf_counter() - wall:.0f} wall s",
        flush=True,
    )


if __name__ == "__main__":
    main()
