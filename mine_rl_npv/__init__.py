"""Open-pit mine scheduling: block models, exact bounds, environments and learned schedules.

The environments are registered with Gymnasium as `mine/Cpit-v0`, `mine/Pcpsp-v0` and
`mine/Daily-v0`; keywords are those of `mine_rl_npv.config.MineConfig`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnasium import register

if TYPE_CHECKING:
    from mine_rl_npv.env import MineEnv

__all__ = ["make_cpit", "make_daily", "make_pcpsp"]


def _make(kind: str, options: dict[str, Any]) -> MineEnv:
    from mine_rl_npv.config import MineConfig
    from mine_rl_npv.mines import Kind

    options.pop("render_mode", None)
    return MineConfig(kind=Kind(kind), **({"data": "porphyry_small"} | options)).make()


def make_cpit(**options: Any) -> MineEnv:
    """Schedule by periods, one destination per block."""
    return _make("cpit", options)


def make_pcpsp(**options: Any) -> MineEnv:
    """Schedule by periods and choose destinations."""
    return _make("pcpsp", options)


def make_daily(**options: Any) -> MineEnv:
    """Dig day by day at a tonnage rate."""
    return _make("daily", options)


register("mine/Cpit-v0", "mine_rl_npv:make_cpit")
register("mine/Pcpsp-v0", "mine_rl_npv:make_pcpsp")
register("mine/Daily-v0", "mine_rl_npv:make_daily")
