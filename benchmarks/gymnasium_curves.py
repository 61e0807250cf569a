"""Learning curves of stock PPO, of stock PPO with `compact`, and of `env=gymnasium`, same settings.

    python benchmarks/gymnasium_curves.py TASK KIND SEED     one run, entered into results/
    python benchmarks/gymnasium_curves.py picture OUT.png    all runs so far: a picture and a table

TASK is one of TASKS, KIND one of stock, compact, ours, seeded. Stock episodes are told as they end,
ours as the mean of each rollout, by the steps of all environments. Peaks are of the whole process.
`seeded` is stock PPO whose environments begin with the seeds that ours begin with, and whose
pictures lie in memory as ours do.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import matplotlib
import numpy as np
import torch

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from frugal_rl.memory import usage

DEFAULTS = {"num_envs": 8, "n_steps": 128, "batch_size": 256, "n_epochs": 4, "learning_rate": 1e-3,
            "ent_coef": 0.01}  # fmt: skip
PONG = {**DEFAULTS, "learning_rate": 5e-4, "clip_range": 0.1}


@dataclass(frozen=True)
class Task:
    """An environment in its wrappers, and how it is learned."""

    steps: int
    wrappers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    frames: int = 1
    policy: str = "MlpPolicy"
    agent: str = "mlp"
    settings: Mapping[str, Any] = field(default_factory=lambda: DEFAULTS)


VIEW: dict[str, dict[str, Any]] = {
    "minigrid.wrappers.ImgObsWrapper": {},
    "gymnasium.wrappers.FlattenObservation": {},
}
COURT: dict[str, dict[str, Any]] = {"pong_court.Court": {}}
TASKS = {
    "CartPole-v1": Task(30 * 1024),
    "MiniGrid-DoorKey-5x5-v0": Task(60 * 1024, VIEW),
    "InvertedPendulum-v5": Task(40 * 1024),
    "ALE/Pong-v5": Task(
        1000 * 1024, COURT, {"obs_type": "grayscale"}, 4, "CnnPolicy", "nature_cnn", PONG,
    ),
}  # fmt: skip
RESULTS = Path(__file__).parent / "results" / "gymnasium_curves.jsonl"
POINTS = 10
NAMES = {"stock": "stock PPO", "compact": "stock PPO, compact", "ours": "env=gymnasium",
         "seeded": "stock PPO, our seeds"}  # fmt: skip
COLOURS = {"stock": "C7", "compact": "C0", "ours": "C1", "seeded": "C2"}


def made(task: str) -> gym.Env[Any, Any]:
    """The environment in its wrappers."""
    for start, module in (("MiniGrid", "minigrid"), ("ALE", "ale_py")):
        if task.startswith(start):
            gym.register_envs(importlib.import_module(module))
    env = gym.make(task, **TASKS[task].kwargs)
    for name, kwargs in TASKS[task].wrappers.items():
        module, kind = name.rsplit(".", 1)
        env = getattr(importlib.import_module(module), kind)(env, **kwargs)
    return env


def stock(task: str, seed: int, kind: str) -> dict[str, Any]:
    """Stable-Baselines3's PPO, with its own rollout or ours."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecTransposeImage

    from frugal_rl.sb3 import compact
    from frugal_rl.testing.stock import Contiguous, OurSeeds

    class Episodes(BaseCallback):
        """Steps and return of each episode that ends."""

        def __init__(self) -> None:
            super().__init__()
            self.ended: list[tuple[int, float]] = []

        def _on_step(self) -> bool:
            told = [i["episode"]["r"] for i in self.locals["infos"] if "episode" in i]
            self.ended += [(self.num_timesteps, float(r)) for r in told]
            return True

    asked = TASKS[task]
    settings = dict(asked.settings)
    seeded = {"vec_env_cls": OurSeeds} if kind == "seeded" else {}
    env: VecEnv = make_vec_env(
        lambda: made(task), n_envs=settings.pop("num_envs"), seed=seed, **seeded
    )
    if asked.frames > 1:
        env = VecFrameStack(env, asked.frames)
        env = Contiguous(VecTransposeImage(env)) if seeded else env
    keywords = compact(env) if kind == "compact" else {}
    model = PPO(asked.policy, env, seed=seed, device="cpu", **settings, **keywords)
    episodes = Episodes()
    model.learn(asked.steps, callback=episodes)
    return {"episodes": episodes.ended, "weights": digest(model.policy.parameters())}


def digest(parameters: Iterable[torch.Tensor]) -> str:
    """Of all weights, in their order."""
    weights = b"".join(p.detach().cpu().numpy().tobytes() for p in parameters)
    return hashlib.sha256(weights).hexdigest()


