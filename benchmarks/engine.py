"""Iterations of the compiled engine beside the exact one's and other trainers', and sgemm.

python benchmarks/engine.py [--threads 1 2] [--rounds 7] [--sbx PYTHON] [--rltools PYTHON]
    [--peers NAME ...] [NUMBER OF A CASE ...]

PPO with 4 epochs, minibatches of 2,048, 64 numbers observed, 4 actions, 128 steps; two perceptrons
of two layers. Each trainer is a process of its own on the same cores; all take turns, round by
round. Rates are medians; factors are medians of paired rounds, with the least and the largest.
`sgemm` is the best of OpenBLAS and MKL on 1,024 x 1,024 matrices in the same round; a share of it
is the update's matrix products alone over all of its time, of the processor on one thread, by the
clock on several. SBX needs jax and RLtools (`engine_rltools.py`) MKL, in environments of their
own; without their interpreters they are left out. RLtools has a Gaussian policy only: four means
where the others have four choices.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from statistics import median

from engine_turns import EPOCHS, Case, Peer, Seconds, command

CASES = ((64, 64), (256, 64), (64, 256), (256, 256))
"""Environments, width of two hidden layers."""
PEERS = ("SB3", "SBX", "plain loop", "RLtools", "exact", "compiled")
PRODUCTS_FLOPS = 4 * 2 * 1024**3
HEAD = (
    "envs | network | threads | trainer | update, samples per processor s | by the clock "
    "| compiled : it, processor | by the clock | all, steps per processor s | by the clock "
    "| compiled : it, processor | by the clock | GFLOP/s | of sgemm's"
)
BARS = {"sgemm": 0.5, "exact": 2.0, "SBX": 1.0}
"""What the compiled engine's update should come to; the first for 2 x 64 units."""
Rounds = dict[str, list[Seconds]]


def told(text: str) -> None:
    """What happens now, over what was said before."""
    print(f"\r{text:<78}", end="", file=sys.stderr, flush=True)


def measure(case: Case, names: Sequence[str], rounds: int, pythons: dict[str, str]) -> Rounds:
    """All rounds of a case; `sgemm` is the last of each."""
    peers: dict[str, Peer] = {}
    found: Rounds = {name: [] for name in (*names, "sgemm")}
    where = f"{case.num_envs} envs, 2 x {case.hidden}, {case.threads} threads"
    for name in found:
        told(f"{where}: starting {name}")
        peers[name] = Peer(command(name, case, pythons), case.threads)
    for number in range(rounds):
        for name, peer in peers.items():
            told(f"{where}: round {number + 1} of {rounds}, {name}")
            found[name].append(peer.ask())
    for peer in peers.values():
        peer.close()
    told("")
    print("\r", end="", file=sys.stderr)
    return found


def roofs(found: Rounds, clock: bool) -> list[float]:
    """Operations per second of the better library, round by round."""
    pairs = [
        (s.collect_wall, s.update_wall) if clock else (s.collect, s.update) for s in found["sgemm"]
    ]
    return [PRODUCTS_FLOPS / min(pair) for pair in pairs]


def shares(case: Case, found: Rounds, name: str) -> list[float]:
    """Of the roof, round by round."""
    clock = case.threads > 1
    times = [s.of_update(clock) for s in found[name]]
    return [case.flops / t / r for t, r in zip(times, roofs(found, clock), strict=True)]


def factors(found: Rounds, name: str, seconds: Callable[[Seconds], float]) -> list[float]:
    """How many times faster the compiled engine is than a trainer, round by round."""
    pairs = zip(found[name], found["compiled"], strict=True)
    return sorted(seconds(other) / seconds(ours) for other, ours in pairs)


def row(case: Case, found: Rounds, name: str) -> str:
    """One trainer."""
    cells = [f"{case.num_envs} | 2 x {case.hidden} | {case.threads} | {name}"]
    for samples, read in ((case.steps * EPOCHS, Seconds.of_update), (case.steps, Seconds.of_all)):
        spans = [[read(s, clock) for s in found[name]] for clock in (False, True)]
        cells += [f"{samples / median(span):,.0f}" for span in spans]
        for clock in (False, True):
            ratios = (
                factors(found, name, lambda s, r=read, c=clock: r(s, c))
                if "compiled" in found
                else []
            )
            cells.append(spread(ratios) if ratios and name != "compiled" else "")
    of_roof = median(shares(case, found, name))
    clock = case.threads > 1
    rate = case.flops / median(s.of_update(clock) for s in found[name])
    return f"| {' | '.join(cells)} | {rate / 1e9:.0f} | {of_roof:.0%} |"


def roof_row(case: Case, found: Rounds) -> str:
    """What the machine makes of matrix products alone."""
    rate = median(roofs(found, case.threads > 1)) / 1e9
    sizes = f"{case.num_envs} | 2 x {case.hidden} | {case.threads}"
    return f"| {sizes} | sgemm{' |' * 9} {rate:.0f} | |"


def spread(ratios: Sequence[float]) -> str:
    """The median, the least and the largest."""
    return f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"


def bars(case: Case, found: Rounds) -> str:
    """The compiled engine's update beside what it should come to."""
    clock = case.threads > 1
    came = {"sgemm": median(shares(case, found, "compiled"))} if case.hidden == 64 else {}
    for name in ("exact", "SBX"):
        if name in found:
            came[name] = median(factors(found, name, lambda s: s.of_update(clock)))
    words = [
        f"{c:.3f} of {n} (bar {BARS[n]}{'' if c >= BARS[n] else ', missed'})"
        for n, c in came.items()
    ]
    by = "by the clock" if clock else "processor"
    return (
        f"- {case.num_envs} x 2 x {case.hidden}, {case.threads} threads, {by}: {', '.join(words)}"
    )


def main() -> None:
    """Print the table, then the bars."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sbx", default="", help="an interpreter that has sbx-rl")
    parser.add_argument("--rltools", default="", help="one that has rltools, mkl, mkl-include")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("cases", nargs="*", type=int)
    args = parser.parse_args()
    pythons = {"SBX": args.sbx, "RLtools": args.rltools}
    names = [name for name in args.peers if pythons.get(name, "here")]
    print(f"| {HEAD} |\n|{'---|' * 14}", flush=True)
    verdicts = []
    for sizes in [CASES[i] for i in args.cases] or CASES:
        for threads in args.threads:
            case = Case(*sizes, threads)
            found = measure(case, names, args.rounds, pythons)
            print("\n".join(row(case, found, name) for name in names))
            print(roof_row(case, found), flush=True)
            if "compiled" in names:
                verdicts.append(bars(case, found))
    print("\n" + "\n".join(verdicts))


if __name__ == "__main__":
    main()
