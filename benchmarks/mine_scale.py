"""What a mine of any size costs: bound, schedule, audit, stage by stage, on one thread.

    python benchmarks/mine_scale.py 100x100x100 [54x50x40 ...] [--periods 10] [--slope-levels 8]
    python benchmarks/mine_scale.py 67x67x67 --learned

Grows a synthetic deposit, solves it as `scripts/solve.py method=toposort` would, and prints
processor seconds and peak memory after each stage, the gap and the checker's verdict. `--learned`
solves it by the shipped policies instead, which need no bound and search nothing.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from mine_rl_npv.data.economics import MinePlan, model_instance
from mine_rl_npv.data.synthetic import Deposit, block_model
from mine_rl_npv.optimise.bound import Bound, relaxation
from mine_rl_npv.optimise.check import check_shares
from mine_rl_npv.optimise.decode import list_schedule
from mine_rl_npv.optimise.orders import toposort_orders
from mine_rl_npv.optimise.problem import prepare
from mine_rl_npv.priority.features import block_features
from mine_rl_npv.priority.shipped import shipped_orders
from mine_rl_npv.tools.methods import plan_shares
from mine_rl_npv.tools.solution import peak_mib

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Instance


class Stages:
    """Prints each stage's processor seconds and the peak so far."""

    def __init__(self) -> None:
        self.last = self.first = time.process_time()

    def done(self, words: str) -> None:
        """Ends a stage."""
        now = time.process_time()
        spent, self.last = now - self.last, now
        print(f"  {words:52s} {spent:8.1f} CPU s  {peak_mib():7.0f} MiB peak", flush=True)


def measure(size: tuple[int, int, int], periods: int, levels: int, learned: bool) -> None:
    """One deposit of `size` cells."""
    stages = Stages()
    model = block_model(Deposit(*size, seed=3, richness=0.5))
    plan = MinePlan(periods=periods, rate=0.1, slope_levels=levels)
    instance = model_instance(model, None, plan, "x".join(map(str, size)))
    print(f"{instance.name}: {instance.blocks:,} blocks", flush=True)
    stages.done(f"model, slopes ({instance.graph.arcs:,} arcs), pit")
    bound = None if learned else _bound(instance, stages)
    problem = prepare(instance, prices=None if bound is None else bound.prices)
    if bound is None:
        keys = shipped_orders(block_features(problem)).values()
        stages.done(f"what the policies see of {problem.blocks:,} blocks")
    else:
        keys = toposort_orders(problem, bound).values()
    plans = (list_schedule(problem, key, two_pass=True) for key in keys)
    best = max(plans, key=lambda plan: problem.worth(plan.period, plan.destination))
    stages.done(f"six schedules of {problem.blocks:,} blocks")
    verdict = check_shares(instance, plan_shares(problem, best))
    audit = verdict.slopes.line() if verdict.slopes is not None else "no slopes"
    stages.done("checker and slope audit")
    gap = "no bound" if bound is None else f"gap {100 * (1 - verdict.value / bound.upper):.4f} %"
    print(
        f"  value {verdict.value:,.0f}, {gap}, feasible "
        f"{'yes' if verdict.feasible else verdict.faults}; slopes {audit}; "
        f"{time.process_time() - stages.first:.1f} CPU s in all, {peak_mib():.0f} MiB peak"
    )


def _bound(instance: Instance, stages: Stages) -> Bound:
    return relaxation(
        instance,
        watch=lambda i, upper, primal, cells: stages.done(
            f"bound {i}: {upper:,.0f} over {primal:,.0f}, {cells} cells"
        ),
    )


def main() -> None:
    """Each size in turn."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("sizes", nargs="+", help="cells, as 100x100x100")
    parser.add_argument("--periods", type=int, default=10)
    parser.add_argument("--slope-levels", type=int, default=8)
    parser.add_argument("--learned", action="store_true", help="the shipped policies, no bound")
    args = parser.parse_args()
    for words in args.sizes:
        nx, ny, nz = map(int, words.split("x"))
        measure((nx, ny, nz), args.periods, args.slope_levels, args.learned)


if __name__ == "__main__":
    main()
