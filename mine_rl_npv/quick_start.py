"""Environments by keyword, as Gymnasium's ids make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frugal_rl.run.building import build

if TYPE_CHECKING:
    from frugal_rl.vec_env.plain import SpecEnv

CONFIG = "mine_rl_npv.config.MineConfig"


def make_cpit(**options: Any) -> SpecEnv:
    """Schedule by periods, one destination per block; options as in `MineConfig`."""
    return _made("cpit", options)


def make_pcpsp(**options: Any) -> SpecEnv:
    """Schedule by periods and choose destinations."""
    return _made("pcpsp", options)


def make_daily(**options: Any) -> SpecEnv:
    """Dig day by day at a tonnage rate."""
    return _made("daily", options)


def _made(kind: str, options: dict[str, Any]) -> SpecEnv:
    """Choices are words; `render_mode`, which Gymnasium passes, is not needed."""
    given = {name: value for name, value in options.items() if name != "render_mode"}
    config = build({"data": "porphyry_small", **given, "kind": kind, "_target_": CONFIG}, "env")
    env: SpecEnv = config.make()
    return env
