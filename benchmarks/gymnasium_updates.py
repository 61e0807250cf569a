"""Updates of stock PPO with and without `compact`, paired in one run: processor time of train().

`python benchmarks/gymnasium_updates.py [name ...]`; worlds are those of gymnasium_worlds.py.
Who begins changes from pair to pair. Both models draw from the same random numbers in turn, so that
their parameters are not compared. gymnasium_updates.md holds what it printed.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium_worlds import WORLDS
from stable_baselines3 import PPO

from frugal_rl.sb3 import compact

STEPS, ENVS, PAIRS = 128, 4, 8


class TimedPPO(PPO):
    """PPO that keeps the processor time of each update."""

    def train(self) -> None:
        """An update."""
        begin = time.process_time()
        super().train()
        self.spent = [*getattr(self, "spent", []), time.process_time() - begin]


def model(name: str, keywords: Any) -> TimedPPO:
    env = WORLDS[name](ENVS)
    space = env.observation_space
    policy = "CnnPolicy" if len(space.shape or ()) == 3 and space.dtype == np.uint8 else "MlpPolicy"
    policy = "MultiInputPolicy" if isinstance(space, spaces.Dict) else policy
    given = {"n_steps": STEPS, "batch_size": 256, "n_epochs": 2, "device": "cpu", "seed": 0}
    return TimedPPO(policy, env, **given, **keywords(env))


def main() -> None:
    torch.set_num_threads(1)
    for name in sys.argv[1:] or ["Breakout, 4 x 84 x 84", "noise, 4 x 84 x 84", "CartPole"]:
        stock, small = model(name, lambda env: {}), model(name, compact)
        for pair in range(PAIRS + 1):
            for one in (stock, small) if pair % 2 else (small, stock):
                one.learn(STEPS * ENVS, reset_num_timesteps=False)
        ratios = np.array(small.spent[1:]) / np.array(stock.spent[1:])
        least, low, middle, high, most = np.percentile(ratios, [0, 25, 50, 75, 100])
        print(
            f"{name}: updates take {middle:.3f} of stock's in the median of {PAIRS} pairs "
            f"(quartiles {low:.3f}, {high:.3f}; {least:.3f} to {most:.3f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
