"""Builds all that the compiled engine consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frugal_rl.learn.compiled.acting import CompiledActor, FrozenActor
from frugal_rl.learn.compiled.engine import CompiledPerceptron
from frugal_rl.learn.compiled.refusal import refuse_policy
from frugal_rl.learn.compiled.update import CompiledAdam, CompiledUpdate
from frugal_rl.learn.schedules import value_at

if TYPE_CHECKING:
    from frugal_rl.learn.on_policy_config import OnPolicyConfig
    from frugal_rl.learn.optimizer import FlatAdam
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.run.config import RunConfig


def frozen_actor(policy: FrugalPolicy, adam: FlatAdam) -> FrozenActor:
    """One that acts in one thread while another learns: with a decoder of its own."""
    decoder = policy.decoder.reading(policy.decoder.static)
    return FrozenActor(CompiledPerceptron(policy, adam, 1, decoder))


def start(
    config: OnPolicyConfig, run: RunConfig, policy: FrugalPolicy, threads: int
) -> tuple[CompiledAdam, CompiledUpdate, CompiledActor]:
    """What steps, what learns and what acts, over the policy's own parameters."""
    refuse_policy(policy)
    rate = value_at(config.learning_rate, 0.0)
    adam = CompiledAdam(policy.parameters(), rate, config.adam_eps, fused=False)
    perceptron = CompiledPerceptron(policy, adam, threads)
    return adam, CompiledUpdate(policy, adam, perceptron), CompiledActor(perceptron)
