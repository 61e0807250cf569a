"""Gap to the certified LP bound: classics, learned priorities, zero-shot ones; known values.

    python benchmarks/mine_quality.py values DIR/NAME... [--exact]   # what is published or proven
    python benchmarks/mine_quality.py methods DIR/NAME... [--seconds 20]   # of scripts/solve.py
    python benchmarks/mine_quality.py script DIR/NAME... [--only best] [--seconds 60] [--seeds 3]
    python benchmarks/mine_quality.py classics DIR/NAME...
    python benchmarks/mine_quality.py learned DIR/NAME... [--seconds 150] [--seeds 3] [--no-lp]
    python benchmarks/mine_quality.py cuts DIR/NAME... [--seconds 150 | --decisions 60] [--learn 30]
    python benchmarks/mine_quality.py gradient DIR/NAME... [--seconds 150] [--seeds 3] [--no-lp]
    python benchmarks/mine_quality.py zero-shot DIR/NAME... [--seconds 90] [--deposits 40]
    add --pcpsp for blocks that choose among destinations

Each line of the last five: instance, row, seed, raw gap (two-pass decoder, no search), gap after
shift search and optimal prune, processor seconds of all threads, decodes. The clock counts those,
so that a busy machine changes nothing. Every schedule passes the independent checker.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from mine_rl_npv.data import Instance, published, read_solution
from mine_rl_npv.data.bundled import open_instance
from mine_rl_npv.data.synthetic import varied_instance
from mine_rl_npv.optimise import orders
from mine_rl_npv.optimise.bound import relaxation
from mine_rl_npv.optimise.check import check_shares
from mine_rl_npv.optimise.closure import max_closure
from mine_rl_npv.optimise.decode import Decoder, list_schedule
from mine_rl_npv.optimise.exact import exact_schedule
from mine_rl_npv.optimise.pits import nested_pit_order
from mine_rl_npv.optimise.problem import prepare
from mine_rl_npv.optimise.tight_bound import CutsConfig, tighten
from mine_rl_npv.priority.search import evolve
from mine_rl_npv.priority.shipped import write_policies
from mine_rl_npv.priority.task import Mine, PriorityTask, open_mine
from mine_rl_npv.tools.methods import plan_shares
from mine_rl_npv.tools.solution import peak_mib
from mine_rl_npv.tools.solve_config import Method

SOLVE = Path(__file__).resolve().parents[1] / "scripts/solve.py"


def values(args: argparse.Namespace) -> None:
    """Every published or proven value of the named instances beside ours, with its time."""
    for path in args.instances:
        instance = open_instance(path)
        if instance.name not in published.PIT:
            raise SystemExit(f"{instance.name} is unknown; known are {', '.join(published.PIT)}.")
        pit = max_closure(instance.value, instance.graph)
        if pit.sum() != published.PIT[instance.name][1]:
            raise SystemExit(f"{instance.name}: {pit.sum()} blocks in the pit")
        for what, (known, ours) in known_values(instance, Path(path), args.exact).items():
            compare(what, instance.name, known, ours)


def known_values(
    instance: Instance, path: Path, exact: bool
) -> dict[str, tuple[float, Callable[[], float]]]:
    """What is known about an instance, and how to find it here."""
    name, rows = instance.name, {}
    rows["ultimate pit"] = published.PIT[name][0], partial(pit_value, instance)
    rows["CPIT relaxation"] = (published.CPIT_RELAXATION[name], lambda: relaxation(instance).upper)
    if name in published.PCPSP_RELAXATION:
        rows["PCPSP relaxation"] = (
            published.PCPSP_RELAXATION[name],
            lambda: relaxation(instance, True).upper,
        )
    for file, known in published.SCHEDULES.items():
        if file.startswith(f"{name}_"):
            rows[file] = known, partial(schedule_value, instance, path.with_name(f"{file}.sol"))
    if name in published.GREEDY_FORWARD:
        rows["greedy, forward"] = published.GREEDY_FORWARD[name], partial(greedy_value, instance)
    if exact and name in published.CPIT_OPTIMUM:
        rows["CPIT optimum"] = (
            published.CPIT_OPTIMUM[name],
            lambda: exact_schedule(instance, seconds=900, gap=5e-7).value,
        )
    return rows


def compare(what: str, name: str, known: float, ours: Callable[[], float]) -> None:
    """Prints a known value, ours, and stops where they differ by more than the tolerance."""
    started, spent = time.perf_counter(), time.process_time()
    value = ours()
    spent, wall = time.process_time() - spent, time.perf_counter() - started
    apart = abs(value / known - 1)
    print(
        f"{name:11s} {what:30s} known {known:19,.3f}  ours {value:19,.3f}  apart {apart:.1e}  "
        f"{spent:7.2f} CPU s  {wall:7.2f} wall s",
        flush=True,
    )
    if apart > published.TOLERANCE:
        raise SystemExit(f"{what} of {name} differs")


def pit_value(instance: Instance) -> float:
    return float(instance.value[max_closure(instance.value, instance.graph)].sum())


def schedule_value(instance: Instance, solution: Path) -> float:
    shares = read_solution(solution, instance).sum(axis=1, keepdims=True)
    verdict = check_shares(instance, shares)
    if not verdict.feasible:
        raise SystemExit(f"{solution.name}: {verdict.faults}")
    return verdict.value


def greedy_value(instance: Instance) -> float:
    problem = prepare(instance)
    plan = list_schedule(problem, orders.value_order(problem))
    return problem.worth(plan.period, plan.destination)


def methods(args: argparse.Namespace) -> None:
    """Each method of scripts/solve.py in its own process: value, gap, time, peak memory."""
    for path in args.instances:
        for method in Method:
            if method is Method.compare or (args.only and method.value != args.only):
                continue
            words = [
                f"instance={path}",
                f"method={method.value}",
                f"seconds={args.seconds:g}",
                f"threads={args.threads}",
            ]
            if args.pcpsp:
                words.append("problem=pcpsp")
            done = subprocess.run(
                [sys.executable, str(SOLVE), *words], capture_output=True, text=True, check=False
            )
            told = done.stderr.strip().splitlines()[-1:]
            if not done.returncode:
                lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
                told = [lines[word] for word in ("value", "gap", "time", "memory")]
            print(f"{Path(path).name:11s} {method.value:10s} {'  '.join(told)}", flush=True)


def script(args: argparse.Namespace) -> None:
    """scripts/solve.py by one method with several seeds: gaps to its own bound and to the LP's."""
    for path in args.instances:
        for seed in range(args.first, args.first + args.seeds):
            words = [
                f"instance={path}",
                f"method={args.only or Method.best.value}",
                f"seconds={args.seconds:g}",
                f"threads={args.threads}",
                f"seed={seed}",
            ]
            done = subprocess.run(
                [sys.executable, str(SOLVE), *words], capture_output=True, text=True, check=True
            )
            lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
            value, upper = float(lines["value"]), float(lines["bound"])
            found = re.search(r"LP's ([\d.e+]+)", lines.get("tightened", ""))
            lp = float(found[1]) if found else upper
            print(
                f"{Path(path).name:11s} seed {seed}  {lines['method']:32s} value {value:18,.2f}  "
                f"bound {upper:18,.2f}  gap {100 * (1 - value / upper):.3f} %  to the LP "
                f"{100 * (1 - value / lp):.3f} %  feasible {lines['feasible']}  {lines['time']}",
                flush=True,
            )


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
            "nested pits": nested_pit_order(problem),
        }
        rows |= {f"filling {k}": v for k, v in orders.filling_orders(problem).items()}
        rows |= {f"toposort {k}": v for k, v in orders.toposort_orders(problem, mine.bound).items()}
        print(
            f"{problem.instance.name}: bound {mine.bound.upper!r} primal {mine.bound.primal!r} "
            f"in {mine.bound.seconds:.2f} s, {mine.bound.iterations} iterations"
        )
        for row, key in rows.items():
            started = time.process_time()
            forward = _checked_gap(mine, mine.decode(key, Decoder.forward))
            raw, polished = gaps(mine, key)
            print(
                f"{problem.instance.name:12s} {row:22s} forward {forward:7.3f} %  "
                f"raw {raw:7.3f} %  "
                f"shift {polished:7.3f} %  {time.process_time() - started:6.2f} CPU s",
                flush=True,
            )


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


