"""Open-pit mine scheduling: block models, exact bounds, environments and learned schedules.

The environments are registered with Gymnasium as `mine/Cpit-v0`, `mine/Pcpsp-v0` and
`mine/Daily-v0`; keywords are those of `mine_rl_npv.config.MineConfig`.
"""

from __future__ import annotations

from gymnasium import register

register("mine/Cpit-v0", "mine_rl_npv.quick_start:make_cpit")
register("mine/Pcpsp-v0", "mine_rl_npv.quick_start:make_pcpsp")
register("mine/Daily-v0", "mine_rl_npv.quick_start:make_daily")
