"""A stock Stable-Baselines3 script as people write them for a Game Boy: nothing here knows of us.

An own world of tiles in place of the cartridge: three stacked screens, counters, flags of events,
a map of where one has been, the last actions. `explorer.py` changes four lines of it.
"""

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

STEPS, ENVS, UPDATES, BATCH = 2048, 4, 2, 512
SIDE, TILE, SEEN, EVENTS = 128, 8, (9, 10), 2552
MOVES = np.array([[0, 1], [1, 0], [0, -1], [-1, 0], [0, 0], [0, 0], [0, 0]])


class Explorer(gym.Env):
    """Walk over a world of tiles; new ground, events and levels are rewarded."""

    observation_space = spaces.Dict(
        {
            "screens": spaces.Box(0, 255, (72, 80, 3), np.uint8),
            "health": spaces.Box(0, 1, (1,), np.float32),
            "level": spaces.Box(-1, 1, (8,), np.float32),
            "badges": spaces.MultiBinary(8),
            "events": spaces.MultiBinary(EVENTS),
            "map": spaces.Box(0, 255, (48, 48, 1), np.uint8),
            "recent_actions": spaces.MultiDiscrete([len(MOVES)] * 3),
        }
    )
    action_space = spaces.Discrete(len(MOVES))

    def __init__(self, most_steps=2048):
        self.most_steps = most_steps
        drawn = np.random.default_rng(7)
        self.tiles = drawn.choice(np.array([0, 85, 170, 255], np.uint8), (16, TILE, TILE))
        self.world = np.repeat(np.repeat(drawn.integers(0, 12, (32, 32)), 4, 0), 4, 1)
        self.walls = drawn.random((SIDE, SIDE)) < 0.1
        self.world[self.walls] = 15
        self.events_at = drawn.integers(0, EVENTS, (SIDE, SIDE))

    def reset(self, *, seed=None, options=None):
        """Begin somewhere in the middle of the world."""
        super().reset(seed=seed)
        self.at = self.np_random.integers(SIDE // 4, 3 * SIDE // 4, 2)
        self.been = np.zeros((SIDE, SIDE), np.uint8)
        self.screens = np.zeros((72, 80, 3), np.uint8)
        self.events = np.zeros(EVENTS, np.int8)
        self.recent = np.zeros(3, np.int64)
        self.health, self.steps, self.levels = 1.0, 0, np.zeros(8, np.float32)
        return self.observe(), {}

    def step(self, action):
        """One button."""
        self.steps += 1
        ahead = np.clip(self.at + MOVES[action], 8, SIDE - 9)
        if not self.walls[tuple(ahead)]:
            self.at = ahead
        reward = self.explore()
        self.recent = np.roll(self.recent, 1)
        self.recent[0] = action
        if self.world[tuple(self.at)] == 3 and self.np_random.random() < 0.2:  # tall grass
            reward += self.fight()
        done = self.health <= 0
        return self.observe(), reward, done, self.steps >= self.most_steps, {}

    def explore(self):
        """What new ground is worth."""
        y, x = self.at
        new = self.been[y, x] == 0
        self.been[y, x] = 255
        if not new:
            return 0.0
        event = self.events_at[y, x]
        found = event % 9 == 0 and not self.events[event]
        self.events[event] |= found
        return 0.02 + 1.0 * found

    def fight(self):
        """Win a level or lose health."""
        if self.np_random.random() < 0.7:
            self.levels[self.np_random.integers(6)] += 0.02
            return 0.5
        self.health -= 0.1
        return -0.1

    def screen(self):
        """The tiles around, and someone in the middle."""
        y, x = self.at
        seen = self.world[y - 4 : y + 5, x - 5 : x + 5]
        picture = self.tiles[seen].swapaxes(1, 2).reshape(72, 80)
        picture[34:38, 42:46] = 40 * (self.steps % 2)
        return picture

    def observe(self):
        """The newest screen in front of the two before, and all the rest."""
        self.screens = np.roll(self.screens, 1, axis=2)
        self.screens[:, :, 0] = self.screen()
        y, x = np.clip(self.at, 24, SIDE - 24)
        return {
            "screens": self.screens,
            "health": np.array([self.health], np.float32),
            "level": np.sin(self.levels),
            "badges": self.events[:8],
            "events": self.events,
            "map": self.been[y - 24 : y + 24, x - 24 : x + 24, None],
            "recent_actions": self.recent,
        }


env = make_vec_env(Explorer, n_envs=ENVS, seed=0)
model = PPO(
    "MultiInputPolicy",
    env,
    n_steps=STEPS,
    batch_size=BATCH,
    n_epochs=1,
    seed=0,
    device="cpu",
)
model.learn(STEPS * ENVS * UPDATES)
