"""Who plays with the agent's policy: itself, or itself looking ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frugal_rl.errors import ConfigError
from nclone.vec_env import NppVecEnv
from npp_rl.lookahead import LookaheadPlayer

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv
    from npp_rl.config import AttentionAgent


def player(
    run: RunConfig, policy: FrugalPolicy, vec_env: VectorEnv, deterministic: bool
) -> LookaheadPlayer | None:
    """A player that looks ahead where `agent.lookahead` says so; None leaves it to the policy.

    Its likeliest future is the policy's most likely one, whatever `deterministic` says.
    """
    agent: AttentionAgent = run.agent  # type: ignore[assignment]
    if not agent.lookahead.samples:
        return None
    if not isinstance(vec_env, NppVecEnv):
        raise ConfigError("agent.lookahead needs env=nclone: it copies N++ worlds.")
    return LookaheadPlayer(policy, vec_env, agent.lookahead, run.evaluation.seed)
