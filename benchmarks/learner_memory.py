"""What each switch of the learner changes: peak of one minibatch's update, its speed, its result.

    python benchmarks/learner_memory.py [--only WORD] [--out FOLDER] [--seconds 4] [--markdown FILE]

Each row is a learner in a process of its own, built from the words that a user types, on the same
observations and first weights. `peak` is what one update holds at most above weights, optimiser
and minibatch; `gradient` the largest difference from the first row's, over its largest number. A
finished row in FOLDER is not repeated. One torch thread; speed is per second of processor time.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from stable_baselines3.common.type_aliases import DictRolloutBufferSamples as Minibatch
from torch import Tensor

from frugal_rl.learn.gauge import Gauge
from frugal_rl.learn.update import Record, Update
from frugal_rl.memory.allocator import pin_allocator
from frugal_rl.memory.choices import Allocator
from frugal_rl.run.compose import compose_run
from frugal_rl.run.probe_rows import play
from frugal_rl.run.trainer import no_meter

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy

ENVS, STEPS = 16, 4
CASES = {
    "pictures, 4 x 144 x 160": ("env=fighting env.obs=gray agent=cnn", 256),
    "perceptron, 2 x 256": ("env=nclone agent.actor=[256,256] agent.critic=[256,256]", 4096),
    "mine's columns": ("env=mine_cpit", 256),
    "attention, graph by id": ("env=nclone agent=attention", 64),
}
"""Words and samples of a minibatch."""
FOURTH, SIXTEENTH = "memory.micro_batch={fourth}", "memory.micro_batch={sixteenth}"
RECOMPUTE = "memory.gradient_checkpointing=true"
SWITCHES = (
    "",
    FOURTH,
    SIXTEENTH,
    RECOMPUTE,
    f"{SIXTEENTH} {RECOMPUTE}",
    "memory.precision=bf16",
    "agent.channels_last={other}",
    "memory.allocator=default",
    "algo.fused_adam=true",
    "algo.compile=true",
)
HEAD = """# Memory of the learner

`python benchmarks/learner_memory.py`: CPU, one thread, torch {}; samples per second of processor
time.
"""
COMMON = ["tracking=disabled", f"algo.num_envs={ENVS}", f"algo.n_steps={STEPS}", "seed=0"]


def one(words: list[str], batch: int, seconds: float) -> dict[str, object]:
    """Peak in bytes, samples per second, and the first gradient, of one learner."""
    torch.set_num_threads(1)
    run = compose_run([*words, *COMMON, f"algo.batch_size={ENVS * STEPS}"])
    micro = run.memory.micro_batch
    if run.memory.allocator is Allocator.pinned:
        pin_allocator()
    torch.manual_seed(0)
    run = replace(run, memory=replace(run.memory, micro_batch=0))
    vec_env = run.env.make_vec(ENVS, run.encoding(), run.memory, run.vec, "train")
    played = play(run, vec_env)
    torch.manual_seed(0)
    learner = run.algo.build(run, vec_env)
    first = learner.optimizer.flat.detach().clone()
    learner.iterate(no_meter)  # loads kernels, and compiles where asked to
    with torch.no_grad():
        learner.optimizer.flat.copy_(first)
    update = Update(learner.policy, learner.optimizer, micro)
    observations = played.minibatch(batch, batch, learner.policy.device)
    torch.manual_seed(1)
    actions = allowed(learner.policy, observations, batch)
    noise = [torch.randn(batch) for _ in range(4)]
    samples = Minibatch(observations, actions, *noise)
    terms = replace(learner.config.terms(0.0), target_kl=None, max_grad_norm=1e9)
    gauge = Gauge(torch.device("cpu"))

    def call() -> None:
        update.learn(samples, terms, Record())

    began = time.process_time()
    call()
    gradient = learner.optimizer.gradient.clone().numpy()
    starting = time.process_time() - began
    peak = max(gauge.growth(call) for _ in range(2))
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    rate = batch / statistics.median(times)
    return {"peak": peak, "rate": rate, "gradient": gradient, "starting": starting}


def allowed(policy: FrugalPolicy, observations: dict[str, Tensor], batch: int) -> Tensor:
    """Actions [B, 1] that no mask forbids, whatever the arithmetic of the network."""
    if policy.mask_name:
        weights = policy.decoder(observations)[policy.mask_name].float()
    else:
        weights = torch.ones(batch, int(policy.action_space.n))  # type: ignore[attr-defined]
    return torch.multinomial(weights, 1).float()


def measure(case: str, switch: str, out: Path, seconds: float) -> dict[str, object] | str:
    """A row in a process of its own, or the reason why it is refused."""
    words, batch = CASES[case]
    filled = switch.format(
        fourth=batch // 4, sixteenth=batch // 16, other=str("mine" not in case).lower()
    )
    name = re.sub(r"[^a-z0-9]+", "_", f"{case} {filled}".lower()).strip("_")
    file = out / f"{name}.npz"
    if not file.is_file():
        command = [sys.executable, __file__, "--one", f"{words} {filled}", "--batch", str(batch)]
        command += ["--seconds", str(seconds), "--out", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
    with np.load(file) as found:
        return {k: found[k] for k in found.files} | {"words": filled}


def table(case: str, out: Path, seconds: float) -> list[str]:
    """The rows of one network."""
    words, batch = CASES[case]
    lines = [
        f"## {case}: `{words}`, {batch:,} samples",
        "",
        "| switch | peak MiB | of first | samples/s | of first | gradient |",
        "|---|---|---|---|---|---|",
    ]
    first: dict[str, object] = {}
    for switch in SWITCHES:
        row = measure(case, switch, out, seconds)
        if isinstance(row, str):
            lines.append(f"| `{switch}` | - | - | - | - | {row} |")
        else:
            first = first or row
            lines.append(shown(row, first))
        print(lines[-1], flush=True)
    return [*lines, ""]


def shown(row: dict[str, object], first: dict[str, object]) -> str:
    """One row beside the first."""
    gradient, expected = np.asarray(row["gradient"]), np.asarray(first["gradient"])
    apart = np.abs(gradient - expected).max() / np.abs(expected).max()
    peak, rate = float(row["peak"]), float(row["rate"])  # type: ignore[arg-type]
    peaks, rates = float(first["peak"]), float(first["rate"])  # type: ignore[arg-type]
    words = f"`{row['words']}`" if row["words"] else "none: float32, whole minibatch"
    return (
        f"| {words} | {peak / 2**20:,.1f} | {peak / peaks:.2f} | {rate:,.0f} | {rate / rates:.2f} "
        f"| {'equal' if apart == 0 else f'{apart:.0e}'} |"
    )


def main() -> None:
    """All networks, or the child's one row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=Path("runs/learner_memory"))
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--one")
    parser.add_argument("--batch", type=int)
    args = parser.parse_args()
    if args.one:
        found = one(args.one.split(), args.batch, args.seconds)
        with tempfile.NamedTemporaryFile(dir=args.out.parent, suffix=".npz", delete=False) as file:
            np.savez(file, **found)  # type: ignore[arg-type]
        Path(file.name).replace(args.out)
        print(json.dumps({k: v for k, v in found.items() if k != "gradient"}))
        return
    args.out.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    for case in CASES:
        if args.only in case:
            lines += table(case, args.out, args.seconds)
    if args.markdown:
        head = HEAD.format(torch.__version__)
        args.markdown.write_text("\n".join([head, *lines]))


if __name__ == "__main__":
    main()
