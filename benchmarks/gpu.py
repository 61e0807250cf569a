"""On a CUDA device: predicted against measured device memory, and training speed.

python benchmarks/gpu.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
SHORT = ["env=nclone", "memory=parallel", "tracking=disabled", "evaluation.episodes=8"]
LARGE = ["algo.num_envs=1024", "algo.n_steps=128", "algo.batch_size=32768"]
WIDE = ["agent.actor=[1024,1024]", "agent.critic=[1024,1024]"]
CASES: dict[str, list[str]] = {
    "cpu, 128 envs": ["hardware.device=cpu"],
    "cuda, 128 envs": ["hardware.device=cuda"],
    "cuda, 1024 envs": ["hardware.device=cuda", *LARGE],
    "cuda, 1024 envs, rollout on the device": [
        "hardware.device=cuda",
        *LARGE,
        "memory.rollout_location=device",
    ],
    "cuda, 1024 envs, pinned rollout": [
        "hardware.device=cuda",
        *LARGE,
        "memory.rollout_location=pinned",
    ],
    "cpu, 1024 envs, 2 x 1024": ["hardware.device=cpu", *LARGE, *WIDE],
    "cuda, 1024 envs, 2 x 1024": ["hardware.device=cuda", *LARGE, *WIDE],
    "cuda, 1024 envs, 2 x 1024, bf16": [
        "hardware.device=cuda",
        *LARGE,
        *WIDE,
        "memory.precision=bf16",
    ],
    "cuda, 1024 envs, 2 x 1024, micro-batches": [
        "hardware.device=cuda",
        *LARGE,
        *WIDE,
        "memory.micro_batch=8192",
    ],
}
MIB = 1 << 20


def run(overrides: list[str], folder: Path) -> str:
    """One short training run; its line of the table."""
    iteration = 1024 * 128 if "algo.num_envs=1024" in overrides else 128 * 128
    words = [*SHORT, *overrides, f"algo.total_steps={8 * iteration}", f"hydra.run.dir={folder}"]
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "scripts/train.py", *words], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        return f"failed: {(done.stderr or done.stdout).strip()[-600:]}"
    summary = json.loads((folder / "summary.json").read_text())
    plan = json.loads((folder / "plan.json").read_text())
    measured = {k: v for k, v in summary.items() if "device" in k}
    predicted = plan["vram_bytes"] / MIB
    shown = "  ".join(f"{k.removeprefix('memory/')} {v / MIB:,.1f}" for k, v in measured.items())
    return (
        f"predicted {predicted:9,.1f} MiB   measured {shown or '-'}   "
        f"{summary['steps_per_second']:9,.0f} steps/s   ({time.perf_counter() - began:.0f} s)"
    )


def main() -> None:
    """Print one line per case."""
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "no CUDA device"
    print(f"{name}, torch {torch.__version__}", flush=True)
    for title, overrides in CASES.items():
        if "cuda" in title and not torch.cuda.is_available():
            continue
        with tempfile.TemporaryDirectory() as folder:
            print(f"{title:42} {run(overrides, Path(folder))}", flush=True)


if __name__ == "__main__":
    main()
