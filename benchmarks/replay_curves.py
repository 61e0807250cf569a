"""Stock DQN on frames of N++: a replay of a million in our form, beside SB3's of 100,000.

    python benchmarks/replay_curves.py KIND SEED         one run, entered into results/
    python benchmarks/replay_curves.py players           random play and scripts on the same task
    python benchmarks/replay_curves.py picture OUT.png   all runs so far: a picture and a table

KIND is ours (1,000,000 transitions) or stock (100,000, SB3's own buffer); all else is the same:
four stacked frames of 36 x 52 of two bundled levels, eight environments, `CnnPolicy`. Both runs
are one until the 100,000 are full: the same steps, to the bit. An episode is won or not; `digest`
is of all rewards up to there. Peaks are of the whole process.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import matplotlib
import numba
import numpy as np
import torch

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor

import frugal_rl
import nclone
from frugal_rl.memory import usage
from nclone.spec import Observation

STEPS, ENVS, THEIRS, OURS = 160_000, 8, 100_000, 1_000_000
LEVELS = ("walk", "switch_first")
"""The exit lies behind the switch, or back on the other side: the picture tells which."""
SETTINGS: dict[str, Any] = {
    "learning_starts": 4_000,
    "train_freq": 2,
    "gradient_steps": 1,
    "batch_size": 128,
    "learning_rate": lambda left: 5e-4 * left,
    "target_update_interval": 4_000,
    "exploration_fraction": 0.25,
    "exploration_final_eps": 0.02,
    "gamma": 0.98,
}
KINDS: dict[str, dict[str, Any]] = {
    "ours": {"buffer_size": OURS, "replay_buffer_class": frugal_rl.ReplayBuffer},
    "stock": {"buffer_size": THEIRS},
}
NAMES = {"ours": "1,000,000, frugal_rl.ReplayBuffer", "stock": "100,000, SB3's"}
RESULTS = Path(__file__).parent / "results" / "replay_curves.jsonl"
POINTS = 16
HEIGHT, WIDTH = 36, 52
REWARD_SCALE = 0.1


class Frames(gym.Wrapper[Any, Any, Any, Any]):
    """The corner of the whole level's picture where these levels lie, and smaller rewards."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = gym.spaces.Box(0, 255, (HEIGHT, WIDTH, 1), np.uint8)

    def reset(self, **options: Any) -> Any:
        """[36, 52, 1] uint8."""
        observation, info = self.env.reset(**options)
        return self.cut(observation), info

    def step(self, action: Any) -> Any:
        """A success is told in the episode's statistics."""
        observation, reward, ended, limit, info = self.env.step(action)
        return self.cut(observation), float(reward) * REWARD_SCALE, ended, limit, info

    def cut(self, observation: Any) -> np.ndarray:
        """Of the view of the whole level."""
        return observation["global_view"][:HEIGHT, :WIDTH].copy()


def world() -> gym.Env[Any, Any]:
    """One environment of the task."""
    env = nclone.make(
        obs=Observation.pixels, levels=LEVELS, player_frame=(), global_view=(75, 132), frame_skip=6
    )
    return Frames(env)


