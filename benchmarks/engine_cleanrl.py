"""PPO as one plain loop in PyTorch: what a reader of a one-file implementation would write.

A peer of `benchmarks/engine.py`: Adam of torch, minibatches by a permutation, autograd, and the
usual choices of such files (clipped values, entropy 0.01, the gradient's norm at most 0.5).
"""

from __future__ import annotations

import numpy as np
import torch
from engine_serve import Mark
from torch import Tensor, nn
from torch.distributions import Categorical
from train_workload import SPEC, TrivialBatch

from frugal_rl.memory import MemoryProfile
from frugal_rl.observation.encoding import Encoding

GAMMA, LAMBDA, CLIP, ENTROPY, VALUE = 0.99, 0.95, 0.2, 0.01, 0.5
OBSERVED, ACTIONS = 64, 4


def perceptron(hidden: int, outputs: int, gain: float) -> nn.Sequential:
    """Two hidden layers of tanh units, orthogonal weights."""

    def layer(inputs: int, units: int, gain: float) -> nn.Linear:
        made = nn.Linear(inputs, units)
        nn.init.orthogonal_(made.weight, gain)
        nn.init.zeros_(made.bias)
        return made

    first, second = layer(OBSERVED, hidden, 2**0.5), layer(hidden, hidden, 2**0.5)
    return nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), layer(hidden, outputs, gain))


class Loop:
    """Networks, environments and one rollout's tensors [T, N, ...]."""

    def __init__(self, num_envs: int, hidden: int, batch: int, steps: int, epochs: int) -> None:
        self.batch, self.steps, self.epochs = batch, steps, epochs
        self.actor, self.critic = perceptron(hidden, ACTIONS, 0.01), perceptron(hidden, 1, 1.0)
        self.parameters = [*self.actor.parameters(), *self.critic.parameters()]
        self.adam = torch.optim.Adam(self.parameters, lr=2.5e-4, eps=1e-5)
        self.envs = TrivialBatch(num_envs, Encoding.choose(SPEC, MemoryProfile().storage))
        self.next_obs = torch.tensor(self.envs.reset(0)["x"])
        self.next_done = torch.zeros(num_envs)
        self.obs = torch.zeros(steps, num_envs, OBSERVED)
        self.actions, self.log_probs, self.rewards, self.dones, self.values = (
            torch.zeros(steps, num_envs) for _ in range(5)
        )
        self.random = np.random.default_rng(0)

    def iterate(self, mark: Mark) -> None:
        """One rollout, one update."""
        with torch.no_grad():
            self.collect()
            self.advantages = self.estimate()
        mark()
        self.update()

    def collect(self) -> None:
        """Play `steps` steps of all environments."""
        for t in range(self.steps):
            self.obs[t], self.dones[t] = self.next_obs, self.next_done
            choice = Categorical(logits=self.actor(self.next_obs))
            action = choice.sample()
            self.actions[t], self.log_probs[t] = action, choice.log_prob(action)
            self.values[t] = self.critic(self.next_obs).flatten()
            step = self.envs.step(action.numpy())
            self.rewards[t] = torch.tensor(step.reward)
            self.next_obs = torch.tensor(step.rows["x"])
            self.next_done = torch.tensor(step.done).float()

    def estimate(self) -> Tensor:
        """Generalised advantages [T, N]."""
        advantages, last = torch.zeros_like(self.rewards), torch.zeros_like(self.next_done)
        value, goes_on = self.critic(self.next_obs).flatten(), 1 - self.next_done
        for t in reversed(range(self.steps)):
            delta = self.rewards[t] + GAMMA * value * goes_on - self.values[t]
            advantages[t] = last = delta + GAMMA * LAMBDA * goes_on * last
            value, goes_on = self.values[t], 1 - self.dones[t]
        return advantages

    def update(self) -> None:
        """All epochs over the rollout."""
        columns = (self.obs, self.actions, self.log_probs, self.values, self.advantages)
        flat = [c.flatten(0, 1) for c in (*columns, self.advantages + self.values)]
        for _ in range(self.epochs):
            order = self.random.permutation(len(flat[0]))
            for start in range(0, len(order), self.batch):
                loss = self.loss(*(c[order[start : start + self.batch]] for c in flat))
                self.adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.parameters, 0.5)
                self.adam.step()

    def loss(
        self, obs: Tensor, action: Tensor, old: Tensor, value: Tensor, gain: Tensor, returns: Tensor
    ) -> Tensor:
        """PPO's, of one minibatch."""
        choice = Categorical(logits=self.actor(obs))
        ratio = (choice.log_prob(action) - old).exp()
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        policy = torch.max(-gain * ratio, -gain * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
        now = self.critic(obs).flatten()
        held = value + (now - value).clamp(-CLIP, CLIP)
        errors = torch.max((now - returns) ** 2, (held - returns) ** 2)
        return policy - ENTROPY * choice.entropy().mean() + VALUE * 0.5 * errors.mean()
