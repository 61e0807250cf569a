"""Game Boy fighting games on PyBoy: an own cartridge, environments, self-play.

Importing this registers `fighting/Duel-v0`, `fighting/DuelSelfPlay-v0` (one seat of it, against a
pool's scripts) and `fighting/GameBoy-v0` (a profile and the user's own cartridge image).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from fighting.cartridge.env import GameBoyEnv
    from fighting.env import DuelEnv


def make_duel(**options: Any) -> DuelEnv:
    """A Duel environment; options are those of `DuelConfig`, choices as words."""
    from fighting.config import DuelConfig
    from fighting.env import DuelEnv
    from frugal_rl.run.building import build_as

    return DuelEnv(build_as(DuelConfig, _without_rendering(options), "env"))


def make_self_play(**options: Any) -> DuelEnv:
    """A Duel environment whose opponent is drawn anew from the scripts for each fight."""
    return make_duel(**{"opponent": "self_play", "pool_share": 1.0, **options})


def make_game_boy(**options: Any) -> GameBoyEnv:
    """A fighter on the user's cartridge; options are those of `GameBoyConfig`."""
    from fighting.cartridge.config import GameBoyConfig
    from fighting.cartridge.env import GameBoyEnv
    from frugal_rl.run.building import build_as

    return GameBoyEnv(build_as(GameBoyConfig, _without_rendering(options), "env"))


def _without_rendering(options: dict[str, Any]) -> dict[str, Any]:
    """Gymnasium passes `render_mode`, which our environments do not need."""
    return {name: value for name, value in options.items() if name != "render_mode"}


gymnasium.register("fighting/Duel-v0", "fighting:make_duel")
gymnasium.register("fighting/DuelSelfPlay-v0", "fighting:make_self_play")
gymnasium.register("fighting/GameBoy-v0", "fighting:make_game_boy")
