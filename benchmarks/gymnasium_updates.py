"""Updates of stock PPO with and without `compact`, paired in one run: processor time of train().

`python benchmarks/gymnasium_updates.py [name ...]`; worlds are those of gymnasium_worlds.py.
Who begins changes from pair to pair. Both models draw from the same random numbers in turn, so that
their parameters are not compared. Both networks do the same work on the same rows, and only draws
differ: what those alone make of an update is told as well, since whole updates differ by more than
that from time to time. gymnasium_updates.md holds what it printed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium_worlds import WORLDS
from stable_baselines3 import PPO

from frugal_rl.sb3 import compact

STEPS, ENVS, PAIRS = 128, 4, 8


class TimedPPO(PPO):
    """PPO that keeps the processor time of each update, and of the draws in it."""

    def train(self) -> None:
        """An update."""
        draw, drawing = self.rollout_buffer.get, [0.0]

        def timed(size: int | None = None) -> Iterator[Any]:
            drawn = draw(size)
            while True:
                begin = time.process_time()
                batch = next(drawn, None)
                drawing[0] += time.process_time() - begin
                if batch is None:
                    return
                yield batch

        self.rollout_buffer.get = timed  # type: ignore[method-assign, assignment]
        begin = time.process_time()
        super().train()
        both = time.process_time() - begin, drawing[0]
        self.rollout_buffer.get = draw  # type: ignore[method-assign]
        self.spent = [*getattr(self, "spent", []), both]


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
        (ours, our_draws), (theirs, their_draws) = (
            np.array(one.spent[1:]).T for one in (small, stock)
        )
        least, low, middle, high, most = np.percentile(ours / theirs, [0, 25, 50, 75, 100])
        by_draws = 1 + (np.median(our_draws) - np.median(their_draws)) / np.median(theirs)
        print(
            f"{name}: updates take {middle:.3f} of stock's in the median of {PAIRS} pairs "
            f"(quartiles {low:.3f}, {high:.3f}; {least:.3f} to {most:.3f}); by their draws "
            f"{by_draws:.3f} ({np.median(our_draws) * 1e3:.1f} beside "
            f"{np.median(their_draws) * 1e3:.1f} ms of {np.median(theirs) * 1e3:.0f} ms)",
            flush=True,
        )


if __name__ == "__main__":
    main()
