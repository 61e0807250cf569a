"""What the compiled engine does not do, said before anything is built. Imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.learn.agents import Activation, MlpAgent, is_image
from frugal_rl.memory.choices import Precision

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.run.config import RunConfig


def no(what: str, instead: str) -> ConfigError:
    """That the compiled engine has none of something, and two ways out."""
    return ConfigError(
        f"algo.engine=compiled has no {what}; use {instead}, or choose algo.engine=exact."
    )


def no_convolutions(field: str) -> ConfigError:
    """A picture that a network reads by convolutions."""
    return no(f"convolutions, and the field '{field}' is a picture", "agent.read without it")


def refuse_values(config: Any, run: RunConfig) -> None:
    """Refuse what only torch honours, as far as the values of a run tell.

    Raises:
        ConfigError: one of them is set.
    """
    memory, agent = run.memory, run.agent
    if not isinstance(agent, MlpAgent):
        raise no(f"passes of agent={agent.name}", "agent=mlp")
    for f in agent.fields(run.encoding()):
        if is_image(f) and agent.convolves(f):
            raise no_convolutions(f.name)
    cases = (
        (
            agent.activation is Activation.silu,
            "kernel for agent.activation=silu",
            "agent.activation=tanh or relu",
        ),
        (config.compile, "use for algo.compile=true", "algo.compile=false"),
        (config.fused_adam, "use for algo.fused_adam=true", "algo.fused_adam=false"),
        (memory.precision is Precision.bf16, "bf16", "memory.precision=float32"),
        (memory.micro_batch, "micro-batches", "memory.micro_batch=0 (it works in blocks anyway)"),
        (
            memory.gradient_checkpointing,
            "activations to compute again",
            "memory.gradient_checkpointing=false",
        ),
    )
    for wrong, what, instead in cases:
        if wrong:
            raise no(what, instead)


def refuse_policy(policy: FrugalPolicy) -> None:
    """Refuse a policy's device and masks; networks and actions refuse themselves.

    Raises:
        ConfigError: there is no kernel for them.
    """
    if policy.device.type != "cpu":
        raise no("kernels for a GPU", "hardware.device=cpu")
    if policy.mask_name and isinstance(policy.action_space, spaces.Box):
        raise no(f"way to mask Box actions by '{policy.mask_name}'", "Discrete actions")
