"""Updates of stock PPO with and without `compact`, minibatch by minibatch in turn, in one process.

`python benchmarks/gymnasium_updates.py [--seconds S] [name ...]`; worlds are those of
gymnasium_worlds.py. Two models begin with the same weights, play the same games and draw the same
minibatches, which is checked by their weights at the end. Each trains in a thread of its own, and
only one of them works at a time: after a minibatch (its draw, the passes, the optimiser's step;
what an update does before the first and after the last one goes with those) it is the other's turn,
and who begins changes. A minibatch of one is so compared with the same minibatch of the other a few
milliseconds later, in processor time of the thread. Told are the median of these ratios with a
bootstrapped interval of 95 %, and the same for a second stock model in the place of ours, which is
what the measurement itself makes of no difference. gymnasium_updates.md holds what it printed.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium_worlds import WORLDS
from stable_baselines3 import PPO

from frugal_rl.sb3 import compact

STEPS, ENVS, BATCH, EPOCHS = 128, 4, 256, 2
WARM = 4
"""Rollouts before those that count: forms are chosen in them, kernels are loaded."""
UPDATES = 4
"""Updates from one rollout; small worlds take longer to play than to learn from."""
SECONDS = 45.0
"""Of a world: rollouts are played and learned from until they are over."""
RESAMPLED = 2000
NAMES = ("noise, 4 x 84 x 84", "Breakout, 4 x 84 x 84", "CartPole", "Pong, RAM")
HEAD = "| world | ours beside stock (95 %) | pairs | stock beside stock | pairs | ms: ours | SB3 |"


class Turns:
    """Two threads of which one works at a time; who begins changes from pair to pair.

    Who follows itself works with warm caches: over two updates, each does so as often.
    """

    def __init__(self, first: int) -> None:
        self.order = itertools.cycle((first, 1 - first, 1 - first, first))
        self.now, self.changed = next(self.order), threading.Condition()

    def wait(self, who: int) -> None:
        """Until it is one's turn."""
        with self.changed:
            self.changed.wait_for(lambda: self.now == who)

    def pass_on(self) -> None:
        """A piece of work is done."""
        with self.changed:
            self.now = next(self.order)
            self.changed.notify_all()


class TimedPPO(PPO):
    """PPO that learns when it is told to, and keeps the nanoseconds of each minibatch."""

    def train(self) -> None:
        """Nothing: `learn` plays only."""

    def play(self, number: int) -> None:
        """A rollout; equal numbers and weights play the same."""
        torch.manual_seed(number)
        self.learn(STEPS * ENVS, reset_num_timesteps=False)

    def update(self, who: int, turns: Turns, number: int) -> None:
        """An update, a minibatch whenever it is one's turn."""
        draw, begun = self.rollout_buffer.get, [0]
        self.spent: list[int] = getattr(self, "spent", [])
        epochs = itertools.count()

        def pause() -> None:
            self.spent.append(time.thread_time_ns() - begun[0])
            turns.pass_on()
            turns.wait(who)
            begun[0] = time.thread_time_ns()

        def in_turn(size: int | None = None) -> Iterator[Any]:
            epoch = next(epochs)
            if epoch:
                pause()
            np.random.seed(number * EPOCHS + epoch)  # noqa: NPY002 - the stream that SB3 draws from
            drawn = draw(size)
            for batch in range(STEPS * ENVS // BATCH):
                if batch:
                    pause()
                yield next(drawn)

        turns.wait(who)
        self.rollout_buffer.get = in_turn  # type: ignore[method-assign, assignment]
        begun[0] = time.thread_time_ns()
        super().train()
        self.spent.append(time.thread_time_ns() - begun[0])
        self.rollout_buffer.get = draw  # type: ignore[method-assign]
        turns.pass_on()


def model(name: str, small: bool) -> TimedPPO:
    env = WORLDS[name](ENVS)
    space = env.observation_space
    policy = "CnnPolicy" if len(space.shape or ()) == 3 and space.dtype == np.uint8 else "MlpPolicy"
    policy = "MlpPolicy" if policy == "CnnPolicy" and min(space.shape[1:]) < 36 else policy
    policy = "MultiInputPolicy" if isinstance(space, spaces.Dict) else policy
    given = {"n_steps": STEPS, "batch_size": BATCH, "n_epochs": EPOCHS, "device": "cpu", "seed": 0}
    return TimedPPO(policy, env, **given, **(compact(env) if small else {}))


def learned(pair: tuple[TimedPPO, TimedPPO], seconds: float) -> np.ndarray:
    """Nanoseconds [M, 2] of minibatches of two models, the same one in each row."""
    begin, rollout = time.perf_counter(), 0
    while rollout <= WARM or time.perf_counter() - begin < seconds:
        for one in pair:
            one.play(rollout)
        for update in range(UPDATES if rollout >= WARM else 1):
            turns, number = Turns(update % 2), rollout * UPDATES + update
            threads = [
                threading.Thread(target=one.update, args=(who, turns, number))
                for who, one in enumerate(pair)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        rollout += 1
        if rollout == WARM:
            begin = time.perf_counter()
            for one in pair:
                one.spent.clear()
    first, second = ([p.detach().numpy() for p in one.policy.parameters()] for one in pair)
    if any(a.tobytes() != b.tobytes() for a, b in zip(first, second, strict=True)):
        raise SystemExit("The weights of the two differ.")
    return np.array([one.spent for one in pair], float).T


def told(times: np.ndarray) -> str:
    """The median ratio of pairs with the interval in which it lies, and that of whole sums."""
    ratios, chance = times[:, 0] / times[:, 1], np.random.default_rng(0)
    drawn = np.median(chance.choice(ratios, (RESAMPLED, len(ratios))), axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return f"{np.median(ratios):.4f} ({low:.4f} to {high:.4f})"


def main() -> None:
    torch.set_num_threads(1)
    given = sys.argv[1:]
    seconds = float(given.pop(1)) if given[:1] == ["--seconds"] else SECONDS
    names = [name for name in given if name != "--seconds"]
    print(HEAD + "\n" + "|---" * 7 + "|")
    for name in names or NAMES:
        ours = learned((model(name, True), model(name, False)), seconds)
        stock = learned((model(name, False), model(name, False)), seconds)
        print(
            f"| {name} | {told(ours)} | {len(ours)} | {told(stock)} | {len(stock)} | "
            f"{np.median(ours[:, 0]) / 1e6:.2f} | {np.median(ours[:, 1]) / 1e6:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
