"""Peak memory on stacked pictures, 65,536 transitions of 4 x 84 x 84: stock SB3 against ours.

python benchmarks/train_image_peak.py

Both learn from the same pictures, actions and values with the same network, minibatches of 256,
each in a process of its own; their parameters must be equal at the end. Peaks are counted above the
bare process (interpreter and libraries).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.utils import set_random_seed

from frugal_rl.memory import FrameStack, MemoryProfile, Storage, usage
from frugal_rl.memory.allocator import pin_allocator
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.observation.spec import ObservationSpec, Stored
from frugal_rl.observation.tables import Tables
from frugal_rl.run import Hardware, RunConfig
from frugal_rl.train.networks import NatureCnnAgent
from frugal_rl.train.policy import FrugalPolicy
from frugal_rl.train.ppo import PpoConfig
from frugal_rl.train.sb3_adapter import Sb3VecEnv
from frugal_rl.vec_env.interface import Rows, Step, VectorEnv

ENVS, STEPS, BATCH, MINIBATCHES, EPISODE = 16, 4096, 256, 8, 500
SPEC = ObservationSpec((Stored("screen", (84, 84), np.uint8, 0, 255, window=4),))


class Screens(VectorEnv):
    """Noise, the worst case for compression; never stepped by a learner here."""

    def __init__(self, encoding: Encoding) -> None:
        self.num_envs, self.encoding, self.tables = ENVS, encoding, Tables()
        self.action_space = spaces.Discrete(6)

    def reset(self, seed: int) -> Rows:
        """Grey screens."""
        return {"screen": np.full((ENVS, 84, 84), 128, np.uint8)}

    def step(self, actions: np.ndarray) -> Step:
        """Not part of this comparison."""
        raise NotImplementedError

    def parts(self) -> dict[str, int]:
        """Nothing held."""
        return {}


@dataclass(frozen=True)
class ScreensConfig:
    """The workload as a configuration."""

    name: str = "screens"
    fields: Mapping[str, str] = field(default_factory=dict)
    episode_steps: int = EPISODE

    def spec(self) -> ObservationSpec:
        """A stack of four screens."""
        return SPEC


def fill(buffer: Any, history: History) -> None:
    """The same rollout for everybody."""
    rng = np.random.default_rng(7)
    starts = np.ones(ENVS, bool)
    for t in range(STEPS):
        obs, _ = history.push(
            {"screen": rng.integers(256, size=(ENVS, 84, 84), dtype=np.uint8)}, starts
        )
        numbers = rng.standard_normal((3, ENVS), dtype=np.float32)
        actions = rng.integers(6, size=(ENVS, 1))
        values, log_probs = torch.from_numpy(numbers[1]), torch.from_numpy(-np.abs(numbers[2]))
        buffer.add(obs, actions, numbers[0], starts, values, log_probs)
        starts = (np.arange(ENVS) * 31 + t) % EPISODE == 0
    buffer.compute_returns_and_advantage(torch.zeros(ENVS), starts)


def first(buffer: Any) -> None:
    """Let an epoch end after a few minibatches: the peak is reached by then."""
    whole = buffer.get

    def get(batch_size: int) -> Iterator[Any]:
        return itertools.islice(whole(batch_size), MINIBATCHES)

    buffer.get = get


def learn(kind: str) -> dict[str, Any]:
    """Fill and learn in this process."""
    ours = kind == "ours"
    if ours:
        pin_allocator()
    torch.set_num_threads(1)
    bare = usage.resident_bytes()
    stack = FrameStack.once if ours else FrameStack.copies
    memory = MemoryProfile(storage=Storage.lossless, frame_stack=stack)
    algo = PpoConfig(num_envs=ENVS, n_steps=STEPS, batch_size=BATCH, n_epochs=1, total_steps=10**9)
    hardware = Hardware("cpu", 1)
    run = RunConfig(ScreensConfig(), NatureCnnAgent(), algo, memory, None, hardware=hardware)
    encoding = run.encoding()
    env, history = Screens(encoding), History(encoding, ENVS)
    set_random_seed(0)
    if ours:
        learner = algo.build(run, env)
        policy, buffer, update = learner.policy, learner.rollout, learner.learn
    else:
        arguments = {"agent": run.agent, "encoding": encoding, "tables": env.tables}
        model = PPO(FrugalPolicy, Sb3VecEnv(env), n_steps=STEPS, batch_size=BATCH, n_epochs=1,
                    policy_kwargs=arguments, device="cpu", seed=0)  # fmt: skip
        model._setup_learn(10**9, None)
        policy, buffer, update = model.policy, model.rollout_buffer, model.train
    fill(buffer, history)
    first(buffer)
    np.random.seed(1)  # noqa: NPY002 - the stream that SB3 draws from
    began = time.perf_counter()
    update()
    seconds = time.perf_counter() - began
    weights = torch.cat([p.detach().flatten() for p in policy.parameters()]).numpy()
    peak = usage.peak_resident_bytes() - bare
    digest = hashlib.sha256(weights.tobytes()).hexdigest()[:12]
    return {"peak": peak, "seconds": seconds, "weights": digest}


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(learn(sys.argv[1])))
        return
    found = {}
    for kind in ("sb3", "ours"):
        done = subprocess.run(
            [sys.executable, __file__, kind], capture_output=True, text=True, check=True
        )
        found[kind] = json.loads(done.stdout.splitlines()[-1])
        one = found[kind]
        print(
            f"{kind:>5}: peak {one['peak'] / 2**20:,.0f} MiB above the bare process, flatten and "
            f"{MINIBATCHES} minibatches {one['seconds']:.2f} s, weights {one['weights']}",
            flush=True,
        )
    print(
        f"ours / sb3: {found['ours']['peak'] / found['sb3']['peak']:.3f} of the peak; "
        f"parameters equal: {found['ours']['weights'] == found['sb3']['weights']}"
    )


if __name__ == "__main__":
    main()
