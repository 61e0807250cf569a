"""From the simulator's records to the few bytes that a frame is drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit, prange

from nclone.render.scene import CHANGING_TYPES

if TYPE_CHECKING:
    from nclone.sim.world import World


DOOR_TYPES = (5, 6, 8)
_CHANGING = np.zeros(256, np.bool_)
_CHANGING[list(CHANGING_TYPES)] = True


@njit(cache=True, parallel=True)
def _write(worlds, entities, movers, doors, levels, things, chosen, ninja, codes, moving):
    for m in prange(chosen.size):
        n = chosen[m]
        w = worlds[n]
        level = levels[w.level]
        ninja[m, 0], ninja[m, 1] = np.floor(w.x + 0.5), np.floor(w.y + 0.5)
        ninja[m, 2] = w.state + 1
        codes[m] = 0
        moving[m] = 0
        slot, mover = 0, 0
        for e in range(level.entities):
            thing = things[level.first_entity + e]
            if _CHANGING[thing.kind]:
                code = entities[n, e].state & 7
                if thing.door >= 0:
                    code = doors[n, thing.door].closed + 2 * entities[n, e].active
                codes[m, slot] = code
                slot += 1
            if thing.mover >= 0:
                place = movers[n, thing.mover]
                moving[m, mover, 0] = np.floor(place.x + 0.5)
                moving[m, mover, 1] = np.floor(place.y + 0.5)
                mover += 1


def write_moment(
    world: World, chosen: np.ndarray, ninja: np.ndarray, codes: np.ndarray, moving: np.ndarray
) -> None:
    """Write the moments of the worlds listed in `chosen` [M] int64.

    ninja [M, 3] int16 (its state counts from 1, so that a row of zeros is no moment), codes [M, C]
    uint8, moving [M, V, 2] int16: overwritten, zeros behind a level's own entities; C and V must
    be at least those of every level (see `moment_widths`).
    """
    t = world.table.tables
    _write(
        world.worlds,
        world.entities,
        world.movers,
        world.doors,
        t.levels,
        t.things,
        chosen,
        ninja,
        codes,
        moving,
    )