def cuts(args: argparse.Namespace) -> None:
    """The bound below the LP, TopoSort by its pits, then evolution that sees them."""
    for name in args.instances:
        instance = open_instance(name)
        lp, spent = relaxation(instance), time.process_time()
        tight, line = tighten(instance, lp, CutsConfig(args.seconds, args.decisions))
        spent = time.process_time() - spent
        print(f"{instance.name:12s} {line}, bound {tight.upper!r} in {spent:.0f} CPU s", flush=True)
        mine = open_mine(instance, True, bound=tight)
        keys = orders.toposort_orders(mine.problem, tight)
        best = max(keys.values(), key=lambda k: mine.worth(mine.decode(k, Decoder.two_pass)))
        against_lp(mine, lp.upper)
        show(mine, "toposort + cuts", 0, best, 0.0, len(keys))
        for seed in range(args.first, args.first + args.seeds):
            task = PriorityTask([mine], Decoder.two_pass, args.threads)
            found = evolve([mine], task, args.learn, seed, clock=time.process_time)
            task.close()
            key = found.net.scores(found.weights, mine.features)
            show(mine, "evolution + cuts", seed, key, found.seconds, found.decodes)


def against_lp(mine: Mine, lp: float) -> None:
    """How far the LP's bound lies above the bound that the next rows are held against."""
    print(
        f"{'':12s} add {100 * (lp / mine.bound.upper - 1):.3f} % for the gap to the LP", flush=True
    )


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
    """Trains on synthetic deposits only; the named instances are seen at the end.

    The classics' TopoSort is the best of six orders. So is this: six policies learn side by side,
    each for a sixth of the time from its own seed, and the best of their six schedules counts.
    """
    lp = not args.no_lp
    school = [open_mine(varied_instance(1000 + i), lp) for i in range(args.deposits)]
    tested = [open_mine(open_instance(name), lp) for name in args.instances]
    row = "zero-shot" + (" + LP features" if lp else " (no LP)")
    for seed in range(args.first, args.first + args.seeds):
        task = PriorityTask(school, Decoder.two_pass, args.threads)
        taught = [
            evolve(
                school,
                task,
                args.seconds / args.members,
                args.members * seed + k,
                hidden=args.hidden,
                minibatch=min(args.minibatch, args.deposits),
                clock=time.process_time,
            )
            for k in range(args.members)
        ]
        task.close()
        if args.save:
            write_policies(args.save, taught[0].net, [t.weights for t in taught])
        seconds, decodes = sum(t.seconds for t in taught), sum(t.decodes for t in taught)
        for mine in tested:
            keys = [t.net.scores(t.weights, mine.features) for t in taught]
            each = [_checked_gap(mine, mine.decode(key, Decoder.two_pass)) for key in keys]
            show(mine, row, seed, keys[int(np.argmin(each))], seconds, decodes)
            print(f"{'':12s} each of them: {'  '.join(f'{gap:.3f}' for gap in each)}", flush=True)


