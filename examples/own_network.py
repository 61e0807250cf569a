"""A network of your own under unmodified Stable-Baselines3: python examples/own_network.py."""

from dataclasses import dataclass

import torch
from stable_baselines3 import PPO
from torch import nn

import frugal_rl
from frugal_rl.learn.networks import Network
from frugal_rl.learn.policy import FrugalPolicy
from frugal_rl.sb3.adapter import Sb3VecEnv


class Walker(Network):
    """Reads two fields by name; each arrives decoded, as the observation space shows it."""

    def __init__(self, actions: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(25 + 2, 64), nn.Tanh())
        self.pi, self.v = nn.Linear(64, actions), nn.Linear(64, 1)

    def features(self, fields):
        """Fields [B, ...] -> [B, 64]."""
        picture = fields["picture"].float().flatten(1)
        return self.trunk(torch.cat([picture, fields["position"].float()], dim=1))

    def actor(self, fields):
        """Logits [B, actions]."""
        return self.pi(self.features(fields))

    def critic(self, fields):
        """Values [B, 1]."""
        return self.v(self.features(fields))


@dataclass(frozen=True)
class WalkerAgent:
    """The network as a value, as a YAML file would name it."""

    def build(self, encoding, tables, action_space):
        """The network for these spaces."""
        return Walker(int(action_space.n))


def main() -> None:
    """Stock PPO, our environments, our store, this network."""
    run = frugal_rl.compose("env=toy algo.num_envs=16")
    envs, steps = frugal_rl.make_vec(run), run.env.episode_steps
    sees = {"agent": WalkerAgent(), "encoding": run.encoding(), "tables": envs.tables}
    stores = {"encoding": run.encoding(), "episode_steps": steps}
    kinds = {"rollout_buffer_class": frugal_rl.RolloutBuffer, "rollout_buffer_kwargs": stores}
    model = PPO(FrugalPolicy, Sb3VecEnv(envs, steps), n_steps=64, policy_kwargs=sees, **kinds)
    model.learn(4_096)
    print(f"mean return: {sum(e['r'] for e in model.ep_info_buffer) / 100:.3f}")


if __name__ == "__main__":
    main()
