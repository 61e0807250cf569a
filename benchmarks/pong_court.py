"""What moves on Pong's court, in black and white: small pictures that two cores learn from."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

TOP, BOTTOM, BACKGROUND, BLOCK = 34, 194, 87, 4
"""Lines of the court in ALE's picture of 210 x 160 pixels, its grey, and a block's side."""


class Court(gym.ObservationWrapper[np.ndarray, Any, np.ndarray]):
    """Pictures [40, 40, 1] uint8: 255 where a block of the court shows a paddle or the ball."""

    def __init__(self, env: gym.Env[np.ndarray, Any]) -> None:
        super().__init__(env)
        self.observation_space = gym.spaces.Box(0, 255, (40, 40, 1), np.uint8)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        """Of a grey picture [210, 160] (`obs_type=grayscale`)."""
        moving = observation[TOP:BOTTOM] != BACKGROUND
        blocks = moving.reshape(40, BLOCK, 40, BLOCK).any((1, 3))
        return (blocks * np.uint8(255))[..., None]
