"""An environment of your own, declared field by field: python examples/own_environment.py."""

import numpy as np
from gymnasium import spaces

import frugal_rl
from frugal_rl.observation.tables import StaticTable, TableField, Tables
from frugal_rl.vec_env.plain import SpecEnv

SPEC = frugal_rl.ObservationSpec(
    (
        frugal_rl.Stored("place", (1,), np.int16, 0, 255, "cells from the left"),
        frugal_rl.Stored("screen", (16, 16), np.uint8, 0, 255, "what a camera sees", window=4),
        frugal_rl.Static("map", (256,), np.uint8, 0, 1, "1 where there is a coin", table="levels"),
    )
)


class Corridor(SpecEnv):
    """Walk right, collect coins; the map stays the same for a whole episode."""

    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        levels = StaticTable("levels", (TableField("map", (256,), np.uint8),))
        super().__init__(SPEC, Tables({"levels": levels}), episode_steps=64)

    def begin(self) -> None:
        """A random one of eight maps."""
        level = int(self.np_random.integers(8))
        coins = np.random.default_rng(level).integers(0, 2, 256, dtype=np.uint8)
        self.level = self.tables["levels"].intern(level, lambda: {"map": coins})
        self.coins, self.place, self.steps = coins, 0, 0

    def advance(self, action):
        """Action 1 walks; a coin is worth 1."""
        self.place, self.steps = self.place + int(action), self.steps + 1
        return float(action * self.coins[self.place]), False, self.steps >= 64, {"success": False}

    def raw(self):
        """Stored fields, and the id of the map."""
        screen = np.zeros((16, 16), np.uint8)
        screen[self.place % 16] = 255
        return {"place": np.int16([self.place]), "screen": screen, "levels_id": self.level}


def main() -> None:
    """Show the observation space, and the bytes of a rollout before and after."""
    env = Corridor()
    print({name: value.shape for name, value in env.reset(seed=0)[0].items()})
    sizes = (128, SPEC.observation_space, env.action_space)
    dense = frugal_rl.RolloutBuffer(*sizes, n_envs=8)
    ours = frugal_rl.RolloutBuffer(*sizes, n_envs=8, encoding=frugal_rl.Encoding.choose(SPEC))
    print(f"{dense.nbytes:,} -> {ours.nbytes:,} bytes")


if __name__ == "__main__":
    main()
