"""Adapters between our stores and environments and stock Stable-Baselines3.

`compact` gives the keywords that make a stock model's rollout small, `shrink` does it to a model
that takes no such keywords, `plan_stock` predicts a stock
run with and without them, `MemoryCallback` logs the prediction beside what is measured.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frugal_rl.sb3.callback import MemoryCallback
    from frugal_rl.sb3.rollout import CompactRolloutBuffer, compact, shrink
    from frugal_rl.sb3.stock_plan import plan_stock

__all__ = ["CompactRolloutBuffer", "MemoryCallback", "compact", "plan_stock", "shrink"]

_MODULES = {
    "CompactRolloutBuffer": "rollout",
    "compact": "rollout",
    "shrink": "rollout",
    "plan_stock": "stock_plan",
    "MemoryCallback": "callback",
}


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first used: workers need none of them."""
    if name not in _MODULES:
        raise AttributeError(f"frugal_rl.sb3 has no '{name}'; it offers {', '.join(__all__)}.")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
