"""One run on two hosts: bytes on the cable beside the planned ones, and what a cut cable does.

    python benchmarks/two_hosts.py [--only WORD]

The hosts are network namespaces of this machine (root, `ip`), joined by 1 ms and 1 Gbit/s,
then by 20 ms and 100 Mbit/s. `sent` is what left the first host's card per update, headers, metrics
and acknowledgements included; `planned` what `scripts/plan.py` says, its seconds those of the
network alone. Then the cable is cut for 5 s, and for good.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from frugal_rl.report.wire import wire_of
from frugal_rl.run.compose import compose_run
from frugal_rl.testing.hosts import Host, missing, two_hosts

SIZES = [
    "env=toy", "agent=mlp", "agent.actor=[256,256]", "agent.critic=[256,256]", "algo.num_envs=16",
    "algo.n_steps=64", "algo.batch_size=512", "algo.n_epochs=4", "tracking=disabled",
    "hardware.threads=1", "evaluation.episodes=2", "launch=torchrun", "launch.nodes=2",
    "launch.processes=1",
]  # fmt: skip
PORT = 29400
LIMIT_S = 240


def started(hosts: tuple[Host, Host], folder: Path, *words: str) -> list[subprocess.Popen[str]]:
    """The same command on both hosts."""
    meet = f"launch.meet={hosts[0].address}:{PORT}"
    command = [sys.executable, "scripts/train.py", *SIZES, *words, meet, "sweep.ledger=''"]
    command.append(f"hydra.run.dir={folder}")
    return [host.start([*command, f"launch.address={host.address}"]) for host in hosts]


def updates(folder: Path) -> int:
    """Iterations that the first process has logged."""
    file = folder / "metrics.jsonl"
    lines = file.read_text().splitlines() if file.is_file() else []
    return sum("train/loss" in line for line in lines)


def wait_for(folder: Path, count: int, runs: list[subprocess.Popen[str]]) -> None:
    """Wait for so many updates."""
    until = time.monotonic() + LIMIT_S
    while updates(folder) < count and time.monotonic() < until:
        if any(run.poll() is not None for run in runs):
            break
        time.sleep(0.02)


def ended(runs: list[subprocess.Popen[str]], limit_s: float = 300) -> list[tuple[int, str]]:
    """Exit status and last line of each launcher."""
    told = []
    for run in runs:
        said, _ = run.communicate(timeout=limit_s)
        lines = [line for line in said.splitlines() if line.strip()]
        told.append((run.returncode, " | ".join(lines[-2:])))
    return told


def per_update(
    hosts: tuple[Host, Host], delay_ms: float, rate_mbit: float, first: int, last: int
) -> str:
    """What leaves a host between two updates, and their time, beside the plan."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = started(hosts, folder, "algo.total_steps=71680")
        wait_for(folder, first, runs)
        began, sent, count = time.monotonic(), hosts[0].sent_bytes(), updates(folder)
        wait_for(folder, last, runs)
        seconds, sent, count = (
            time.monotonic() - began,
            hosts[0].sent_bytes() - sent,
            updates(folder) - count,
        )
        told = ended(runs)
        if count < last - first - 5:
            return f"the run ended early: {told}"
        gradient = sum(p for n, p in parts(folder).items() if n == "gradients")
        cable = [f"launch.latency_ms={delay_ms:g}", f"launch.bandwidth_gbit={rate_mbit / 1000:g}"]
        wire = wire_of(compose_run([*SIZES, *cable]), gradient)
        return (
            f"planned {wire.update_bytes:,} B, sent {sent // count:,} B per update "
            f"({sent / count / wire.update_bytes:.3f}); planned {wire.update_seconds:.3f} s of "
            f"network, {seconds / count:.3f} s per update; "
            f"ends {[code for code, _ in told]}"
        )


def parts(folder: Path) -> dict[str, int]:
    """Bytes by name, as the run's plan has them."""
    plan = json.loads((folder / "plan.json").read_text())
    return {part["name"]: part["ram_bytes"] for part in plan["parts"]}


def cut_for(hosts: tuple[Host, Host], seconds: float | None, timeout_s: float) -> str:
    """What a run says whose cable is cut for some seconds, or for good."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        steps = "algo.total_steps=81920" if seconds else "algo.total_steps=100000000"
        words = [steps, f"launch.timeout_s={timeout_s:g}", "checkpoint_every_steps=4096"]
        runs = started(hosts, folder, *words)
        wait_for(folder, 8, runs)
        hosts[0].cut()
        began = time.monotonic()
        if seconds:
            time.sleep(seconds)
            hosts[0].mend()
        told = ended(runs)
        hosts[0].mend()
        return f"{time.monotonic() - began:.0f} s after the cut: {told}"


def main() -> None:
    """All four, or one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    why = missing()
    if why:
        sys.exit(f"There can be no two hosts here: {why}.")
    cases = {
        "1 ms, 1 Gbit/s": (1, 1000, lambda hosts: per_update(hosts, 1, 1000, 10, 60)),
        "20 ms, 100 Mbit/s": (20, 100, lambda hosts: per_update(hosts, 20, 100, 3, 15)),
        "cut for 5 s": (1, 1000, lambda hosts: cut_for(hosts, 5, 60)),
        "cut for good": (1, 1000, lambda hosts: cut_for(hosts, None, 20)),
    }
    for name, (delay, rate, look) in cases.items():
        if given.only in name:
            with two_hosts(delay, rate) as hosts:
                print(f"{name}: {look(hosts)}", flush=True)


if __name__ == "__main__":
    main()
