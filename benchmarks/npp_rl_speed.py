"""Environment steps per second of whole iterations, collecting and learning, by agent and preset.

    python benchmarks/npp_rl_speed.py [--rows small fast published] [--steps 32]

Rollouts are shortened to `--steps` steps of 128 environments (an iteration's time is proportional
to them: minibatches keep their size and their number of distinct graphs); the published row uses 8.
The first iteration, which builds graphs, is not counted. `cpu` is the processor time per wall time:
below the number of threads, something else was running.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import dataclass
from typing import Any

import torch

from frugal_rl.run.compose import compose_run
from frugal_rl.run.trainer import no_meter


@dataclass(frozen=True)
class Row:
    """One configuration: its overrides beside the common ones."""

    overrides: tuple[str, ...]
    steps: int = 0


ROWS = {
    "small": Row(("agent=attention_small", "experiment=npp_fast")),
    "fast": Row(("agent=attention", "experiment=npp_fast")),
    "fast bf16": Row(("agent=attention", "experiment=npp_fast", "memory.precision=bf16")),
    "published": Row(("agent=attention", "experiment=npp_published"), steps=8),
}


def measure(row: Row, levels: str, steps: int, iterations: int) -> dict[str, Any]:
    run = compose_run(
        [
            "env=nclone",
            "memory=lossless",
            f"env.levels=[{levels}]",
            f"algo.n_steps={row.steps or steps}",
            *row.overrides[:1],
            *row.overrides[1:],
        ]
    )
    torch.manual_seed(0)
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    learner = run.algo.build(run, vec_env)
    learner.iterate(no_meter)
    before, start, cpu = learner.num_steps, time.perf_counter(), time.process_time()
    for _ in range(iterations):
        learner.iterate(no_meter)
    wall = time.perf_counter() - start
    return {
        "parameters": sum(p.numel() for p in learner.policy.parameters()),
        "steps_per_second": (learner.num_steps - before) / wall,
        "per_cpu_second": (learner.num_steps - before) / (time.process_time() - cpu),
        "cpu": (time.process_time() - cpu) / wall,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--levels", default="simple")
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--iterations", type=int, default=2)
    args = parser.parse_args()
    print("| preset | parameters | steps/s | steps per CPU second | cpu | peak GiB |")
    print("|---|---|---|---|---|---|")
    for name in args.rows:
        r = measure(ROWS[name], args.levels, args.steps, args.iterations)
        print(
            f"| {name} | {r['parameters']:,} | {r['steps_per_second']:.0f} "
            f"| {r['per_cpu_second']:.0f} | {r['cpu']:.2f} | {r['peak_gib']:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
