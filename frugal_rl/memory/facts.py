"""The numbers that the training checks look at, taken from a run and its plan.

Some describe mistakes that our own configuration cannot express (a replay buffer beside PPO, a
callback that is built and never called); they are here for code that is checked before it moves.
"""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from frugal_rl.memory.machine import GIB
from frugal_rl.memory.plan import Plan
from frugal_rl.observation.choices import FrameStack
from frugal_rl.observation.spec import Stored
from frugal_rl.run.config import RunConfig

WORKER_BYTES = {"sb3": 182 << 20, "shared_memory": 50 << 20}
"""Measured: a process that imports torch, and one that does not (fighting, section 5)."""


@dataclass(frozen=True)
class Facts:
    """One training configuration in numbers. Bytes, steps and seconds as the names say."""

    observation_bytes: int = 0
    """One observation as the space declares it, windows included."""
    stack: int = 1
    stack_in_env: bool = False
    stack_in_buffer: bool = False
    rollout_bytes: int = 0
    flattened_bytes: int = 0
    """What flattening adds at the update's peak."""
    stored_as_integers: bool = True
    own_buffer: bool = True
    """False for stable-baselines3's own rollout buffer."""
    sb3_version: tuple[int, ...] = (2, 9, 2)
    env_bytes: int = 0
    total_bytes: int = 0
    largest: str = ""
    minibatch_bytes: int = 0
    decoded_bytes: int = 0
    activation_bytes: int = 0
    weight_bytes: int = 0
    """Parameters, gradients and optimiser."""
    num_envs: int = 1
    n_steps: int = 1
    batch_size: int = 1
    n_epochs: int = 1
    total_steps: int = 1
    micro_batch: int = 0
    target_kl: float | None = None
    gamma: float = 0.99
    episode_steps: tuple[int, int] | None = None
    """The shortest and the longest typical episode, where they are known."""
    time_limit_steps: int | None = None
    longest_episode_steps: int | None = None
    vec: str = "batch"
    workers: int = 0
    torch_threads: int = 1
    cores: int = 1
    ram_bytes: int = 32 * GIB
    vram_bytes: int = 0
    on_device: bool = False
    save_replay_buffer: bool = False
    callbacks_built: frozenset[str] = frozenset()
    callbacks_called: frozenset[str] = frozenset()
    save_every_calls: int | None = None
    """A frequency counted in calls of `step`, as Stable-Baselines3 counts it."""
    save_every_iterations_wished: int | None = None
    save_every_steps: int = 0
    checkpoint_bytes: int = 0
    free_disk_bytes: int = 0
    eval_seed_is_training_seed: bool = False
    eval_steps: int = 0
    eval_every_steps: int = 0
    resets_between_learn_calls: bool = False
    seconds_per_step: float | None = None
    task_seconds: float | None = None
    reward_per_episode: float | None = None
    steps_per_second: float | None = None

    @property
    def samples(self) -> int:
        """Transitions per rollout."""
        return self.n_steps * self.num_envs

    @property
    def iterations(self) -> int:
        """Rollouts of the whole run."""
        return math.ceil(self.total_steps / self.samples)

    @property
    def gradient_steps_per_rollout(self) -> int:
        """Minibatches that one rollout is learned from."""
        return self.n_epochs * math.ceil(self.samples / max(1, self.batch_size))

    @property
    def rollout_peak_bytes(self) -> int:
        """The rollout at the update's peak."""
        return self.rollout_bytes + self.flattened_bytes


def facts_of(run: RunConfig, plan: Plan) -> Facts:
    """The facts of a run and its plan."""
    spec, algo, limit = run.env.spec(), run.algo, plan.limit
    windows = [f.window for f in spec.observed() if isinstance(f, Stored) and f.window > 1]
    vec = type(run.vec).__name__.lower()
    vec = {"sharedmemory": "shared_memory"}.get(vec, vec)
    workers = int(getattr(run.vec, "workers", 0) or 0)
    on_device = plan.vram_bytes > 0
    update = {p.name: (on_device and p.vram_bytes) or p.ram_bytes for p in plan.parts}
    weights = sum(update.get(n, 0) for n in ("parameters", "gradients", "optimiser"))
    observed = sum(f.nbytes * max(1, getattr(f, "window", 1)) for f in spec.observed())
    evaluation = run.evaluation
    return Facts(
        observation_bytes=observed,
        stack=max(windows, default=1),
        stack_in_buffer=bool(windows) and run.memory.frame_stack is FrameStack.once,
        rollout_bytes=plan.rollout_bytes,
        flattened_bytes=update.get("flattened copy", 0),
        sb3_version=sb3_version(),
        env_bytes=sum(p.ram_bytes for p in plan.parts if _is_env(p.name)),
        total_bytes=plan.ram_bytes,
        largest=plan.largest.name,
        minibatch_bytes=update.get("minibatch", 0),
        decoded_bytes=_decoded_bytes(run),
        activation_bytes=update.get("activations", 0),
        weight_bytes=weights,
        num_envs=algo.num_envs,
        n_steps=algo.n_steps,
        batch_size=algo.batch_size,
        total_steps=algo.total_steps,
        micro_batch=run.memory.micro_batch,
        episode_steps=typical_episode(run),
        time_limit_steps=run.env.episode_steps or None,
        vec=vec,
        workers=workers,
        torch_threads=run.hardware.threads or limit.cores,
        cores=limit.cores,
        ram_bytes=limit.ram_bytes,
        vram_bytes=limit.vram_bytes,
        on_device=on_device,
        save_every_steps=run.checkpoint_every_steps,
        checkpoint_bytes=3 * update.get("parameters", 0) + (1 << 20),
        free_disk_bytes=free_disk(Path(run.run_dir)),
        eval_seed_is_training_seed=evaluation.seed == run.seed,
        eval_steps=evaluation.episodes * (typical_episode(run) or (0, 0))[1],
        eval_every_steps=evaluation.every_steps,
        **_learning(algo),
    )


def typical_episode(run: RunConfig) -> tuple[int, int] | None:
    """What the environment says of itself, else its limit."""
    typical = getattr(run.env, "typical_episode_steps", None)
    if typical is not None:
        return int(typical[0]), int(typical[1])
    return (run.env.episode_steps, run.env.episode_steps) if run.env.episode_steps else None


def _learning(algo: Any) -> dict[str, Any]:
    """What only gradient algorithms have."""
    names = ("n_epochs", "target_kl", "gamma")
    return {n: getattr(algo, n) for n in names if hasattr(algo, n)}


def _is_env(name: str) -> bool:
    """Parts that environments bring, training ones only."""
    own = ("rollout: ", "evaluation: ", "windows", "a tiny ")
    learner = {
        "interpreter and libraries", "flattened copy", "minibatch", "parameters",
        "gradients", "optimiser", "workspace", "activations", "acting", "checkpoint",
    }  # fmt: skip
    return name not in learner and not name.startswith(own)


def _decoded_bytes(run: RunConfig) -> int:
    """A minibatch as float32 in front of the network."""
    values = sum(
        math.prod(f.shape) * max(1, getattr(f, "window", 1)) for f in run.env.spec().observed()
    )
    at_once = run.memory.micro_batch or run.algo.batch_size
    return 4 * values * min(at_once, run.algo.batch_size)


def free_disk(folder: Path) -> int:
    """Free bytes where the run folder is, or will be."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def sb3_version() -> tuple[int, ...]:
    """The installed version, as numbers."""
    text = metadata.version("stable-baselines3")
    return tuple(int(n) for n in text.split(".")[:3] if n.isdigit())