class Watched(BaseCallback):
    """Steps, return and success of each episode; rewards while both replays hold the same."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[tuple[int, float, int]] = []
        self.hash = hashlib.sha256()

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                told = round(float(info["episode"]["r"]), 3), int(info["success"])
                self.ended.append((self.num_timesteps, *told))
        if self.num_timesteps <= THEIRS:
            self.hash.update(self.locals["rewards"].tobytes())
        return True


def learned(kind: str, seed: int, steps: int = STEPS) -> dict[str, Any]:
    """A run of stock DQN."""
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    torch.set_flush_denormal(True)  # moments of weights that rest fade into numbers that are slow
    env = VecFrameStack(VecMonitor(DummyVecEnv([world] * ENVS)), 4)
    env.seed(seed)
    model = DQN("CnnPolicy", env, seed=seed, device="cpu", **SETTINGS, **KINDS[kind])
    watched, began = Watched(), time.process_time()
    model.learn(steps, callback=watched)
    held = model.replay_buffer
    arrays = (held.observations, held.next_observations) if kind == "stock" else ()
    size = held.nbytes if kind == "ours" else sum(int(a.nbytes) for a in arrays)
    return {
        "kind": kind, "seed": seed, "episodes": watched.ended, "replay_mib": size / 2**20,
        "held": min(held.size() * ENVS, steps), "digest": watched.hash.hexdigest()[:8],
        "processor_s": time.process_time() - began, "peak_mib": usage.peak_resident_bytes() / 2**20,
    }  # fmt: skip


LEFT, RIGHT = 1, 2
TURNS_AT = 40
"""Actions after which the script of `switch_first` runs back."""


def players() -> None:
    """Random play, one button throughout, and what somebody who knows both levels presses."""
    numba.set_num_threads(1)
    dice = np.random.default_rng(0)
    table: dict[str, Callable[[int, bool], int]] = {
        "random play": lambda _step, _back: int(dice.integers(6)),
        "right throughout": lambda _step, _back: RIGHT,
        "script: right, and back where the exit is behind": lambda step, back: (
            LEFT if back and step >= TURNS_AT else RIGHT
        ),
    }
    env = world()
    print("| player | episodes | won | mean return |\n|---|---|---|---|")
    for name, play in table.items():
        told = np.array([episode(env, play, seed) for seed in range(100)])
        print(f"| {name} | {len(told)} | {told[:, 1].mean():.0%} | {told[:, 0].mean():.2f} |")


def episode(
    env: gym.Env[Any, Any], play: Callable[[int, bool], int], seed: int
) -> tuple[float, float]:
    """Return, and whether it was won; `switch_first` is the level whose first row is shorter."""
    observation, _ = env.reset(seed=seed)
    back, total, step = bool(observation[6, 48] == observation[0, 0]), 0.0, 0
    while True:
        observation, reward, ended, limit, info = env.step(play(step, back))
        total, step = total + float(reward), step + 1
        if ended or limit:
            return total, float(info["success"])


def points(run: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and the share of episodes that were won up to there since the point before."""
    steps, _, won = np.array(run["episodes"], float).reshape(-1, 3).T
    edges = np.linspace(0, STEPS, POINTS + 1)
    places = np.clip(np.digitize(steps, edges) - 1, 0, POINTS - 1)
    held = [i for i in range(POINTS) if (places == i).any()]
    return edges[1:][held], np.array([won[places == i].mean() for i in held])


def picture(out: str) -> None:
    """A line per run, and the table."""
    runs = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    figure, panel = plt.subplots(figsize=(7, 3.4))
    print("| replay | seed | won, first, second, third and last quarter | transitions held "
          "| replay MiB | peak MiB | processor s | rewards up to 100,000 |")  # fmt: skip
    print("|---" * 8 + "|")
    named: set[str] = set()
    for run in sorted(runs, key=lambda r: (r["kind"], r["seed"])):
        steps, won = points(run)
        style = {"ours": ("C0", "-"), "stock": ("C7", "--")}[run["kind"]]
        label = None if run["kind"] in named else NAMES[run["kind"]]
        named.add(run["kind"])
        panel.plot(steps, won, style[1], color=style[0], lw=1.4, label=label)
        shares = ", ".join(f"{part.mean():.0%}" for part in np.array_split(won, 4))
        print(f"| {NAMES[run['kind']]} | {run['seed']} | {shares} | {run['held']:,} | "
              f"{run['replay_mib']:,.0f} | {run['peak_mib']:,.0f} | {run['processor_s']:.0f} | "
              f"{run['digest']} |")  # fmt: skip
    panel.axvline(THEIRS, color="k", lw=0.6, ls=":")
    panel.set(xlabel="steps of all environments", ylabel="share of episodes won", ylim=(0, 1))
    panel.grid(alpha=0.3)
    panel.legend()
    figure.tight_layout()
    figure.savefig(out, dpi=90)


def main() -> None:
    if sys.argv[1] == "picture":
        picture(sys.argv[2])
    elif sys.argv[1] == "players":
        players()
    else:
        told = learned(sys.argv[1], int(sys.argv[2]))
        print({k: v if k != "episodes" else v[-1:] for k, v in told.items()})
        with RESULTS.open("a") as file:
            file.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
