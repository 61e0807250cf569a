"""Stock DQN on frames of Duel: a replay of a million in our form, beside SB3's of 100,000.

    python benchmarks/replay_curves.py KIND SEED         one run, entered into results/
    python benchmarks/replay_curves.py picture OUT.png   all runs so far: a picture and a table

KIND is ours (1,000,000 transitions) or stock (100,000, SB3's own buffer); all else is the same:
four stacked frames of 72 x 80 against the cartridge's player at its easiest level, eight
environments, `CnnPolicy`. Both runs are one until the 100,000 are full: the same steps, to the bit.
Peaks are of the whole process; `digest` is of all rewards up to there.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import matplotlib
import numpy as np
import torch

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

import fighting  # noqa: F401 - its environments are registered
import frugal_rl
from frugal_rl.memory import usage

STEPS, ENVS, THEIRS, OURS = 160_000, 8, 100_000, 1_000_000
SETTINGS = {"learning_starts": 4_000, "train_freq": 8, "gradient_steps": 2, "batch_size": 32,
            "learning_rate": 3e-4, "target_update_interval": 2_000, "exploration_fraction": 0.3,
            "exploration_final_eps": 0.05, "gamma": 0.98}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "ours": {"buffer_size": OURS, "replay_buffer_class": frugal_rl.ReplayBuffer},
    "stock": {"buffer_size": THEIRS},
}
NAMES = {"ours": "1,000,000, frugal_rl.ReplayBuffer", "stock": "100,000, SB3's"}
RESULTS = Path(__file__).parent / "results" / "replay_curves.jsonl"
POINTS = 16


class Frames(gym.ObservationWrapper[Any, Any, Any]):
    """The stacked frames alone."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = env.observation_space["frame"]  # type: ignore[index]

    def observation(self, observation: Any) -> Any:
        """[4, 72, 80] uint8."""
        return observation["frame"]


class Watched(BaseCallback):
    """Steps and return of each episode that ends; all rewards while both replays hold the same."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[tuple[int, float]] = []
        self.hash = hashlib.sha256()

    def _on_step(self) -> bool:
        told = [i["episode"]["r"] for i in self.locals["infos"] if "episode" in i]
        self.ended += [(self.num_timesteps, float(r)) for r in told]
        if self.num_timesteps <= THEIRS:
            self.hash.update(self.locals["rewards"].tobytes())
        return True


def learned(kind: str, seed: int, steps: int = STEPS) -> dict[str, Any]:
    """A run of stock DQN."""
    torch.set_num_threads(1)

    def made() -> gym.Env[Any, Any]:
        return Frames(gym.make("fighting/Duel-v0", obs="half_size", levels=(0,)))

    env = make_vec_env(made, n_envs=ENVS, seed=seed)
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


def points(run: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Steps and mean returns, a point per part of the run."""
    steps, returns = np.array(run["episodes"], float).reshape(-1, 2).T
    edges = np.linspace(0, STEPS, POINTS + 1)
    places = np.clip(np.digitize(steps, edges) - 1, 0, POINTS - 1)
    held = [i for i in range(POINTS) if (places == i).any()]
    return edges[1:][held], np.array([returns[places == i].mean() for i in held])


def picture(out: str) -> None:
    """A line per run, and the table."""
    runs = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    figure, panel = plt.subplots(figsize=(7, 3.4))
    print("| replay | seed | mean return, first and last eighth | transitions held | replay MiB "
          "| peak MiB | processor s | rewards up to 100,000 |")  # fmt: skip
    print("|---" * 8 + "|")
    for run in sorted(runs, key=lambda r: (r["kind"], r["seed"])):
        steps, means = points(run)
        style = {"ours": ("C0", "-"), "stock": ("C7", "--")}[run["kind"]]
        label = NAMES[run["kind"]] if run["seed"] == 0 else None
        panel.plot(steps, means, style[1], color=style[0], lw=1.4, label=label)
        print(f"| {NAMES[run['kind']]} | {run['seed']} | {means[:2].mean():.2f}, "
              f"{means[-2:].mean():.2f} | {run['held']:,} | {run['replay_mib']:,.0f} | "
              f"{run['peak_mib']:,.0f} | {run['processor_s']:.0f} | {run['digest']} |")  # fmt: skip
    panel.axvline(THEIRS, color="k", lw=0.6, ls=":")
    panel.set(xlabel="steps of all environments", ylabel="mean return")
    panel.grid(alpha=0.3)
    panel.legend()
    figure.tight_layout()
    figure.savefig(out, dpi=90)


def main() -> None:
    if sys.argv[1] == "picture":
        picture(sys.argv[2])
        return
    told = learned(sys.argv[1], int(sys.argv[2]), *map(int, sys.argv[3:]))
    print({k: v if k != "episodes" else v[-1:] for k, v in told.items()})
    if len(sys.argv) == 3:
        with RESULTS.open("a") as file:
            file.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
