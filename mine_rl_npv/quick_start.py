"""Environments by keyword, as Gymnasium's ids make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frugal_rl.run.building import build_as
from mine_rl_npv.config import Kind, MineConfig

if TYPE_CHECKING:
    from frugal_rl.vec_env.plain import SpecEnv


def make_cpit(**options: Any) -> SpecEnv:
    """Schedule by periods, one destination per block; options as in `MineConfig`."""
    return _made(Kind.cpit, options)


def make_pcpsp(**options: Any) -> SpecEnv:
    """Schedule by periods and choose destinations."""
    return _made(Kind.pcpsp, options)


def make_daily(**options: Any) -> SpecEnv:
    """Dig day by day at a tonnage rate."""
    return _made(Kind.daily, options)


def _made(kind: Kind, options: dict[str, Any]) -> SpecEnv:
    """Choices are words; `render_mode`, which Gymnasium passes, is not needed."""
    given = {name: value for name, value in options.items() if name != "render_mode"}
    return build_as(MineConfig, {"data": "porphyry_small", **given, "kind": kind}, "env").make()
