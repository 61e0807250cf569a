"""Behaviour cloning for stable-baselines3's policies, from what a replay holds. Imports torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy

if TYPE_CHECKING:
    from frugal_rl.store.replay import ReplayBuffer


def imitate(
    policy: ActorCriticPolicy, replay: ReplayBuffer, updates: int, batch_size: int = 256
) -> list[float]:
    """Teach a policy the actions of a replay; the loss of each update.

    Minibatches are drawn as off-policy algorithms draw them, so that a data set of any size is held
    once, in compact form (`frugal_rl.store.offline.read_dataset`).

    Args:
        policy: of PPO, A2C and the like (`model.policy`); its own optimiser is used.
        replay: of the policy's spaces.
        updates: minibatches.
        batch_size: transitions of each.

    Example:
        >>> from stable_baselines3 import PPO
        >>> replay = read_dataset("data/walk")  # doctest: +SKIP
        >>> imitate(PPO("MlpPolicy", "CartPole-v1").policy, replay, 1_000)  # doctest: +SKIP
    """
    policy.set_training_mode(True)
    losses = []
    for _ in range(updates):
        drawn = replay.sample(batch_size)
        actions = in_units(drawn.actions, policy.action_space)
        loss = -policy.evaluate_actions(drawn.observations, actions)[1].mean()
        policy.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        policy.optimizer.step()
        losses.append(float(loss.detach()))
    policy.set_training_mode(False)
    return losses


def in_units(actions: torch.Tensor, space: spaces.Space[object]) -> torch.Tensor:
    """A replay's actions [B, ...] as the environment takes them: a bounded box is unscaled."""
    if isinstance(space, spaces.Box) and space.is_bounded():
        low, high = (torch.as_tensor(v, device=actions.device) for v in (space.low, space.high))
        return low + 0.5 * (actions + 1.0) * (high - low)
    return actions.flatten() if isinstance(space, spaces.Discrete) else actions
