"""What a step of Duel costs by the translated logic beside PyBoy: random play, on one thread.

    python benchmarks/fighting_native.py [pairs] [environments]

Processor microseconds per step of four frames, features included, without acting and learning.
Pairs are interleaved, so that other work on the machine meets both.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from fighting.choices import Emulation
from fighting.config import DuelConfig
from fighting.vec_env import DuelVecEnv
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding

STEPS = {Emulation.pyboy: 20, Emulation.native: 400}
"""Steps of all environments per timing."""


def built(emulator: Emulation, count: int) -> DuelVecEnv:
    """A batch against level 7, reset and stepped once."""
    config = DuelConfig(emulator=emulator, levels=(7,), threads=1)
    encoding = Encoding.choose(config.spec(), Storage.lossless)
    env = DuelVecEnv(config, count, encoding, MemoryProfile())
    env.reset(0)
    env.step(np.zeros(count, np.int64))
    return env


def microseconds(env: DuelVecEnv, steps: int, count: int) -> float:
    """Processor microseconds per step of one environment."""
    actions = np.random.default_rng(0).integers(0, 16, (steps, count))
    begin = time.process_time()
    for row in actions:
        env.step(row)
    return 1e6 * (time.process_time() - begin) / (steps * count)


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    envs = {emulator: built(emulator, count) for emulator in STEPS}
    ratios = []
    print(f"{count} environments, one thread, processor microseconds per step")
    print("   pyboy   native  ratio")
    for _ in range(pairs):
        slow, fast = (microseconds(env, STEPS[emulator], count) for emulator, env in envs.items())
        ratios.append(slow / fast)
        print(f"{slow:>8.1f} {fast:>8.2f} {slow / fast:>6.1f}", flush=True)
    print(f"median ratio {np.median(ratios):.1f}")


if __name__ == "__main__":
    main()
