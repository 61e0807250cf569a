"""Many random steps over all categories, every field checked: no exception, no NaN, in range.

    python benchmarks/nclone_random_play.py --steps 10000000

The steps are shared by the four observation profiles and both splits of the bundled pool. All
stored fields of every step are looked at (finite, within their declared range); what is derived is
computed for every 50th step (frames, graph nodes, windows). Prints counts.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np
import torch

from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.decoder import Decoder, to_tensors
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import Stored
from nclone.config import NppConfig
from nclone.graph.fields import STATIC_FIELDS
from nclone.levels.generators import PLAIN
from nclone.spec import Observation
from nclone.vec_env import NppVecEnv

PADDED = frozenset(f.name for f in STATIC_FIELDS)
SHARES = {Observation.state: 0.4, Observation.graph: 0.3, Observation.pixels: 0.2,
          Observation.full: 0.1}  # fmt: skip
DERIVE_EVERY = 50


def check(name: str, values: np.ndarray, low: float, high: float) -> None:
    """Finite and within the declared range, or an error that says where."""
    worst = (float(values.min()), float(values.max()))
    if not (np.isfinite(worst).all() and low <= worst[0] and worst[1] <= high):
        raise ValueError(f"{name} lies in {worst}, declared [{low}, {high}]")


def play(observation: Observation, split: str, num_envs: int, steps: int) -> Counter[str]:
    config = NppConfig(obs=observation, levels=tuple(PLAIN))
    spec = config.spec()
    encoding = Encoding.choose(spec, Storage.lossless, fields={"action_mask": "dense"})
    env = NppVecEnv(config, num_envs, encoding, MemoryProfile(), split, threads=1)
    decoder, rng = Decoder(encoding, env.tables), np.random.default_rng(0)
    stored = [
        f for f in spec.fields if isinstance(f, Stored) and encoding.choice[f.name] == "dense"
    ]
    rows, counts = env.reset(0), Counter[str]()
    for t in range(-(-steps // num_envs)):
        step = env.step(rng.integers(0, 6, num_envs))
        rows = step.rows
        for f in stored:
            if f.name in rows:
                check(f.name, rows[f.name], f.low, f.high)
        check("reward", step.reward, -1e3, 1e3)
        counts["steps"] += num_envs
        if step.ended is not None:
            counts["episodes"] += len(step.ended.index)
            counts["won"] += int(step.ended.stats["success"].sum())
            counts["truncated"] += int(step.truncated.sum())
        if t % DERIVE_EVERY == 0:
            fields = decoder(to_tensors(rows, torch.device("cpu")))
            for f in spec.observed():
                if f.name not in PADDED:
                    check(f.name, fields[f.name].numpy(), f.low, f.high)
                    counts["derived rows"] += num_envs
    counts["levels"] = len(env.level_names)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description="Random play over all categories.")
    parser.add_argument("--steps", type=int, default=10_000_000)
    parser.add_argument("--envs", type=int, default=512)
    args = parser.parse_args()
    total: Counter[str] = Counter()
    began = time.perf_counter()
    for observation, share in SHARES.items():
        for split in ("train", "eval"):
            found = play(observation, split, args.envs, int(args.steps * share / 2))
            words = ", ".join(f"{count:,} {name}" for name, count in found.items())
            print(f"{observation.value}, {split}: {words}", flush=True)
            total += found
    print(
        f"{total['steps']:,} steps, {total['episodes']:,} episodes, {total['won']:,} won, "
        f"{time.perf_counter() - began:.0f} s: no exception, no NaN, every value in its range"
    )


if __name__ == "__main__":
    main()
