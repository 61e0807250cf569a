"""The numbers that the training checks look at, each taken from a run and its plan."""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugal_rl.invocation import typed_words
from frugal_rl.memory.choices import Precision
from frugal_rl.memory.machine import GIB, has_bf16
from frugal_rl.memory.part import Kind
from frugal_rl.memory.sizes import workers_of

if TYPE_CHECKING:
    from frugal_rl.memory.plan import Plan
    from frugal_rl.run.config import RunConfig


@dataclass(frozen=True)
class Facts:
    """One training configuration in numbers. Bytes, steps and seconds as the names say.

    Of several processes, bytes are those of one, sizes and steps those of all.
    """

    observation_bytes: int = 0
    """One observation as the space declares it, windows included."""
    rollout_bytes: int = 0
    flattened_bytes: int = 0
    """What flattening adds at the update's peak."""
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
    gamma: float | None = None
    """The discount, where the algorithm has one."""
    bf16: bool = False
    has_bf16: bool = True
    """Whether the processor or the device has units for bf16."""
    episode_steps: tuple[int, int] | None = None
    """The shortest and the longest typical episode, where they are known."""
    time_limit_steps: int | None = None
    vec: str = "batch"
    workers: int = 0
    worker_bytes: int = 0
    torch_threads: int = 1
    cores: int = 1
    ram_bytes: int = 32 * GIB
    vram_bytes: int = 0
    on_device: bool = False
    save_every_steps: int = 0
    checkpoint_bytes: int = 0
    keep_checkpoints: int = 0
    """How many of the newest stay, beside the best; 0 keeps all."""
    replay_file_bytes: int = 0
    """Of the replay that lies beside all checkpoints, once: what is expected."""
    replay_file_most_bytes: int = 0
    """The same where nothing repeats and every step ends an episode."""
    replay_seen: str = ""
    """Where episodes and rows were seen that are like it, in words."""
    free_disk_bytes: int = 0
    eval_seed_is_training_seed: bool = False
    eval_steps: int = 0
    eval_episodes: int = 0
    seed: int = 0
    eval_every_steps: int = 0
    unread: tuple[str, ...] | None = None
    """Observations of an environment that nothing is declared of which the network leaves out."""
    words: tuple[str, ...] = ()
    """What was typed."""

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
    vec = type(run.vec).__name__.lower()
    vec = {"sharedmemory": "shared_memory"}.get(vec, vec)
    workers = int(getattr(run.vec, "workers", 0) or 0)
    on_device = plan.vram_bytes > 0

    def held(*kinds: Kind) -> int:
        """Bytes where the update computes; a minibatch lies in memory as well."""
        found = [p for p in plan.parts if p.kind in kinds]
        return sum((on_device and p.vram_bytes) or p.ram_bytes for p in found)

    observed = sum(f.nbytes * max(1, getattr(f, "window", 1)) for f in spec.observed())
    evaluation = run.evaluation
    return Facts(
        observation_bytes=observed,
        rollout_bytes=plan.rollout_bytes,
        flattened_bytes=held(Kind.copy),
        env_bytes=sum(p.ram_bytes for p in plan.parts if p.kind is Kind.environment),
        total_bytes=plan.ram_bytes,
        largest=plan.largest.name,
        minibatch_bytes=held(Kind.minibatch),
        decoded_bytes=_decoded_bytes(run),
        activation_bytes=held(Kind.activations),
        weight_bytes=held(Kind.parameters, Kind.gradients, Kind.optimiser),
        num_envs=algo.num_envs * run.split,
        n_steps=algo.n_steps,
        batch_size=algo.batch_size * run.split,
        total_steps=algo.total_steps,
        micro_batch=run.memory.micro_batch,
        bf16=run.memory.precision is Precision.bf16,
        has_bf16=has_bf16(run.hardware.device),
        episode_steps=typical_episode(run),
        time_limit_steps=time_limit(run),
        vec=vec,
        workers=workers,
        worker_bytes=workers_of(run.vec, algo.num_envs, run).each_bytes,
        torch_threads=run.hardware.threads or limit.cores,
        cores=limit.cores,
        ram_bytes=limit.ram_bytes,
        vram_bytes=limit.vram_bytes,
        on_device=on_device,
        save_every_steps=run.checkpoint_every_steps,
        checkpoint_bytes=3 * held(Kind.parameters) + (1 << 20),
        keep_checkpoints=run.keep_checkpoints,
        **replay_on_disk(run),
        free_disk_bytes=free_disk(Path(run.run_dir)),
        eval_seed_is_training_seed=evaluation.seed == run.seed,
        eval_steps=evaluation.episodes * (typical_episode(run) or (0, 0))[1],
        eval_episodes=evaluation.episodes,
        seed=run.seed,
        eval_every_steps=evaluation.every_steps,
        unread=_unread(run),
        words=tuple(typed_words(run.overrides, run.config_dir)),
        **_learning(algo),
    )


def typical_episode(run: RunConfig) -> tuple[int, int] | None:
    """What the environment says of itself, else its limit."""
    typical = getattr(run.env, "typical_episode_steps", None)
    if typical is not None:
        return int(typical[0]), int(typical[1])
    limit = time_limit(run)
    return (limit, limit) if limit else None


def replay_on_disk(run: RunConfig) -> dict[str, Any]:
    """What a replay's segments take beside the checkpoints of a whole run, and at most."""
    file_bytes = getattr(run.algo, "file_bytes", None)
    if file_bytes is None:
        return {}
    episode = typical_episode(run)
    found, most, seen = file_bytes(run, episode[1] if episode else None, time_limit(run))
    return {"replay_file_bytes": found, "replay_file_most_bytes": most, "replay_seen": seen}


def time_limit(run: RunConfig) -> int | None:
    """After how many steps an environment cuts an episode off, if it says so."""
    unlimited = getattr(run.env, "unlimited", False)
    return None if unlimited else run.env.episode_steps or None


def _unread(run: RunConfig) -> tuple[str, ...] | None:
    """What an agent that nobody told what to read leaves out of a stranger's observation."""
    fields, named = getattr(run.agent, "fields", None), getattr(run.agent, "read", ())
    if fields is None or named or not getattr(type(run.env), "undeclared", False):
        return None
    read = {f.name for f in fields(run.encoding())}
    return tuple(f.name for f in run.env.spec().observed() if f.name not in read)


def _learning(algo: Any) -> dict[str, Any]:
    """What only gradient algorithms have."""
    names = ("n_epochs", "target_kl", "gamma")
    return {n: getattr(algo, n) for n in names if hasattr(algo, n)}


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
