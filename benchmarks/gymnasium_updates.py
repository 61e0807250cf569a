"""Updates of stock PPO with and without `compact`, minibatch by minibatch in turn, in one process.

`python benchmarks/gymnasium_updates.py [--seconds S] [name ...]`; worlds are those of
gymnasium_worlds.py. Three models, ours and two of stock, begin with the same weights, play the same
games and draw the same minibatches, which is checked by their weights at the end. Each trains in a
thread of its own, and only one of them works at a time: after a minibatch (its draw, the passes,
the optimiser's step; what an update does before the first and after the last one goes with those)
it is the next one's turn, in each order as often. An epoch of one is so compared with the same
epoch of the others a few milliseconds apart, in processor time of the thread: draws of several
minibatches at once, and whatever is done once an epoch, are all in it. Told are the median of these
ratios with a bootstrapped interval of 95 %, the same for the second stock model in the place of
ours, which is what the measurement itself makes of no difference, and a verdict. All of it
takes S seconds, ten minutes less a bit where nobody says otherwise, as long as a world is played
and warmed up in its part of them. gymnasium_updates.md holds what it printed.
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
UPDATES = 32
"""Updates from one rollout; small worlds take longer to play than to learn from."""
SECONDS = 550.0
"""Of all worlds: each has its part of what is left, however long those before it took."""
RESAMPLED = 2000
MOST = 1.03
"""What an update of ours may take beside one of stock's."""
FEWEST = 12
"""Epochs below which a bootstrapped interval says nothing."""
NAMES = (
    "noise, 4 x 84 x 84", "Breakout, 4 x 84 x 84", "CartPole", "Pong, RAM",
    "MiniGrid DoorKey, view", "parking",
)  # fmt: skip
HEAD = (
    "| world | ours beside stock (95 %) | stock beside stock | epochs | ms: ours | SB3 | verdict |"
)
ORDERS = tuple(itertools.permutations(range(3)))
OURS, STOCK, AGAIN = range(3)


class Turns:
    """Threads of which one works at a time, in an order that stays."""

    def __init__(self, order: tuple[int, ...]) -> None:
        self.order = itertools.cycle(order)
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
    """A model of the policy that fits a world."""
    env = WORLDS[name](ENVS)
    space = env.observation_space
    policy = "CnnPolicy" if len(space.shape or ()) == 3 and space.dtype == np.uint8 else "MlpPolicy"
    policy = "MlpPolicy" if policy == "CnnPolicy" and min(space.shape[1:]) < 36 else policy
    policy = "MultiInputPolicy" if isinstance(space, spaces.Dict) else policy
    given = {"n_steps": STEPS, "batch_size": BATCH, "n_epochs": EPOCHS, "device": "cpu", "seed": 0}
    return TimedPPO(policy, env, **given, **(compact(env) if small else {}))


def update(models: list[TimedPPO], number: int) -> None:
    """One update of each, in turn."""
    turns = Turns(ORDERS[number % len(ORDERS)])
    threads = [
        threading.Thread(target=one.update, args=(who, turns, number))
        for who, one in enumerate(models)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def learned(name: str, seconds: float) -> np.ndarray:
    """Nanoseconds [E, 3] of epochs of the three models, the same one in each row."""
    ends, number = time.perf_counter() + seconds, 0
    models = [model(name, who == OURS) for who in (OURS, STOCK, AGAIN)]
    for rollout in itertools.count():
        for one in models:
            one.play(rollout)
        for _ in range(UPDATES if rollout >= WARM else 1):
            update(models, number)
            number += 1
            if rollout >= WARM and time.perf_counter() >= ends:
                break
        if rollout == WARM - 1:
            for one in models:
                one.spent.clear()
        if rollout >= WARM and time.perf_counter() >= ends:
            break
    weights = [
        b"".join(p.detach().numpy().tobytes() for p in m.policy.parameters()) for m in models
    ]
    if len(set(weights)) > 1:
        raise SystemExit(f"The weights after {number} updates of {name} differ.")
    spent = np.array([one.spent for one in models], float)
    return spent.reshape(3, -1, STEPS * ENVS // BATCH).sum(2).T


def middle(times: np.ndarray, who: int) -> tuple[float, float, float]:
    """The median ratio to stock's, and the interval in which that median lies."""
    ratios, chance = times[:, who] / times[:, STOCK], np.random.default_rng(0)
    drawn = np.median(chance.choice(ratios, (RESAMPLED, len(ratios))), axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(np.median(ratios)), float(low), float(high)


def verdict(low: float, high: float, epochs: int) -> str:
    """Whether an interval tells that an update takes at most `MOST`; of few epochs none does."""
    if epochs < FEWEST:
        return "undecided"
    return "holds" if high <= MOST else "FAILS" if low > MOST else "undecided"


def main() -> None:
    torch.set_num_threads(1)
    given = sys.argv[1:]
    seconds = float(given.pop(1)) if given[:1] == ["--seconds"] else SECONDS
    names = [name for name in given if name != "--seconds"] or NAMES
    print(HEAD + "\n" + "|---" * 7 + "|")
    told: list[str] = []
    begin = time.perf_counter()
    for place, name in enumerate(names):
        left = seconds - (time.perf_counter() - begin)
        try:
            times = learned(name, left / (len(names) - place))
        except ImportError as error:
            print(f"| {name} | not here: {error} | | | | | |", flush=True)
            continue
        ours, again = middle(times, OURS), middle(times, AGAIN)
        told.append(verdict(*ours[1:], len(times)))
        words = [f"{m:.4f} ({low:.4f} to {high:.4f})" for m, low, high in (ours, again)]
        spent = [f"{np.median(times[:, who]) / 1e6:.2f}" for who in (OURS, STOCK)]
        row = [name, *words, str(len(times)), *spent, told[-1]]
        print("| " + " | ".join(row) + " |", flush=True)
    count = {word: told.count(word) for word in ("holds", "undecided", "FAILS")}
    print(
        f"at most {MOST:.2f} of stock's update: " + ", ".join(f"{n} {w}" for w, n in count.items())
    )


if __name__ == "__main__":
    main()
