"""Stock SB3 PPO on stacked images, with its own rollout buffer and with ours: peak and speed.

    python benchmarks/rollout_images.py [--steps 1024] [--envs 64] [--markdown FILE]

Both train the same network from the same seed on the same frames (4 x 84 x 84 uint8, episodes of
200 steps, one epoch of minibatches of 256), in a process of their own. `peak` is what the process
holds at most above interpreter and libraries (`bare`), loaded by a run of one minibatch in
both; `update` counts seconds of processor time on one thread; `parameters` is a digest of the
trained network.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, NatureCNN
from stable_baselines3.common.vec_env import VecEnv

from frugal_rl.memory.allocator import give_back, pin_allocator
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.observation.spec import ObservationSpec, Stored
from frugal_rl.store.rollout import RolloutBuffer

SPEC = ObservationSpec((Stored("frame", (84, 84), np.uint8, 0, 255, window=4),))
ENCODING = Encoding.choose(SPEC, Storage.lossless)
EPISODE_STEPS = 200


class Drifting(VecEnv):
    """Frames that drift over noise; the reward asks for the direction of the drift."""

    def __init__(self, num_envs: int) -> None:
        from gymnasium import spaces

        super().__init__(num_envs, ENCODING.policy_space(), spaces.Discrete(4))
        rng = np.random.default_rng(0)
        self.noise = rng.integers(0, 255, (num_envs, 256, 256), np.uint8)
        self.at = rng.integers(0, 172, (num_envs, 2))
        self.rng = rng
        self.way = rng.integers(0, 4, num_envs)
        self.age = np.arange(num_envs) * 7 % EPISODE_STEPS
        self.history = History(ENCODING, num_envs)

    def _frames(self) -> dict[str, np.ndarray]:
        views = [self.noise[n, y : y + 84, x : x + 84] for n, (y, x) in enumerate(self.at)]
        return {"frame": np.stack(views)}

    def reset(self) -> Any:
        """Start all episodes."""
        return self._copied(self.history.reset(self._frames()))

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions."""
        self.actions = actions

    def step_wait(self) -> Any:
        """Drift by one pixel."""
        self.at += np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])[self.way]
        self.at %= 172
        self.age += 1
        done = self.age >= EPISODE_STEPS
        self.age[done] = 0
        reward = (self.actions == self.way).astype(np.float32)
        self.way[done] = self.rng.integers(0, 4, int(done.sum()))
        obs, _ = self.history.push(self._frames(), done)
        return self._copied(obs), reward, done, [{} for _ in done]

    @staticmethod
    def _copied(obs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: values.copy() for name, values in obs.items()}

    def close(self) -> None:
        """Nothing to release."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """No attributes of single environments."""
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Nothing to set."""

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list:
        """No methods of single environments."""
        return []

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """No wrappers."""
        return [False] * self.num_envs


class Frames(BaseFeaturesExtractor):
    """SB3's NatureCNN on the stack of frames."""

    def __init__(self, space: Any) -> None:
        super().__init__(space, 512)
        self.cnn = NatureCNN(space["frame"], 512)

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        """Features [B, 512]."""
        return self.cnn(observations["frame"])


def status_mib(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(x for x in lines if x.startswith(key)).split()[1]) / 1024


def build(env: VecEnv, name: str, steps: int) -> PPO:
    """SB3's PPO with its own rollout buffer or with ours."""
    ours = {
        "rollout_buffer_class": RolloutBuffer,
        "rollout_buffer_kwargs": {"encoding": ENCODING, "reuse": True},
    }
    return PPO(
        "MultiInputPolicy", env, n_steps=steps, batch_size=256, n_epochs=1, seed=0, device="cpu",
        policy_kwargs={"features_extractor_class": Frames}, **(ours if name == "ours" else {}),
    )  # fmt: skip


def load_libraries(name: str) -> None:
    """Train on one minibatch: torch's compiler and numba's are loaded, and kernels at first use."""
    build(Drifting(64), name, 4).learn(256)
    gc.collect()
    give_back()


def one(name: str, steps: int, envs: int) -> None:
    torch.set_num_threads(1)
    env = Drifting(envs)
    if name == "ours":
        pin_allocator()  # memory.allocator=pinned, one of the savings
    load_libraries(name)
    base = status_mib("VmRSS")
    model = build(env, name, steps)
    spent = {"update": 0.0}
    train = model.train

    def timed() -> None:
        start = time.process_time()
        train()
        spent["update"] += time.process_time() - start

    model.train = timed
    model.learn(steps * envs)
    digest = hashlib.sha256()
    for value in model.policy.state_dict().values():
        digest.update(value.numpy().tobytes())
    print(status_mib("VmHWM") - base, base, steps * envs / spent["update"], digest.hexdigest()[:16])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1024)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--one")
    args = parser.parse_args()
    if args.one:
        one(args.one, args.steps, args.envs)
        return
    lines = [
        f"{args.steps} x {args.envs} transitions of 4 x 84 x 84 uint8, torch {torch.__version__}",
        "",
        "| buffer | bare MiB | peak MiB above it | of SB3's | update samples/s | parameters |",
        "|---|---|---|---|---|---|",
    ]
    first = 0.0
    for name in ("sb3", "ours"):
        command = [sys.executable, __file__, "--one", name]
        command += ["--steps", str(args.steps), "--envs", str(args.envs)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        peak, bare, rate, digest = done.stdout.split()[-4:]
        first = first or float(peak)
        share = float(peak) / first
        lines.append(
            f"| {name} | {float(bare):,.0f} | {float(peak):,.0f} | {share:.3f} "
            f"| {float(rate):,.0f} | {digest} |"
        )
    print("\n".join(lines))
    if args.markdown:
        args.markdown.write_text("\n".join(["# Stacked images", "", *lines, ""]))


if __name__ == "__main__":
    main()