MODES = {
    "values": values,
    "methods": methods,
    "script": script,
    "classics": classics,
    "learned": learned,
    "cuts": cuts,
    "gradient": gradient,
    "zero-shot": zero_shot,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("mode", choices=list(MODES))
    parser.add_argument("instances", nargs="+")
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--hidden", type=int, default=6)
    parser.add_argument("--deposits", type=int, default=40)
    parser.add_argument("--minibatch", type=int, default=6)
    parser.add_argument("--no-lp", action="store_true")
    parser.add_argument("--members", type=int, default=6, help="policies of a zero-shot row")
    parser.add_argument("--decisions", type=int, default=0, help="of cuts, instead of --seconds")
    parser.add_argument("--learn", type=float, default=30.0, help="CPU s of evolution after cuts")
    parser.add_argument("--save", type=Path, help="file for the policies of a zero-shot row")
    parser.add_argument("--only", help="one of the methods")
    parser.add_argument("--exact", action="store_true", help="prove newman1's optimum too")
    parser.add_argument("--pcpsp", action="store_true")
    args = parser.parse_args()
    if args.save and not (args.mode == "zero-shot" and args.no_lp and args.seeds == 1):
        parser.error("--save keeps the policies of: zero-shot --no-lp --seeds 1")
    MODES[args.mode](args)


if __name__ == "__main__":
    main()
