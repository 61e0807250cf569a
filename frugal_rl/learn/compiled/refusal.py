"""What the compiled engine does not do, said before anything is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.memory.choices import Precision

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.run.config import RunConfig

EXACT = "algo.engine=compiled has no {what}; use {instead}, or choose algo.engine=exact."


def refuse_what_has_no_kernel(config: Any, run: RunConfig, policy: FrugalPolicy) -> None:
    """Switches that only torch honours; networks and actions refuse themselves.

    Raises:
        ConfigError: one of them is set.
    """
    memory = run.memory
    cases = (
        (policy.device.type != "cpu", "kernels for a GPU", "hardware.device=cpu"),
        (config.compile, "use for algo.compile=true", "algo.compile=false"),
        (config.fused_adam, "use for algo.fused_adam=true", "algo.fused_adam=false"),
        (memory.precision is Precision.bf16, "bf16", "memory.precision=float32"),
        (memory.micro_batch, "micro-batches", "memory.micro_batch=0 (it works in blocks anyway)"),
        (
            memory.gradient_checkpointing,
            "activations to compute again",
            "memory.gradient_checkpointing=false",
        ),
        (
            policy.mask_name and isinstance(policy.action_space, spaces.Box),
            f"way to mask Box actions by '{policy.mask_name}'",
            "Discrete actions",
        ),
    )
    for wrong, what, instead in cases:
        if wrong:
            raise ConfigError(EXACT.format(what=what, instead=instead))
