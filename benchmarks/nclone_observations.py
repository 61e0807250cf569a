"""Environment steps per second of every observation profile, frames drawn and graphs looked up.

    python benchmarks/nclone_observations.py [--steps 200] [--envs 512] [--threads 1 2]

Random actions, frame skip 4, levels drawn from the bundled proved pool of the five easy categories
(1,600 levels), resets included. `stored` counts stepping and encoding, what a rollout takes in;
`decoded` adds what the network would read, every observed field computed from the stored rows (of
the graph its id, the nodes at the ninja and at the objectives). Each figure is the best of three
repetitions; `cpu` is processor time per wall time and thread, below 1 where others used the cores.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import torch

from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.decoder import Decoder, to_tensors
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from nclone.config import NppConfig
from nclone.graph.fields import STATIC_FIELDS
from nclone.spec import Observation
from nclone.vec_env import NppVecEnv

EASY = ("simplest", "simplest_few_mines", "simplest_with_mines", "simpler", "simple")
REPEATS = 3
PADDED = frozenset(f.name for f in STATIC_FIELDS)
"""Read by networks row by distinct row, never padded per sample."""


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    obs: Observation
    options: dict[str, Any]
    name: str


CASES = (
    Case(Observation.state, {}, "state"),
    Case(Observation.graph, {}, "graph"),
    Case(Observation.pixels, {}, "pixels 84x84 and 100x176"),
    Case(Observation.pixels, {"global_view": ()}, "pixels 84x84"),
    Case(
        Observation.pixels,
        {"player_frame": (128, 128), "global_view": (128, 256)},
        "pixels 128x128 and 128x256",
    ),
    Case(Observation.pixels, {"stack": 4}, "pixels, 4 of 84x84 and 100x176"),
    Case(Observation.full, {}, "full"),
)


class Players:
    """N environments with random actions drawn beforehand."""

    def __init__(self, case: Case, num_envs: int, threads: int, steps: int) -> None:
        config = NppConfig(obs=case.obs, levels=EASY, **case.options)
        encoding = Encoding.choose(config.spec(), Storage.lossless)
        self.env = NppVecEnv(config, num_envs, encoding, MemoryProfile(), threads=threads)
        self.history = History(encoding, num_envs)
        self.decoder = Decoder(encoding, self.env.tables)
        self.names = [name for name in self.decoder.names if name not in PADDED]
        self.actions = np.random.default_rng(0).integers(0, 6, (steps, num_envs))
        self.obs = self.history.reset(self.env.reset(0))
        self.resets = 0

    def play(self, decode: bool) -> None:
        """All steps; with `decode` every observed field of every step is computed."""
        for actions in self.actions:
            step = self.env.step(actions)
            self.resets += int(step.done.sum())
            self.obs, _ = self.history.push(step.rows, step.done, step.final_index, step.final_rows)
            if decode:
                fields = self.decoder(to_tensors(self.obs, torch.device("cpu")))
                for name in self.names:
                    fields[name]


def rate(players: Players, decode: bool, threads: int) -> tuple[float, float]:
    """Environment steps per second, and processor time per wall time and thread."""
    best, share = 0.0, 0.0
    for _ in range(REPEATS):
        began, cpu = time.perf_counter(), time.process_time()
        players.play(decode)
        wall = time.perf_counter() - began
        if players.actions.size / wall > best:
            best = players.actions.size / wall
            share = (time.process_time() - cpu) / wall / threads
    return best, share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--envs", type=int, default=512)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--cases", type=int, nargs="+", default=range(len(CASES)))
    args = parser.parse_args()
    print(f"{args.envs} environments, frame skip 4, 1,600 proved levels, {args.steps} steps each")
    print("| observation | bytes stored | threads | stored, steps/s | decoded, steps/s | cpu |")
    print("|---|---|---|---|---|---|")
    for index in args.cases:
        case = CASES[index]
        for threads in args.threads:
            numba.set_num_threads(threads)
            torch.set_num_threads(threads)
            players = Players(case, args.envs, threads, args.steps)
            players.play(True)
            stored, _ = rate(players, False, threads)
            decoded, share = rate(players, True, threads)
            size = players.env.encoding.row_bytes
            print(
                f"| {case.name} | {size:,} | {threads} | {stored:,.0f} | {decoded:,.0f} "
                f"| {share:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