def ours(task: str, seed: int) -> dict[str, Any]:
    """`python scripts/train.py env=gymnasium env.id=...`, its mean return rollout by rollout."""
    import frugal_rl
    from frugal_rl.run.checkpoints import load_checkpoint
    from frugal_rl.run.zoo.words import written

    asked = TASKS[task]
    words = ["env=gymnasium", f"env.id={task}", f"seed={seed}",
             f"agent={asked.agent}", f"algo.total_steps={asked.steps}",
             f"env.frame_stack={asked.frames}", "tracking.wandb=disabled",
             "evaluation.episodes=1", "hardware.threads=1"]  # fmt: skip
    words += [f"algo.{name}={value}" for name, value in asked.settings.items()]
    words += [f"env.kwargs.{name}={value}" for name, value in asked.kwargs.items()]
    if asked.wrappers:
        nodes = [{"wrapper": w, "kwargs": dict(k)} for w, k in asked.wrappers.items()]
        words.append(f"env.wrappers={written(nodes)}")
    with tempfile.TemporaryDirectory() as folder:
        summary = frugal_rl.train(frugal_rl.compose(words, run_dir=folder))
        at = Path(summary["run_dir"])
        lines = map(json.loads, (at / "metrics.jsonl").read_text().splitlines())
        policy = load_checkpoint(at / "checkpoints" / "last.pt")["learner"]["policy"]
        told = ("step", "episode/return", "eval/return")
        rollouts = [{name: line[name] for name in told if name in line} for line in lines]
    return {"rollouts": rollouts, "weights": digest(policy.values())}


def points(run: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Steps and mean returns of a run, a point per tenth of it in which one ended."""
    if run["kind"] == "ours":
        told = [(r["step"], r["episode/return"]) for r in run["rollouts"] if "episode/return" in r]
    else:
        told = run["episodes"]
    steps, returns = np.array(told, float).reshape(-1, 2).T
    edges = np.linspace(0, TASKS[run["task"]].steps, POINTS + 1)
    places = np.clip(np.digitize(steps, edges) - 1, 0, POINTS - 1)
    held = [i for i in range(POINTS) if (places == i).any()]
    return edges[1:][held], np.array([returns[places == i].mean() for i in held])


def picture(out: str) -> None:
    """A panel per task, a line per seed; the table of last means and peaks."""
    runs = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    legend: dict[str, Any] = {}
    figure, panels = plt.subplots(1, len(TASKS), figsize=(3.6 * len(TASKS), 3.2))
    print(
        "| task | kind | return in the last tenth, by seed | peak MiB | weights |\n"
        + "|---" * 5
        + "|"
    )
    for panel, task in zip(panels, TASKS, strict=True):
        for kind, colour in COLOURS.items():
            mine = sorted((r for r in runs if (r["task"], r["kind"]) == (task, kind)),
                          key=lambda r: r["seed"])  # fmt: skip
            if not mine:
                continue
            lines = [points(run) for run in mine]
            for steps, means in lines:
                style = ":" if kind in ("compact", "seeded") else "-"
                (drawn,) = panel.plot(steps / 1000, means, style, color=colour, lw=1.4)
                legend.setdefault(NAMES[kind], drawn)
            last = ", ".join(f"{means[-1]:.2f}" for _, means in lines)
            peaks = ", ".join(f"{run['peak_mib']:.0f}" for run in mine)
            weights = ", ".join(run.get("weights", "-")[:8] for run in mine)
            print(f"| {task} | {NAMES[kind]} | {last} | {peaks} | {weights} |")
        panel.set(title=task, xlabel="thousand steps of all environments")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("mean return")
    by_kind = {(r["task"], r["kind"], r["seed"]): r for r in runs}
    for (task, kind, seed), run in by_kind.items():
        if kind == "seeded":
            print(rollouts_alike(run, by_kind[task, "ours", seed]))
    figure.tight_layout()
    figure.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=len(legend))
    figure.subplots_adjust(bottom=0.28)
    figure.savefig(out, dpi=90)


def rollouts_alike(seeded: dict[str, Any], run: dict[str, Any]) -> str:
    """How many of our rollouts tell the mean return of the episodes that ended in stock's."""
    settings = TASKS[run["task"]].settings
    size, ended = settings["num_envs"] * settings["n_steps"], defaultdict[int, list[float]](list)
    for step, value in seeded["episodes"]:
        ended[-(-step // size) * size].append(value)
    told = {r["step"]: r["episode/return"] for r in run["rollouts"] if "episode/return" in r}
    alike = sum(np.isclose(np.mean(ended[step]), told[step], rtol=1e-6) for step in told)
    assert told.keys() == ended.keys()
    return (
        f"{run['task']}, seed {run['seed']}: {alike} of {len(told)} rollouts told the same return"
    )


def main() -> None:
    if sys.argv[1] == "picture":
        picture(sys.argv[2])
        return
    torch.set_num_threads(1)
    task, kind, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    found = ours(task, seed) if kind == "ours" else stock(task, seed, kind)
    told = {"task": task, "kind": kind, "seed": seed} | found
    told["peak_mib"] = usage.peak_resident_bytes() / 2**20
    print({k: (v if k not in ("episodes", "rollouts") else v[-1:]) for k, v in told.items()})
    with RESULTS.open("a") as file:
        file.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
