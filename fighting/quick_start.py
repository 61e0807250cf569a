"""Environments by keyword, as Gymnasium's ids make them."""

from __future__ import annotations

from typing import Any

from fighting.cartridge.config import GameBoyConfig
from fighting.cartridge.env import GameBoyEnv
from fighting.config import DuelConfig
from fighting.env import DuelEnv
from frugal_rl.run.building import build_as


def make_duel(**options: Any) -> DuelEnv:
    """A Duel environment; options are those of `DuelConfig`, choices as words."""
    return DuelEnv(build_as(DuelConfig, _without_rendering(options), "env"))


def make_self_play(**options: Any) -> DuelEnv:
    """A Duel environment whose opponent is drawn anew from the scripts for each fight."""
    return make_duel(**{"opponent": "self_play", "pool_share": 1.0, **options})


def make_game_boy(**options: Any) -> GameBoyEnv:
    """A game on the user's cartridge; options are those of `GameBoyConfig`."""
    return GameBoyEnv(build_as(GameBoyConfig, _without_rendering(options), "env"))


def _without_rendering(options: dict[str, Any]) -> dict[str, Any]:
    """Gymnasium passes `render_mode`, which our environments do not need."""
    return {name: value for name, value in options.items() if name != "render_mode"}
