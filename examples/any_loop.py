"""A loop in CleanRL's manner; only the line that makes `obs` differs from one with arrays."""

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from frugal_rl import FoundArray

STEPS, ENVS, SIDE = 256, 4, 48


class Dot(gym.Env):
    """Four stacked pictures of a dot that walks at random; right of the middle is rewarded."""

    observation_space = gym.spaces.Box(0, 255, (4, SIDE, SIDE), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        """Begin in the middle."""
        super().reset(seed=seed)
        self.x, self.stack = SIDE // 2, np.zeros((4, SIDE, SIDE), np.uint8)
        return self.see(), {}

    def see(self):
        """Draw one more picture."""
        self.stack[:-1], self.stack[-1] = self.stack[1:], 0
        self.stack[-1, 20:24, self.x] = 255
        return self.stack

    def step(self, action):
        """Go left or right."""
        self.x = int(np.clip(self.x + 2 * action - 1, 0, SIDE - 1))
        return self.see(), float(self.x > SIDE // 2), self.x in (0, SIDE - 1), False, {}


envs = gym.vector.SyncVectorEnv([Dot] * ENVS)
network = nn.Sequential(nn.Flatten(), nn.Linear(4 * SIDE * SIDE, 2))
optimizer = torch.optim.Adam(network.parameters(), 1e-3)
obs = FoundArray(STEPS, ENVS, envs.single_observation_space, device="cpu")
actions, rewards = np.zeros((2, STEPS, ENVS))
next_obs, _ = envs.reset(seed=0)
for step in range(STEPS):
    obs[step] = next_obs
    logits = network(torch.as_tensor(next_obs).float() / 255)
    actions[step] = torch.distributions.Categorical(logits=logits).sample().numpy()
    next_obs, rewards[step], _, _, _ = envs.step(actions[step].astype(int))

b_obs, b_actions = obs.reshape((-1, 4, SIDE, SIDE)), torch.as_tensor(actions.reshape(-1))
b_returns = torch.as_tensor(rewards[::-1].cumsum(0)[::-1].reshape(-1) / STEPS)
for mb_inds in np.random.default_rng(0).permutation(STEPS * ENVS).reshape(-1, 128):
    logits = network(b_obs[mb_inds].float() / 255)
    chosen = torch.distributions.Categorical(logits=logits).log_prob(b_actions[mb_inds])
    optimizer.zero_grad()
    (-(chosen * (b_returns[mb_inds] - b_returns.mean())).mean()).backward()
    optimizer.step()
dense = STEPS * ENVS * 4 * SIDE * SIDE
print(
    f"{dense / STEPS / ENVS:,.0f} B a transition as they are, {obs.nbytes / STEPS / ENVS:,.0f} kept"
)
