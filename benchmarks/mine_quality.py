"""Gap to the certified LP bound: classics, learned priorities, zero-shot ones.

    python benchmarks/mine_quality.py classics DIR/NAME...
    python benchmarks/mine_quality.py learned DIR/NAME... [--seconds 150] [--seeds 3] [--no-lp]
    python benchmarks/mine_quality.py gradient DIR/NAME... [--seconds 150] [--seeds 3] [--no-lp]
    python benchmarks/mine_quality.py zero-shot DIR/NAME... [--seconds 170] [--deposits 40]
    add --pcpsp for blocks that choose among destinations

Each line: instance, row, seed, raw gap (two-pass decoder, no search), gap after shift search and
optimal prune, processor seconds of all threads, decodes. The clock counts those, so that
a busy machine changes nothing. Every schedule passes the independent checker.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from mine_rl_npv.data.bundled import open_instance
from mine_rl_npv.data.synthetic import varied_instance
from mine_rl_npv.optimise import orders
from mine_rl_npv.optimise.check import check_shares
from mine_rl_npv.priority.search import Learned, evolve
from mine_rl_npv.priority.task import Decoder, Mine, PriorityTask, open_mine
from mine_rl_npv.solve import peak_mib, plan_shares


def gaps(mine: Mine, priority: np.ndarray, decoder: Decoder = Decoder.two_pass) -> tuple:
    """Raw and polished gap in per cent, both checked."""
    plan = mine.decode(priority, decoder)
    raw = _checked_gap(mine, plan)
    mine.polish(plan)
    return raw, _checked_gap(mine, plan)


def _checked_gap(mine: Mine, plan) -> float:
    instance = mine.problem.instance
    verdict = check_shares(instance, plan_shares(mine.problem, plan))
    if not verdict.feasible:
        raise SystemExit(f"infeasible schedule: {verdict.faults}")
    return 100.0 * (1.0 - verdict.value / mine.bound.upper)


def show(mine: Mine, row: str, seed: int, priority: np.ndarray, seconds: float, decodes: int):
    raw, polished = gaps(mine, priority)
    print(
        f"{mine.problem.instance.name:12s} {row:22s} seed {seed}  raw {raw:7.3f} %  "
        f"shift {polished:.3f} %  {seconds:5.0f} CPU s  {decodes:6d} decodes  {peak_mib():.0f} MiB",
        flush=True,
    )


def classics(args: argparse.Namespace) -> None:
    for name in args.instances:
        mine = open_mine(open_instance(name), True, args.pcpsp)
        problem = mine.problem
        rows = {
            "random": orders.random_order(problem, 0),
            "bench": orders.bench_order(problem),
            "greedy": orders.value_order(problem),
            "cone": orders.cone_order(problem),
            "gershon": orders.gershon_order(problem),
            "cone ratio": orders.ratio_order(problem),
            "nested pits": orders.nested_pit_order(problem),
        } | {f"toposort {k}": v for k, v in orders.toposort_orders(problem, mine.bound).items()}
        print(
            f"{problem.instance.name}: bound {mine.bound.upper!r} primal {mine.bound.primal!r} "
            f"in {mine.bound.seconds:.2f} s, {mine.bound.iterations} iterations"
        )
        for row, key in rows.items():
            started = time.perf_counter()
            forward = _checked_gap(mine, mine.decode(key, Decoder.forward))
            spent = time.perf_counter() - started
            print(f"{problem.instance.name:12s} {row:22s} forward {forward:7.3f} %", end="  ")
            show(mine, row, 0, key, spent, 1)


def learned(args: argparse.Namespace) -> None:
    row = "evolution" + (" (no LP)" if args.no_lp else " + LP features")
    for name in args.instances:
        mine = open_mine(open_instance(name), not args.no_lp, args.pcpsp)
        for seed in range(args.first, args.first + args.seeds):
            task = PriorityTask([mine], Decoder.two_pass, args.threads)
            best = evolve(
                [mine], task, args.seconds, seed, hidden=args.hidden, clock=time.process_time
            )
            task.close()
            key = best.net.scores(best.weights, mine.features)
            show(mine, row, seed, key, best.seconds, best.decodes)


def gradient(args: argparse.Namespace) -> None:
    from mine_rl_npv.priority.gradient import ascend

    row = "policy gradient" + (" (no LP)" if args.no_lp else " + LP features")
    for name in args.instances:
        mine = open_mine(open_instance(name), not args.no_lp, args.pcpsp)
        for seed in range(args.first, args.first + args.seeds):
            task = PriorityTask([mine], Decoder.two_pass, args.threads)
            best = ascend([mine], task, args.seconds, seed)
            task.close()
            show(mine, row, seed, best.priority(mine.features), best.seconds, best.decodes)


def zero_shot(args: argparse.Namespace) -> None:
    """Trains on synthetic deposits only; the named instances are seen once, at the end."""
    lp = not args.no_lp
    school = [open_mine(varied_instance(1000 + i), lp) for i in range(args.deposits)]
    tested = [open_mine(open_instance(name), lp) for name in args.instances]
    row = "zero-shot" + (" + LP features" if lp else " (no LP)")
    for seed in range(args.first, args.first + args.seeds):
        task = PriorityTask(school, Decoder.two_pass, args.threads)
        best: Learned = evolve(
            school, task, args.seconds, seed, hidden=args.hidden,
            minibatch=min(args.minibatch, args.deposits), clock=time.process_time,
        )  # fmt: skip
        task.close()
        for mine in tested:
            key = best.net.scores(best.weights, mine.features)
            show(mine, row, seed, key, best.seconds, best.decodes)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("mode", choices=["classics", "learned", "gradient", "zero-shot"])
    parser.add_argument("instances", nargs="+")
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--hidden", type=int, default=6)
    parser.add_argument("--deposits", type=int, default=40)
    parser.add_argument("--minibatch", type=int, default=6)
    parser.add_argument("--no-lp", action="store_true")
    parser.add_argument("--pcpsp", action="store_true")
    args = parser.parse_args()
    modes = {
        "classics": classics, "learned": learned, "gradient": gradient, "zero-shot": zero_shot,
    }  # fmt: skip
    modes[args.mode](args)


if __name__ == "__main__":
    main()
