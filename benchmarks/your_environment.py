"""The three cases of docs/your_environment.md: pixels, a dictionary with a static map, a graph.

`python benchmarks/your_environment.py` trains stock PPO with and without `compact` on each and
prints observation bytes per transition, and whether all parameters are equal after two updates.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from frugal_rl.sb3 import compact

STEPS, ENVS, ROLLOUTS = 128, 4, 2


class Pixels(gym.Env[Any, Any]):
    """Four stacked 64 x 64 pictures of two dots that walk."""

    observation_space: spaces.Space[Any] = spaces.Box(0, 255, (4, 64, 64), np.uint8)
    action_space = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Both dots anywhere."""
        super().reset(seed=seed)
        self.dots = self.np_random.integers(4, 60, (2, 2))
        self.stack = np.zeros((4, 64, 64), np.uint8)
        return self.see(), {}

    def see(self) -> Any:
        """The newest picture behind the three before."""
        self.stack[:-1], self.stack[-1] = self.stack[1:].copy(), 30
        for y, x in self.dots:
            self.stack[-1, y - 2 : y + 3, x - 2 : x + 3] = 220
        return self.stack

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Move the first dot, the other one walks at random."""
        moves = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
        self.dots += moves[[int(action), self.np_random.integers(4)]]
        np.clip(self.dots, 4, 60, out=self.dots)
        near = bool(np.abs(self.dots[0] - self.dots[1]).sum() < 4)
        return self.see(), float(near), near, False, {}


class Mapped(Pixels):
    """A map of the episode, a mask of moves, numbers that change every step."""

    observation_space = spaces.Dict(
        {
            "map": spaces.Box(0, 1, (48, 48), np.float32),
            "mask": spaces.MultiBinary(16),
            "state": spaces.Box(-1, 1, (6,), np.float32),
        }
    )

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """A new map."""
        _, info = super().reset(seed=seed)
        self.map = self.np_random.random((48, 48), np.float32)
        return self.see(), info

    def see(self) -> Any:
        """The map is the same all the episode."""
        if not hasattr(self, "map"):
            return {}
        mask = np.zeros(16, np.int8)
        mask[self.dots[0] % 16] = 1
        state = self.np_random.random(6, np.float32)
        return {"map": self.map, "mask": mask, "state": state}


class Graph(Mapped):
    """A padded graph of the level and the place of the walker in it."""

    NODES, EDGES = 100, 400
    observation_space = spaces.Dict(
        {
            "nodes": spaces.Box(-1, 1, (NODES, 8), np.float32),
            "edges": spaces.Box(0, NODES, (2, EDGES), np.int32),
            "walker": spaces.Box(-1, 1, (4,), np.float32),
        }
    )

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """One of five levels, padded with zeros."""
        super().reset(seed=seed)
        level = np.random.default_rng(int(self.np_random.integers(5)))
        nodes, edges = level.integers(40, 100), level.integers(150, 400)
        self.nodes = np.zeros((self.NODES, 8), np.float32)
        self.nodes[:nodes] = level.random((nodes, 8), np.float32)
        self.edges = np.zeros((2, self.EDGES), np.int32)
        self.edges[:, :edges] = level.integers(0, nodes, (2, edges))
        return self.see(), {}

    def see(self) -> Any:
        """The level, and where the walker is."""
        if not hasattr(self, "nodes"):
            return {}
        place = (self.dots.reshape(-1) / 64).astype(np.float32)
        return {"nodes": self.nodes, "edges": self.edges, "walker": place}


def trained(case: type[gym.Env[Any, Any]], keywords: dict[str, Any]) -> PPO:
    """PPO after two updates."""
    env = make_vec_env(case, n_envs=ENVS, seed=0)
    dictionary = isinstance(env.observation_space, spaces.Dict)
    policy = "MultiInputPolicy" if dictionary else "CnnPolicy"
    model = PPO(policy, env, n_steps=STEPS, n_epochs=1, seed=0, device="cpu", **keywords)
    return model.learn(STEPS * ENVS * ROLLOUTS)


def main() -> None:
    torch.set_num_threads(1)
    for case in (Pixels, Mapped, Graph):
        env = make_vec_env(case, n_envs=1)
        stock, small = trained(case, {}), trained(case, compact(env))
        state = small.policy.state_dict()
        equal = all(torch.equal(v, state[n]) for n, v in stock.policy.state_dict().items())
        columns = small.rollout_buffer.columns.values()
        dense = sum(c.spec.row_bytes for c in columns)
        held = sum(c.nbytes for c in columns) / STEPS / ENVS
        words = f"{dense:,} B a transition, {held:,.1f} kept, 1/{dense / held:.1f}"
        print(f"{case.__name__:8}{words}, parameters {'equal' if equal else 'DIFFER'}")
        for c in columns:
            kept, forms = c.nbytes / STEPS / ENVS, [s.form.name for s in c.segments]
            print(f"  {c.spec.name:12}{c.spec.row_bytes:8,} {kept:9.1f}  {', '.join(forms)}")


if __name__ == "__main__":
    main()
